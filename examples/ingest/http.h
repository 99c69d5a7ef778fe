/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A minimal HTTP server for the database and the API. It has one thread, so its callback needs no
 * lock.
 */
#ifndef INGEST_HTTP_H
#define INGEST_HTTP_H

#include <stddef.h>

struct http_request {
	const char *method;
	const char *url;  /* without the query */
	const char *from; /* ?from=: the client; "" if missing */
	const char *body; /* ends with a 0 */
};

struct http_answer {
	unsigned status;
	unsigned retry_after; /* seconds; 0: no header */
	char text[256];
};

typedef void http_serve_fn(void *arg, const struct http_request *request,
			   struct http_answer *answer);

/*
 * Listen on that port of the loopback (0: any free one), print it, and serve until SIGTERM or
 * SIGINT. 0; -1 on failure, after an error message.
 */
int http_run(unsigned port, http_serve_fn *serve, void *arg);

#endif
