/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HTTP server in this process, on a free loopback port. Its paths select the behaviour:
 *
 *	/ok                   answers at once
 *	/sleep?ms=N           answers after N ms
 *	/hang                 answers when server_let_go() is called
 *	/status?code=N&retry=N   answers with that status, and with Retry-After if given
 *	/redirect?to=URL      302
 */
#ifndef WEIR_ADAPTERS_CURL_TESTS_SERVER_H
#define WEIR_ADAPTERS_CURL_TESTS_SERVER_H

#include <stdint.h>

struct server;

struct server *server_start(void);
void server_stop(struct server *server);
uint16_t server_port(const struct server *server);

/* Requests in progress now, and the maximum so far. */
unsigned server_busy(const struct server *server);
unsigned server_most(const struct server *server);

/* Answer requests of /hang, and all later ones. */
void server_let_go(struct server *server);
void server_hold_again(struct server *server);

#endif
