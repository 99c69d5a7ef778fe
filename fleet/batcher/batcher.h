/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batcher.h - internals of the batcher: a list of operations, a table of batches in progress, and
 * timers. batcher.c contains the public functions, batcher_turn.c a turn, batcher_create.c creation
 * and destruction.
 *
 * Everything is guarded by one lock. A turn does its work under the lock, and records what it has
 * to report; then it reports events and calls process(), without the lock, so that callbacks may
 * call the batcher. A batch is in the table from the flush that began it. Until just before the
 * call of process() its flag started is false: no other thread knows of it, and neither a time-out
 * nor an audit touches it.
 *
 * Accounting. The units needed are the sum over operations held and batches in the table, and
 * change in the same places as these. An audit finds batches that were never reported done; it is
 * not needed to correct sums.
 */

#ifndef WEIR_FLEET_BATCHER_INSIDE_H
#define WEIR_FLEET_BATCHER_INSIDE_H

#include <weir/batcher.h>

#include <pthread.h>

/* No internal duration is longer, so that sums stay far from the end of 63 bits. */
#define DURATION_MAX (UINT64_C(1) << 60)

#define NIL UINT32_MAX

struct batch {
	uint32_t stamp; /* identifies this use of the slot */
	uint32_t late;  /* the stamp of a use that was ended before it was done */
	uint32_t next;  /* index in the list of free, open, or ready batches */
	bool used, started;
	const struct weir_batch_handler *watcher;
	struct weir_operation *first, **end;
	size_t count;
	struct weir_cost cost;
	weir_time deadline;
};

struct weir_batcher {
	struct weir_batcher_config config; /* with all defaults filled in */
	uint32_t quotas;                   /* number of the rate's quotas */
	pthread_t thread;

	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t room, idle, work;
	struct weir_operation *first, **end;
	uint32_t free; /* head of the list of free batches */
	bool closed, stopped, kicked, flush_asked;
	weir_time next_flush, next_audit, next_wants, resume, released;
	struct weir_cost wanted; /* as last reported by wants() */
	struct weir_batcher_stats stats;
	struct batch batches[];
};

static inline weir_time time_now(const struct weir_batcher *b)
{
	return b->config.clock != NULL ? b->config.clock->now(b->config.clock) : weir_now();
}

static inline weir_time after(weir_time now, weir_dur duration)
{
	return duration < DURATION_MAX ? now + duration : WEIR_FOREVER;
}

static inline void report(const struct weir_batcher *b, enum weir_batcher_event event,
			  uint64_t value)
{
	if (b->config.event != NULL)
		b->config.event(b->config.arg, event, value);
}

static inline void add_cost(struct weir_cost *sum, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		sum->units[i] += cost->units[i];
}

static inline void subtract_cost(struct weir_cost *sum, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		sum->units[i] -= cost->units[i];
}

static inline bool is_idle(const struct weir_batcher *b)
{
	return b->stats.queued == 0 && b->stats.running == 0;
}

/* Wake the thread. */
static inline void kick(struct weir_batcher *b)
{
	b->kicked = true;
	pthread_cond_signal(&b->work);
}

/* All functions below require the lock. */

/* False: the deadline has passed. */
bool batcher_wait(struct weir_batcher *b, pthread_cond_t *cond, weir_time deadline);

/* Change the units needed. The first change since the last report wakes the thread. */
void batcher_need(struct weir_batcher *b,
		  void (*change)(struct weir_cost *, const struct weir_cost *),
		  const struct weir_cost *cost);

/* Remove a batch from the table. */
void batcher_end(struct weir_batcher *b, struct batch *batch);

/* Remove the operation that *link points to from the list. */
void batcher_take_out(struct weir_batcher *b, struct weir_operation **link);

/* Called for the first operation in an empty list: others may join it until the next flush. */
void batcher_await_flush(struct weir_batcher *b);

#endif
