/*
 * What easy and multi share: the limiter of a transfer, whether its origin is closed, and how a
 * transfer gives back what it has.
 */
#ifndef WEIR_ADAPTERS_CURL_GUARD_H
#define WEIR_ADAPTERS_CURL_GUARD_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/curl.h>

struct closed;

struct weir_curl {
	struct weir_registry *registry;
	struct weir_registry *own; /* NULL: the registry is the caller's */
	enum weir_outcome (*outcome)(void *arg, CURL *easy, CURLcode result);
	void *arg;
	weir_dur retry_after_max;

	_Atomic unsigned users; /* transfers and multis */

	/* Closed origins; how many is known without the mutex. */
	pthread_mutex_t mutex;
	pthread_cond_t opened;
	struct closed *first;
	_Atomic unsigned closed_count;
};

/* What a transfer holds from its first question to its end: a pin, and a permit in between. */
struct hold {
	struct weir_limiter *limiter; /* NULL: nothing is held */
	struct weir_token token;
	bool by_origin; /* key is an origin, and not what the caller likes */
	char key[WEIR_KEY_MAX + 1];
};

/* Pin the limiter of a transfer. 0, or as weir_curl_perform() says. */
int hold_find(struct weir_curl *guard, CURL *easy, const struct weir_curl_call *call,
	      struct hold *hold);

/* Give back permit, if there is one, and pin: of a transfer that was not performed, */
void hold_drop(struct weir_curl *guard, struct hold *hold, enum weir_outcome outcome);

/* and of one that was, with this result. */
void hold_finish(struct weir_curl *guard, struct hold *hold, CURL *easy, CURLcode result);

/* Until when an origin is closed; 0: it is open. */
weir_time closed_until(struct weir_curl *guard, const struct weir_limiter *limiter);

/* It is closed, and nothing is out that could open it before the deadline. */
bool closed_for(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline);

/* Close an origin. True: the caller's pin belongs to the closed origin from now on. */
bool closed_begin(struct weir_curl *guard, struct weir_limiter *limiter, weir_time until);
void closed_end(struct weir_curl *guard, const struct weir_limiter *limiter);

/* Sleep until an origin is open, or the deadline has passed. Whether it is open. */
bool closed_wait(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline);

/* Forget all closed origins. */
void closed_clear(struct weir_curl *guard);

#endif
