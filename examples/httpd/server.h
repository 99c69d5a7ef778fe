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
	unsigned pool; /* threads that work; 0: as the server has it */
	weir_dur wait; /* how long requests may wait for a permit */
};

/* NULL after saying why not. */
struct server *server_start(const struct server_config *config);

/* Ends when the last request has. */
void server_stop(struct server *server);

uint16_t server_port(const struct server *server);
/* Or requests under way, where connections are not counted. */
unsigned server_connections(const struct server *server);

#endif
