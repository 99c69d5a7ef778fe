/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Origins that are closed by Retry-After. There are few, usually none, so they are a list under a
 * mutex, with a count that can be read without the mutex.
 */

#include "guard.h"

#include <stdlib.h>
#include <time.h>

/* Holds a pin, so that the limiter lives on and its address identifies the origin. */
struct closed {
	struct closed *next;
	struct weir_limiter *limiter;
	weir_time until;
};

static void forget(struct weir_curl *guard, struct closed **link)
{
	struct closed *closed = *link;

	*link = closed->next;
	atomic_fetch_sub_explicit(&guard->closed_count, 1, memory_order_relaxed);
	weir_registry_put(guard->registry, closed->limiter);
	free(closed);
}

/* Called under the mutex. NULL: the origin is open. Removes expired entries on the way. */
static struct closed **find(struct weir_curl *guard, const struct weir_limiter *limiter,
			    weir_time now)
{
	struct closed **link = &guard->first;

	while (*link != NULL) {
		if ((*link)->until <= now)
			forget(guard, link);
		else if ((*link)->limiter == limiter)
			return link;
		else
			link = &(*link)->next;
	}
	return NULL;
}

static bool none(const struct weir_curl *guard)
{
	return atomic_load_explicit(&guard->closed_count, memory_order_relaxed) == 0;
}

weir_time closed_until(struct weir_curl *guard, const struct weir_limiter *limiter)
{
	struct closed **link;
	weir_time until;

	if (none(guard))
		return 0;
	pthread_mutex_lock(&guard->mutex);
	link = find(guard, limiter, weir_now());
	until = link != NULL ? (*link)->until : 0;
	pthread_mutex_unlock(&guard->mutex);
	return until;
}

bool closed_for(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline)
{
	const weir_time until = closed_until(guard, limiter);

	return until != 0 && until >= deadline && weir_inflight(limiter) == 0;
}

/* Out of memory, the origin stays open: the cost is another request that is refused. */
bool closed_begin(struct weir_curl *guard, struct weir_limiter *limiter, weir_time until)
{
	struct closed *closed = malloc(sizeof(*closed));
	struct closed **link;
	bool taken = false;

	pthread_mutex_lock(&guard->mutex);
	link = find(guard, limiter, weir_now());
	if (link != NULL) {
		if ((*link)->until < until)
			(*link)->until = until;
	} else if (closed != NULL) {
		*closed = (struct closed){guard->first, limiter, until};
		guard->first = closed;
		atomic_fetch_add_explicit(&guard->closed_count, 1, memory_order_relaxed);
		closed = NULL;
		taken = true;
	}
	pthread_mutex_unlock(&guard->mutex);
	free(closed);
	return taken;
}

void closed_end(struct weir_curl *guard, const struct weir_limiter *limiter)
{
	struct closed **link;

	if (none(guard))
		return;
	pthread_mutex_lock(&guard->mutex);
	link = find(guard, limiter, weir_now());
	if (link != NULL) {
		forget(guard, link);
		pthread_cond_broadcast(&guard->opened);
	}
	pthread_mutex_unlock(&guard->mutex);
}

/* Cancellation is disabled because a thread cancelled here would never unlock the mutex. */
static void sleep_until(struct weir_curl *guard, weir_time until)
{
	const struct timespec at = {
		.tv_sec = (time_t)(until / WEIR_S),
		.tv_nsec = (long)(until % WEIR_S),
	};
	int cancel;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_cond_timedwait(&guard->opened, &guard->mutex, &at);
	(void)pthread_setcancelstate(cancel, NULL);
}

bool closed_wait(struct weir_curl *guard, const struct weir_limiter *limiter, weir_time deadline)
{
	struct closed **link;

	if (none(guard))
		return true;
	pthread_mutex_lock(&guard->mutex);
	while ((link = find(guard, limiter, weir_now())) != NULL && weir_now() < deadline)
		sleep_until(guard, (*link)->until < deadline ? (*link)->until : deadline);
	pthread_mutex_unlock(&guard->mutex);
	return link == NULL;
}

void closed_clear(struct weir_curl *guard)
{
	while (guard->first != NULL)
		forget(guard, &guard->first);
}
