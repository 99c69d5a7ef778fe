/*
 * The HTTP side: who is let in, and when a permit is given back.
 */
#ifndef HTTPD_SERVER_H
#define HTTPD_SERVER_H

#include "store.h"

#include <stdint.h>
#include <weir/weir.h>

struct server;

/*
 * Serve on a loopback port; 0: any. Requests wait up to wait for a permit if the
 * limiter has a queue. NULL after saying why not. Limiter and store stay the
 * caller's and must outlive the server.
 */
struct server *server_start(uint16_t port, struct weir_limiter *limiter, weir_dur wait,
			    struct store *store);

/* Ends when the last request has. */
void server_stop(struct server *server);

uint16_t server_port(const struct server *server);
unsigned server_connections(const struct server *server);

#endif
