/*
 * What the tests share: a guard with a fixed limit, handles, and loops of both kinds.
 */
#ifndef WEIR_ADAPTERS_CURL_TESTS_RIG_H
#define WEIR_ADAPTERS_CURL_TESTS_RIG_H

#include <weir/curl.h>
#include <weir/weir.h>

#include "check.h"
#include "server.h"

/* A guard whose limiters have this limit and queue. */
struct weir_curl *make_guard(uint32_t limit, uint32_t queue);

/* The limiter of http://127.0.0.1:port; NULL: there is none. Not pinned: nobody makes room here. */
struct weir_limiter *limiter_of(const struct weir_curl *guard, uint16_t port);
struct weir_snapshot snapshot_of(const struct weir_curl *guard, uint16_t port);

/* Nothing is in flight and nobody waits, in any limiter. */
void check_idle(const struct weir_curl *guard);

/* A handle for a path of a server. */
CURL *make_easy(uint16_t port, const char *path);

/* A deadline that no test waits for. */
struct weir_curl_call patient(void);

/* Until so many requests are in progress. */
void wait_busy(const struct server *server, unsigned count);

/* How a loop is run. */
struct loop {
	struct weir_curl_multi *multi;
	int epoll; /* below 0: by perform and poll */
	weir_time alarm;
};

void loop_open(struct loop *loop, struct weir_curl *guard, bool events);
void loop_close(struct loop *loop);

/* Run it until nothing runs, or so many have ended: each is given to told(). How many did. */
unsigned loop_run(struct loop *loop, unsigned enough, void (*told)(struct weir_curl_done *done));

/* The usual told(): performed, and answered by 200. */
void told_well(struct weir_curl_done *done);

#endif
