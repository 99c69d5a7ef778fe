/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the store in memory: threads sleep on a bell in the block, and read there what has
 * changed (bell.h).
 *
 * A watch of a file has a mapping of its own, since that of the store may be replaced at any time. It
 * looks once a second whether the file still is the one that has the name.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fleet/store/memory.h"

struct memory_watch {
	struct memory *m;
	struct memory own;    /* m, of a file */
	pthread_mutex_t lock; /* of the mapping, for a thread that wakes another one */
	_Atomic bool woken;
	uint64_t place; /* notes up to here were listed */
	struct watched watched;
	struct notices notices;
	struct notice shown;
};

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

/* A watch makes no file: a new one is the business of those that write to it. */
static int open_own(struct memory_watch *w, const struct memory *m, char *why)
{
	w->own = (struct memory){
		.timeout = m->timeout,
		.shared = true,
		.fd = -1,
		.bytes = m->bytes,
		.mode = m->mode,
		.existing = true,
	};
	w->m = &w->own;
	(void)snprintf(w->own.name, sizeof(w->own.name), "%s", m->name);
	return memory_open_file(w->m, why);
}

/* List what has changed since it was called last. */
static int take_notes(struct memory_watch *w)
{
	struct memory *m = w->m;
	bool other = false;
	int r = 0;

	if (m->shared)
		r = memory_lock(m, &other);
	else
		pthread_mutex_lock(&m->block->lock);
	if (r != 0)
		return r;
	if (other)
		notices_any(&w->notices);
	else
		bell_list(&m->block->bell, w->place, &w->watched, &w->notices);
	w->place = bell_count(&m->block->bell);
	pthread_mutex_unlock(&m->block->lock);
	return 0;
}

/* *seen: the rings before that. If it is another file now, there is a notice, and no sleep. */
static int look(struct memory_watch *w, uint32_t *seen)
{
	int r;

	pthread_mutex_lock(&w->lock);
	*seen = w->m->shared && w->m->block == NULL ? 0 : bell_look(&w->m->block->bell);
	r = take_notes(w);
	pthread_mutex_unlock(&w->lock);
	return r;
}

int memory_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		      struct weir_store_change *change)
{
	struct memory_watch *w = watch;
	const weir_time began = now();
	const weir_time end = timeout < WEIR_FOREVER - began ? began + timeout : WEIR_FOREVER;
	weir_time at;
	uint32_t seen;
	int r;

	(void)self;
	for (;;) {
		r = look(w, &seen);
		if (r != 0) {
			notices_any(&w->notices);
			change->why = w->m->why;
			return r;
		}
		if (atomic_exchange_explicit(&w->woken, false, memory_order_acq_rel))
			return -ECANCELED;
		if (notices_take(&w->notices, &w->shown))
			break;
		at = now();
		if (at >= end)
			return -ETIMEDOUT;
		bell_sleep(&w->m->block->bell, seen,
			   end - at < BELL_SLEEP_MAX ? end : at + BELL_SLEEP_MAX);
	}
	change->key = w->shown.key;
	change->version = w->shown.version;
	return 0;
}

void memory_watch_wake(struct weir_store *self, void *watch)
{
	struct memory_watch *w = watch;

	(void)self;
	pthread_mutex_lock(&w->lock);
	(void)atomic_exchange_explicit(&w->woken, true, memory_order_acq_rel);
	if (w->m->block != NULL)
		bell_wake(&w->m->block->bell);
	pthread_mutex_unlock(&w->lock);
}

void memory_watch_close(struct weir_store *self, void *watch)
{
	struct memory_watch *w = watch;

	(void)self;
	if (w->m == &w->own)
		memory_unmap(w->m);
	watched_free(&w->watched);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int memory_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		      void **watch, char *why)
{
	struct memory *m = (struct memory *)self;
	struct memory_watch *w = calloc(1, sizeof(*w));
	int r = 0;

	if (w == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	w->m = m;
	pthread_mutex_init(&w->lock, NULL);
	if (m->shared)
		r = open_own(w, m, why);
	if (r == 0 && !watched_set(&w->watched, prefixes, count))
		r = store_say(-ENOMEM, why, "Out of memory.");
	if (r == 0)
		r = take_notes(w);
	if (r != 0) {
		if (why[0] == '\0')
			(void)store_say(r, why, "%s", w->m->why);
		memory_watch_close(self, w);
		return r;
	}
	w->notices = (struct notices){.count = 0};
	*watch = w;
	return 0;
}
