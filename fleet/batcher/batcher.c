/* SPDX-License-Identifier: BSD-2-Clause */
/* batcher.c - the public functions: enqueue, done, pause, statistics, drain, discard. */
#include "fleet/batcher/batcher.h"

#include <errno.h>
#include <string.h>

#include "fleet/cancel.h"

bool batcher_wait(struct weir_batcher *b, pthread_cond_t *cond, weir_time deadline)
{
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / WEIR_S),
		.tv_nsec = (long)(deadline % WEIR_S),
	};
	const int cancel = cancel_hold();
	bool in_time;

	if (deadline == WEIR_FOREVER)
		in_time = pthread_cond_wait(cond, &b->lock) == 0;
	else
		in_time = pthread_cond_timedwait(cond, &b->lock, &until) != ETIMEDOUT;
	cancel_release(cancel);
	return in_time;
}

static int check_operation(const struct weir_batcher *b, const struct weir_operation *op)
{
	if (op == NULL || op->watcher == NULL || op->watcher->process == NULL ||
	    (op->flags & ~(uint32_t)WEIR_OPERATION_BATCHABLE) != 0)
		return -EINVAL;
	if (op->inside != NULL)
		return -EBUSY;
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		if (op->cost.units[i] > (i < b->quotas ? WEIR_UNITS_MAX : 0))
			return -EINVAL;
	return 0;
}

static bool is_too_dear(const struct weir_batcher *b, const struct weir_operation *op)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		if (b->config.cost_max.units[i] != 0 &&
		    op->cost.units[i] > b->config.cost_max.units[i])
			return true;
	return false;
}

static bool is_tried_too_often(const struct weir_operation *op)
{
	return op->watcher->attempts_max != 0 && op->attempts >= op->watcher->attempts_max;
}

/* With the lock. Returns 0 if there is room. */
static int find_room(struct weir_batcher *b, weir_time deadline)
{
	const bool may_wait = deadline != 0 && b->config.clock == NULL;
	bool in_time = true;

	while (!b->closed && b->stats.queued >= b->config.buffer && may_wait && in_time) {
		b->stats.blocked++;
		in_time = batcher_wait(b, &b->room, deadline);
		b->stats.blocked--;
	}
	if (b->closed)
		return -ESHUTDOWN;
	if (b->stats.queued < b->config.buffer)
		return 0;
	b->stats.full++;
	return may_wait ? -ETIMEDOUT : -EAGAIN;
}

/* With the lock. */
static int accept_operation(struct weir_batcher *b, struct weir_operation *op, weir_time deadline)
{
	int r;

	if (is_too_dear(b, op)) {
		b->stats.too_dear++;
		return -E2BIG;
	}
	if (is_tried_too_often(op)) {
		b->stats.too_often++;
		return -ELOOP;
	}
	r = find_room(b, deadline);
	if (r != 0)
		return r;
	op->inside = b;
	op->next = NULL;
	*b->end = op;
	b->end = &op->next;
	if (b->stats.queued++ == 0)
		batcher_await_flush(b);
	b->stats.accepted++;
	batcher_need(b, add_cost, &op->cost);
	return 0;
}

int weir_batcher_enqueue(struct weir_batcher *b, struct weir_operation *op, weir_time deadline)
{
	int r = check_operation(b, op);

	if (r != 0)
		return r;
	pthread_mutex_lock(&b->lock);
	r = accept_operation(b, op, deadline);
	pthread_mutex_unlock(&b->lock);
	return r;
}

int weir_batcher_done(struct weir_batcher *b, struct weir_batch handle)
{
	struct batch *batch;
	int r = 0;

	if (handle.stamp == 0 || handle.slot >= b->config.batches)
		return -EINVAL;
	batch = &b->batches[handle.slot];
	pthread_mutex_lock(&b->lock);
	if (batch->used && batch->started && batch->stamp == handle.stamp) {
		b->stats.done++;
		batcher_end(b, batch);
	} else {
		r = batch->late == handle.stamp ? -ETIMEDOUT : -EINVAL;
	}
	pthread_mutex_unlock(&b->lock);
	return r;
}

void weir_batcher_flush(struct weir_batcher *b)
{
	pthread_mutex_lock(&b->lock);
	b->flush_asked = true;
	kick(b);
	pthread_mutex_unlock(&b->lock);
}

void weir_batcher_pause(struct weir_batcher *b)
{
	const weir_time now = time_now(b);
	bool already;

	pthread_mutex_lock(&b->lock);
	already = b->stats.paused != 0;
	if (!already) {
		b->stats.paused = 1;
		b->resume = after(now, b->config.pause);
		kick(b);
	}
	pthread_mutex_unlock(&b->lock);
	if (!already)
		report(b, WEIR_BATCHER_PAUSE, b->config.pause);
}

void weir_batcher_resume(struct weir_batcher *b)
{
	bool was;

	pthread_mutex_lock(&b->lock);
	was = b->stats.paused != 0;
	b->stats.paused = 0;
	kick(b);
	pthread_mutex_unlock(&b->lock);
	if (was)
		report(b, WEIR_BATCHER_RESUME, 0);
}

struct weir_cost weir_batcher_needs(struct weir_batcher *b)
{
	struct weir_cost needs;

	pthread_mutex_lock(&b->lock);
	needs = b->stats.needs;
	pthread_mutex_unlock(&b->lock);
	return needs;
}

/* With the lock. Returns whether it was open. */
static bool close_once(struct weir_batcher *b)
{
	const bool was_open = !b->closed;

	b->closed = true;
	pthread_cond_broadcast(&b->room);
	return was_open;
}

int weir_batcher_drain(struct weir_batcher *b, weir_time deadline)
{
	uint32_t queued;
	bool closing, idle, in_time = true;

	pthread_mutex_lock(&b->lock);
	queued = b->stats.queued;
	closing = close_once(b);
	pthread_mutex_unlock(&b->lock);
	if (closing)
		report(b, WEIR_BATCHER_SHUTDOWN, queued);
	pthread_mutex_lock(&b->lock);
	while (b->config.by_hand == 0 && !is_idle(b) && in_time)
		in_time = batcher_wait(b, &b->idle, deadline);
	idle = is_idle(b);
	pthread_mutex_unlock(&b->lock);
	if (idle)
		return 0;
	return b->config.by_hand != 0 ? -EAGAIN : -ETIMEDOUT;
}

/* Remove the oldest operation from the list; NULL: there is none. */
static struct weir_operation *discard_one(struct weir_batcher *b)
{
	struct weir_operation *op;

	pthread_mutex_lock(&b->lock);
	op = b->first;
	if (op != NULL) {
		batcher_take_out(b, &b->first);
		b->stats.released--;
		b->stats.discarded++;
		batcher_need(b, subtract_cost, &op->cost);
		if (is_idle(b))
			pthread_cond_broadcast(&b->idle);
		op->inside = NULL;
		op->next = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	return op;
}

size_t weir_batcher_discard(struct weir_batcher *b,
			    void (*given)(void *context, struct weir_operation *operation),
			    void *context)
{
	struct weir_operation *op;
	uint32_t queued;
	size_t count = 0;
	bool closing;

	pthread_mutex_lock(&b->lock);
	queued = b->stats.queued;
	closing = close_once(b);
	pthread_mutex_unlock(&b->lock);
	if (closing)
		report(b, WEIR_BATCHER_SHUTDOWN, queued);
	while ((op = discard_one(b)) != NULL) {
		if (given != NULL)
			given(context, op);
		count++;
	}
	return count;
}

void weir_batcher_stats_init_sized(struct weir_batcher_stats *stats, size_t size)
{
	memset(stats, 0, size);
	stats->size = size;
}

void weir_batcher_stats_take(struct weir_batcher *b, struct weir_batcher_stats *stats)
{
	struct weir_batcher_stats s;

	pthread_mutex_lock(&b->lock);
	s = b->stats;
	pthread_mutex_unlock(&b->lock);
	s.size = stats->size;
	memcpy(stats, &s, s.size < sizeof(s) ? s.size : sizeof(s));
}
