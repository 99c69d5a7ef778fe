/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the tests: a guard with a fixed limit, handles, and loops of both kinds.
 */
#ifndef WEIR_ADAPTERS_CURL_TESTS_RIG_H
#define WEIR_ADAPTERS_CURL_TESTS_RIG_H

#include <weir/curl.h>
#include <weir/weir.h>

#include "check.h"
#include "server.h"

/* A guard whose limiters have this limit and queue. */
struct weir_curl *make_guard(uint32_t limit, uint32_t queue);

/* The limiter of http://127.0.0.1:port, or NULL. Not pinned, because the tests evict none. */
struct weir_limiter *limiter_of(const struct weir_curl *guard, uint16_t port);
struct weir_snapshot snapshot_of(const struct weir_curl *guard, uint16_t port);

/* Check that no limiter has calls in flight or waiting. */
void check_idle(const struct weir_curl *guard);

/* A handle for a path of a server. */
CURL *make_easy(uint16_t port, const char *path);

/* A deadline that no test reaches. */
struct weir_curl_call patient(void);

/* Wait until count requests are in progress. */
void wait_busy(const struct server *server, unsigned count);

/* An event loop. */
struct loop {
	struct weir_curl_multi *multi;
	int epoll; /* below 0: perform and poll */
	weir_time alarm;
};

void loop_open(struct loop *loop, struct weir_curl *guard, bool events);
void loop_close(struct loop *loop);

/*
 * Run until no transfer runs, or enough have ended. Calls on_end() for each transfer that has
 * ended, and returns their number.
 */
unsigned loop_run(struct loop *loop, unsigned enough, void (*on_end)(struct weir_curl_done *done));

/* The usual on_end(): checks for a 200 response, and frees the handle. */
void expect_ok(struct weir_curl_done *done);

#endif
