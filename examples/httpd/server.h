/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP side, on libmicrohttpd or on libevent.
 */
#ifndef HTTPD_SERVER_H
#define HTTPD_SERVER_H

#include "store.h"

#include <stdint.h>
#include <weir/weir.h>

struct server;

struct server_config {
	struct weir_limiter *limiter; /* this and the store must outlive the server */
	struct store *store;
	uint16_t port; /* of the loopback address; 0: any */
	unsigned pool; /* worker threads; 0: the server's default */
	weir_dur wait; /* the longest wait of a request for a permit */
};

/* NULL on failure, after an error message. */
struct server *server_start(const struct server_config *config);

/* Returns when the last request has ended. */
void server_stop(struct server *server);

uint16_t server_port(const struct server *server);
/* Open connections; or requests in progress, if connections are not counted. */
unsigned server_connections(const struct server *server);

#endif
