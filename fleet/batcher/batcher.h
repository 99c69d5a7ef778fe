/*
 * batcher.h - the batcher inside: a list of operations, a table of batches in progress, and what is
 * due when. batcher.c is what programs do with it, batcher_turn.c what it does when it is
 * time, batcher_create.c how it begins and ends.
 *
 * All of it is under one lock. A turn does what is due under the lock, and notes what is to be
 * told; then it tells, and calls process(), without the lock, so that callbacks may call the
 * batcher. A batch is in the table from the flush that began it. Until its process() is about to
 * be called it is untold: nobody else knows of it, and neither a time-out nor an audit touches it.
 *
 * Accounts. What is needed is the sum over operations here and batches in the table, and is changed
 * in the same places as these. An audit finds batches that nobody reports done; it is not needed to
 * mend sums.
 */

#ifndef WEIR_FLEET_BATCHER_INSIDE_H
#define WEIR_FLEET_BATCHER_INSIDE_H

#include <weir/batcher.h>

#include <pthread.h>

/* No duration of ours is longer, so that sums stay far from the end of 63 bits. */
#define DURATION_MAX (UINT64_C(1) << 60)

#define NIL UINT32_MAX

struct batch {
	uint32_t stamp; /* of its use */
	uint32_t late;  /* the stamp of a use that ended before it was done */
	uint32_t next;  /* among the free, the open, or those to be told */
	bool used, told;
	const struct weir_batch_handler *watcher;
	struct weir_operation *first, **end;
	size_t count;
	struct weir_cost cost;
	weir_time deadline;
};

struct weir_batcher {
	struct weir_batcher_config config; /* complete */
	uint32_t quotas;                   /* of the rate */
	pthread_t thread;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t room, idle, work;
	struct weir_operation *first, **end;
	uint32_t free; /* batches */
	bool closed, stopped, kicked, flush_asked;
	weir_time next_flush, next_audit, next_wants, resume, released;
	struct weir_cost wanted; /* as it was told last */
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

static inline void tell(const struct weir_batcher *b, enum weir_batcher_event event, uint64_t value)
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

/* Have the thread look again. */
static inline void kick(struct weir_batcher *b)
{
	b->kicked = true;
	pthread_cond_signal(&b->work);
}

/* All of these with the lock. */

/* False: the deadline has come. */
bool batcher_wait(struct weir_batcher *b, pthread_cond_t *cond, weir_time deadline);

/* More is needed, or less: the first change since that was told sets the thread's timer. */
void batcher_need(struct weir_batcher *b,
		  void (*change)(struct weir_cost *, const struct weir_cost *),
		  const struct weir_cost *cost);

/* A batch leaves the table. */
void batcher_end(struct weir_batcher *b, struct batch *batch);

/* The operation that *link points to leaves the list. */
void batcher_take_out(struct weir_batcher *b, struct weir_operation **link);

/* The first operation for a while: others may come to join it until the next flush. */
void batcher_await_flush(struct weir_batcher *b);

#endif
