/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What easy and multi handles share: the limiter of a transfer, closed origins, and the release of
 * what a transfer holds.
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

	/* Closed origins. Their number can be read without the mutex. */
	pthread_mutex_t mutex;
	pthread_cond_t opened;
	struct closed *first;
	_Atomic unsigned closed_count;
};

/* What a transfer holds: a pin of the limiter from beginning to end, and at times a permit. */
struct hold {
	struct weir_limiter *limiter; /* NULL: nothing is held */
	struct weir_token token;
	bool by_origin; /* key is an origin, not a key of the caller */
	char key[WEIR_KEY_MAX + 1];
};

/* Find and pin the limiter of a transfer. Errors as of weir_curl_perform(). */
int hold_find(struct weir_curl *guard, CURL *easy, const struct weir_curl_call *call,
	      struct hold *hold);

/* Release the permit, if any, and the pin of a transfer that was not performed. */
void hold_drop(struct weir_curl *guard, struct hold *hold, enum weir_outcome outcome);

/* The same for a transfer that was performed, with its result. */
void hold_finish(struct weir_curl *guard, struct hold *hold, CURL *easy, CURLcode result);

/* The time until which an origin is closed; 0 if it is open. */
weir_time closed_until(struct weir_curl *guard, const struct weir_limiter *limiter);

/* Whether it is closed and no transfer is in progress that could open it before the deadline. */
bool closed_for(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline);

/* Close an origin. If true, the closed origin takes over the caller's pin. */
bool closed_begin(struct weir_curl *guard, struct weir_limiter *limiter, weir_time until);
void closed_end(struct weir_curl *guard, const struct weir_limiter *limiter);

/* Sleep until the origin is open or the deadline has passed. Returns whether it is open. */
bool closed_wait(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline);

/* Remove all closed origins. */
void closed_clear(struct weir_curl *guard);

#endif
