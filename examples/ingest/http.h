/*
 * As much of an HTTP server as the database and the API need: one thread, so that what it calls
 * needs no lock.
 */
#ifndef INGEST_HTTP_H
#define INGEST_HTTP_H

#include <stddef.h>

struct http_request {
	const char *method;
	const char *url;  /* without what is asked */
	const char *from; /* ?from=: who asks; "" if that is not said */
	const char *body; /* ends with a 0 */
};

struct http_answer {
	unsigned status;
	unsigned retry_after; /* seconds; 0: it is not said */
	char text[256];
};

typedef void http_serve_fn(void *arg, const struct http_request *request,
			   struct http_answer *answer);

/*
 * Listen on that port of the loopback (0: any that is free), say where, and serve until SIGTERM
 * or SIGINT. 0; -1 after saying why not.
 */
int http_run(unsigned port, http_serve_fn *serve, void *arg);

#endif
