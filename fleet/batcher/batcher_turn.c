/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batcher_turn.c - a turn: time-outs, the end of a pause, a flush, an audit, and reporting the
 * units needed.
 */
#include "fleet/batcher/batcher.h"
#include "fleet/cancel.h"

#include <string.h>

/* What a turn has to report. */
struct turn {
	weir_time now;
	uint64_t released, timed_out, audited;
	bool flushed, resumed, wants, audit;
	enum weir_batcher_event audit_result;
	struct weir_cost needs;
	uint32_t open; /* batches with room, during a flush */
	uint32_t ready, *last;
};

static bool due(weir_time at, weir_time now)
{
	return at != WEIR_FOREVER && (int64_t)(now - at) >= 0;
}

/* WEIR_FOREVER is later than all other times. */
static weir_time sooner(weir_time a, weir_time b)
{
	if (a == WEIR_FOREVER || b == WEIR_FOREVER)
		return a == WEIR_FOREVER ? b : a;
	return (int64_t)(a - b) < 0 ? a : b;
}

static bool wants_changed(const struct weir_batcher *b)
{
	return b->config.wants != NULL &&
	       memcmp(&b->wanted, &b->stats.needs, sizeof(b->wanted)) != 0;
}

void batcher_need(struct weir_batcher *b,
		  void (*change)(struct weir_cost *, const struct weir_cost *),
		  const struct weir_cost *cost)
{
	const bool known = wants_changed(b);

	change(&b->stats.needs, cost);
	if (!known && wants_changed(b))
		kick(b);
}

/* The new batch is appended to the open ones. */
static struct batch *open_batch(struct weir_batcher *b, struct turn *t,
				const struct weir_batch_handler *watcher)
{
	uint32_t *link = &t->open;
	struct batch *batch = &b->batches[b->free];
	const uint32_t late = batch->late, stamp = batch->stamp + 1;
	const weir_dur time_max = watcher->time_max != 0 ? watcher->time_max : b->config.time_max;

	while (*link != NIL)
		link = &b->batches[*link].next;
	*link = b->free;
	b->free = batch->next;
	*batch = (struct batch){
		.stamp = stamp != 0 ? stamp : 1,
		.late = late,
		.used = true,
		.watcher = watcher,
		.end = &batch->first,
		.next = NIL,
		.deadline = after(t->now, time_max),
	};
	b->stats.running++;
	b->stats.batches++;
	return batch;
}

void batcher_end(struct weir_batcher *b, struct batch *batch)
{
	batcher_need(b, subtract_cost, &batch->cost);
	batch->used = false;
	batch->next = b->free;
	b->free = (uint32_t)(batch - b->batches);
	b->stats.running--;
	if (is_idle(b))
		pthread_cond_broadcast(&b->idle);
}

/* End a batch that was never reported done. */
static void expire(struct weir_batcher *b, struct batch *batch)
{
	batch->late = batch->stamp;
	batcher_end(b, batch);
}

static struct batch *find_open(struct weir_batcher *b, const struct turn *t,
			       const struct weir_operation *op)
{
	if ((op->flags & WEIR_OPERATION_BATCHABLE) == 0)
		return NULL;
	for (uint32_t i = t->open; i != NIL; i = b->batches[i].next)
		if (b->batches[i].watcher == op->watcher)
			return &b->batches[i];
	return NULL;
}

/* Move a batch that takes no more operations from the open ones to the ready ones. */
static void mark_ready(struct weir_batcher *b, struct turn *t, struct batch *batch)
{
	uint32_t *link = &t->open;
	const uint32_t i = (uint32_t)(batch - b->batches);

	while (*link != i)
		link = &b->batches[*link].next;
	*link = batch->next;
	batch->next = NIL;
	*t->last = i;
	t->last = &batch->next;
}

static void add_operation(struct weir_batcher *b, struct turn *t, struct batch *batch,
			  struct weir_operation *op)
{
	const uint32_t most = op->watcher->batch_max;

	op->next = NULL;
	op->attempts++;
	*batch->end = op;
	batch->end = &op->next;
	batch->count++;
	add_cost(&batch->cost, &op->cost);
	t->released++;
	if ((op->flags & WEIR_OPERATION_BATCHABLE) == 0 || batch->count == most)
		mark_ready(b, t, batch);
}

void batcher_take_out(struct weir_batcher *b, struct weir_operation **link)
{
	struct weir_operation *op = *link;

	*link = op->next;
	if (op->next == NULL)
		b->end = link;
	b->stats.queued--;
	b->stats.released++;
}

/*
 * Release operations, oldest first, while the rate allows. One that needs a new batch when the
 * table is full stays in the list; those behind it may still join open batches.
 */
static void flush(struct weir_batcher *b, struct turn *t)
{
	struct weir_operation **link = &b->first, *op;

	while ((op = *link) != NULL && (b->free != NIL || t->open != NIL)) {
		struct batch *batch = find_open(b, t, op);

		if (batch == NULL && b->free == NIL) {
			link = &op->next;
			continue;
		}
		if (weir_rate_try_for(b->config.rate, &op->cost) != 0)
			break;
		batcher_take_out(b, link);
		if (batch == NULL) {
			batch = open_batch(b, t, op->watcher);
		}
		add_operation(b, t, batch, op);
	}
	while (t->open != NIL)
		mark_ready(b, t, &b->batches[t->open]);
	if (t->released > 0) {
		b->released = t->now;
		pthread_cond_broadcast(&b->room);
	}
	b->stats.flushes++;
	t->flushed = true;
}

/* Missed flushes are not made up for. The phase of the interval does not change. */
static void pass_flushes(struct weir_batcher *b, weir_time now)
{
	const weir_dur interval = b->config.flush_interval;

	if (due(b->next_flush, now))
		b->next_flush += ((now - b->next_flush) / interval + 1) * interval;
}

void batcher_await_flush(struct weir_batcher *b)
{
	pass_flushes(b, time_now(b));
	kick(b);
}

static void flush_if_due(struct weir_batcher *b, struct turn *t)
{
	const bool asked = b->flush_asked;

	if (b->stats.paused != 0 || !(asked || due(b->next_flush, t->now)))
		return;
	b->flush_asked = false;
	pass_flushes(b, t->now);
	if (b->stats.queued > 0 || asked)
		flush(b, t);
}

static void resume_if_due(struct weir_batcher *b, struct turn *t)
{
	if (b->stats.paused == 0 || !due(b->resume, t->now))
		return;
	b->stats.paused = 0;
	t->resumed = true;
}

static void time_out(struct weir_batcher *b, struct turn *t)
{
	for (uint32_t i = 0; b->stats.running > 0 && i < b->config.batches; i++) {
		struct batch *batch = &b->batches[i];

		if (!batch->used || !batch->started || !due(batch->deadline, t->now))
			continue;
		expire(b, batch);
		t->timed_out++;
	}
	b->stats.timed_out += t->timed_out;
}

/*
 * Audit: if no operations are held, and none was released for longer than any batch may take,
 * batches still in progress are stale.
 */
static void audit_if_due(struct weir_batcher *b, struct turn *t)
{
	if (!due(b->next_audit, t->now))
		return;
	b->next_audit = after(t->now, b->config.audit_interval);
	t->audit = true;
	t->audit_result = WEIR_BATCHER_AUDIT_SKIPPED;
	t->audited = b->stats.queued;
	if (b->stats.queued > 0 || !due(after(b->released, b->config.time_max), t->now))
		return;
	t->audit_result = WEIR_BATCHER_AUDIT_PASSED;
	for (uint32_t i = 0; b->stats.running > 0 && i < b->config.batches; i++) {
		if (!b->batches[i].used || !b->batches[i].started)
			continue;
		expire(b, &b->batches[i]);
		t->audited++;
	}
	if (t->audited == 0)
		return;
	t->audit_result = WEIR_BATCHER_AUDIT_FAILED;
	b->stats.reset += t->audited;
	b->stats.audits_failed++;
}

static void want_if_due(struct weir_batcher *b, struct turn *t)
{
	if (!wants_changed(b) || !due(b->next_wants, t->now))
		return;
	b->next_wants = after(t->now, b->config.wants_interval);
	b->wanted = t->needs = b->stats.needs;
	t->wants = true;
}

static weir_time next_time(const struct weir_batcher *b)
{
	weir_time next = b->next_audit;

	if (b->stats.paused != 0)
		next = sooner(next, b->resume);
	else if (b->stats.queued > 0)
		next = sooner(next, b->next_flush);
	if (wants_changed(b))
		next = sooner(next, b->next_wants);
	for (uint32_t i = 0; b->stats.running > 0 && i < b->config.batches; i++)
		if (b->batches[i].used && b->batches[i].started)
			next = sooner(next, b->batches[i].deadline);
	return next;
}

/* Without the lock. The program owns the batch from the event on. */
static void process(struct weir_batcher *b, uint32_t i)
{
	struct batch *batch = &b->batches[i];
	const struct weir_batch_handler *watcher = batch->watcher;
	const struct weir_batch handle = {.slot = i, .stamp = batch->stamp};
	struct weir_operation *const first = batch->first;
	const size_t count = batch->count;

	for (struct weir_operation *op = first; op != NULL; op = op->next)
		op->inside = NULL;
	report(b, WEIR_BATCHER_BATCH, count);
	pthread_mutex_lock(&b->lock);
	batch->started = true;
	pthread_mutex_unlock(&b->lock);
	watcher->process(watcher->arg, handle, first, count);
}

static void report_all(struct weir_batcher *b, const struct turn *t)
{
	if (t->resumed)
		report(b, WEIR_BATCHER_RESUME, 0);
	if (t->timed_out > 0)
		report(b, WEIR_BATCHER_TIMED_OUT, t->timed_out);
	if (t->flushed)
		report(b, WEIR_BATCHER_FLUSH, t->released);
	for (uint32_t i = t->ready, next; i != NIL; i = next) {
		next = b->batches[i].next;
		process(b, i);
	}
	if (t->audit)
		report(b, t->audit_result, t->audited);
	if (t->wants)
		b->config.wants(b->config.arg, &t->needs);
}

weir_time weir_batcher_turn(struct weir_batcher *b)
{
	struct turn t = {.now = time_now(b), .open = NIL, .ready = NIL};
	weir_time next;
	int cancel;

	t.last = &t.ready;
	pthread_mutex_lock(&b->lock);
	time_out(b, &t);
	resume_if_due(b, &t);
	flush_if_due(b, &t);
	audit_if_due(b, &t);
	want_if_due(b, &t);
	pthread_mutex_unlock(&b->lock);
	/* No other thread can report this turn's events, so it must not be cancelled. */
	cancel = cancel_hold();
	report_all(b, &t);
	cancel_release(cancel);
	pthread_mutex_lock(&b->lock);
	next = next_time(b);
	pthread_mutex_unlock(&b->lock);
	return next;
}
