/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches of any store: what all of them share. One thread waits at a time, and a watch that is
 * closed lets it go first.
 */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/cancel.h"
#include "fleet/store/quiet.h"
#include "fleet/store/store.h"

struct weir_store_watch {
	struct weir_store *store;
	void *inner; /* of the store's */
	pthread_mutex_t lock;
	pthread_cond_t left; /* the thread that waited has left */
	bool waiting, closing;
};

/* A store of a program that was built before there were watches has a shorter table. */
static bool can_watch(const struct weir_store *store)
{
	const struct weir_store_ops *ops = store->ops;

	return ops->size >=
		       offsetof(struct weir_store_ops, watch_close) + sizeof(ops->watch_close) &&
	       ops->watch_open != NULL;
}

static bool are_prefixes(const char *const *prefixes, size_t count)
{
	if (count == 0 || count > WEIR_STORE_WATCH_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (prefixes[i][0] != '\0' && !store_is_prefix(prefixes[i]))
			return false;
	return true;
}

static int open_inner(struct weir_store *store, const char *const *prefixes, size_t count,
		      void **inner, char *why)
{
	const struct quiet quiet = quiet_begin();
	const int r = store->ops->watch_open(store, prefixes, count, inner, why);

	quiet_end(&quiet);
	return r;
}

static int open_watch(struct weir_store *store, const char *const *prefixes, size_t count,
		      struct weir_store_watch **watch, char *why)
{
	struct weir_store_watch *w;
	int r;

	if (!can_watch(store))
		return store_say(-ENOTSUP, why, "This store cannot be watched.");
	if (!are_prefixes(prefixes, count))
		return store_say(-EINVAL, why, "There must be 1 to %d valid prefixes to watch.",
				 WEIR_STORE_WATCH_MAX);
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	w->store = store;
	r = open_inner(store, prefixes, count, &w->inner, why);
	if (r != 0) {
		free(w);
		return r;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->left, NULL);
	*watch = w;
	return 0;
}

int weir_store_watch_open(struct weir_store *store, const char *const *prefixes, size_t count,
			  struct weir_store_watch **watch, char *why, size_t why_size)
{
	const int cancel = cancel_hold();
	char text[WHY_SIZE] = "";
	int r;

	*watch = NULL;
	r = open_watch(store, prefixes, count, watch, text);
	cancel_release(cancel);
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

/* Returns 0, -EBUSY or -ECANCELED. */
static int enter(struct weir_store_watch *w)
{
	int r;

	pthread_mutex_lock(&w->lock);
	r = w->closing ? -ECANCELED : w->waiting ? -EBUSY : 0;
	if (r == 0)
		w->waiting = true;
	pthread_mutex_unlock(&w->lock);
	return r;
}

static void leave(struct weir_store_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->waiting = false;
	pthread_cond_signal(&w->left);
	pthread_mutex_unlock(&w->lock);
}

int weir_store_watch_wait(struct weir_store_watch *w, weir_dur timeout,
			  struct weir_store_change *change)
{
	const int cancel = cancel_hold();
	struct quiet quiet;
	int r;

	*change = (struct weir_store_change){.key = "", .why = ""};
	r = enter(w);
	if (r == 0) {
		quiet = quiet_begin();
		r = w->store->ops->watch_wait(w->store, w->inner, timeout, change);
		quiet_end(&quiet);
		leave(w);
	}
	cancel_release(cancel);
	return r;
}

void weir_store_watch_wake(struct weir_store_watch *w)
{
	const int cancel = cancel_hold();

	w->store->ops->watch_wake(w->store, w->inner);
	cancel_release(cancel);
}

static void let_go(struct weir_store_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->closing = true;
	if (w->waiting)
		w->store->ops->watch_wake(w->store, w->inner);
	while (w->waiting)
		pthread_cond_wait(&w->left, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void weir_store_watch_close(struct weir_store_watch *w)
{
	const int cancel = cancel_hold();
	struct quiet quiet;

	if (w != NULL) {
		let_go(w);
		quiet = quiet_begin();
		w->store->ops->watch_close(w->store, w->inner);
		quiet_end(&quiet);
		pthread_cond_destroy(&w->left);
		pthread_mutex_destroy(&w->lock);
		free(w);
	}
	cancel_release(cancel);
}
