/*
 * batcher_turn.c - what is due: a flush, the end of a pause, batches that are late, an audit, and to
 * tell what is needed.
 */
#include "fleet/batcher/batcher.h"
#include "fleet/cancel.h"

#include <string.h>

/* What a turn has to tell. */
struct turn {
	weir_time now;
	uint64_t released, timed_out, audited;
	bool flushed, resumed, wants, audit;
	enum weir_batcher_event verdict;
	struct weir_cost needs;
	uint32_t open; /* batches with room, while it flushes */
	uint32_t told, *last;
};

static bool due(weir_time at, weir_time now)
{
	return at != WEIR_FOREVER && (int64_t)(now - at) >= 0;
}

/* WEIR_FOREVER is later than all. */
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

/* More is needed, or less: the first change since that was told sets the thread's timer. */
void batcher_need(struct weir_batcher *b,
		  void (*change)(struct weir_cost *, const struct weir_cost *),
		  const struct weir_cost *cost)
{
	const bool known = wants_changed(b);

	change(&b->stats.needs, cost);
	if (!known && wants_changed(b))
		kick(b);
}

/* The table of batches. */

/* Behind those that are open. */
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

/* One that nobody has reported. */
static void give_up(struct weir_batcher *b, struct batch *batch)
{
	batch->late = batch->stamp;
	batcher_end(b, batch);
}

/* A flush. */

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

/* What has no room any more goes to those that are to be told. */
static void shut(struct weir_batcher *b, struct turn *t, struct batch *batch)
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

static void put_in(struct weir_batcher *b, struct turn *t, struct batch *batch,
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
		shut(b, t, batch);
}

/* The operation that *link points to leaves the list. */
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
 * From the oldest on, while the rate allows. One that needs a batch of its own when there is no
 * place for one stays where it is; those behind it may still join others.
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
		put_in(b, t, batch, op);
	}
	while (t->open != NIL)
		shut(b, t, &b->batches[t->open]);
	if (t->released > 0) {
		b->released = t->now;
		pthread_cond_broadcast(&b->room);
	}
	b->stats.flushes++;
	t->flushed = true;
}

/* Flushes that are past are not made up for; their phase stays. */
static void pass_flushes(struct weir_batcher *b, weir_time now)
{
	const weir_dur interval = b->config.flush_interval;

	if (due(b->next_flush, now))
		b->next_flush += ((now - b->next_flush) / interval + 1) * interval;
}

/* The first operation for a while: others may come to join it until the next flush. */
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

/* What else is due. */

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

		if (!batch->used || !batch->told || !due(batch->deadline, t->now))
			continue;
		give_up(b, batch);
		t->timed_out++;
	}
	b->stats.timed_out += t->timed_out;
}

/* Nothing is here, and nothing was released for longer than anything takes: so nothing is left. */
static void audit_if_due(struct weir_batcher *b, struct turn *t)
{
	if (!due(b->next_audit, t->now))
		return;
	b->next_audit = after(t->now, b->config.audit_interval);
	t->audit = true;
	t->verdict = WEIR_BATCHER_AUDIT_SKIPPED;
	t->audited = b->stats.queued;
	if (b->stats.queued > 0 || !due(after(b->released, b->config.time_max), t->now))
		return;
	t->verdict = WEIR_BATCHER_AUDIT_PASSED;
	for (uint32_t i = 0; b->stats.running > 0 && i < b->config.batches; i++) {
		if (!b->batches[i].used || !b->batches[i].told)
			continue;
		give_up(b, &b->batches[i]);
		t->audited++;
	}
	if (t->audited == 0)
		return;
	t->verdict = WEIR_BATCHER_AUDIT_FAILED;
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
		if (b->batches[i].used && b->batches[i].told)
			next = sooner(next, b->batches[i].deadline);
	return next;
}

/* Without the lock. The batch is the program's as soon as it is told. */
static void process(struct weir_batcher *b, uint32_t i)
{
	struct batch *batch = &b->batches[i];
	const struct weir_batch_handler *watcher = batch->watcher;
	const struct weir_batch handle = {.slot = i, .stamp = batch->stamp};
	struct weir_operation *const first = batch->first;
	const size_t count = batch->count;

	for (struct weir_operation *op = first; op != NULL; op = op->next)
		op->inside = NULL;
	tell(b, WEIR_BATCHER_BATCH, count);
	pthread_mutex_lock(&b->lock);
	batch->told = true;
	pthread_mutex_unlock(&b->lock);
	watcher->process(watcher->arg, handle, first, count);
}

static void tell_all(struct weir_batcher *b, const struct turn *t)
{
	if (t->resumed)
		tell(b, WEIR_BATCHER_RESUME, 0);
	if (t->timed_out > 0)
		tell(b, WEIR_BATCHER_TIMED_OUT, t->timed_out);
	if (t->flushed)
		tell(b, WEIR_BATCHER_FLUSH, t->released);
	for (uint32_t i = t->told, next; i != NIL; i = next) {
		next = b->batches[i].next;
		process(b, i);
	}
	if (t->audit)
		tell(b, t->verdict, t->audited);
	if (t->wants)
		b->config.wants(b->config.arg, &t->needs);
}

weir_time weir_batcher_turn(struct weir_batcher *b)
{
	struct turn t = {.now = time_now(b), .open = NIL, .told = NIL};
	weir_time next;
	int cancel;

	t.last = &t.told;
	pthread_mutex_lock(&b->lock);
	time_out(b, &t);
	resume_if_due(b, &t);
	flush_if_due(b, &t);
	audit_if_due(b, &t);
	want_if_due(b, &t);
	pthread_mutex_unlock(&b->lock);
	/* No other thread has what has not been reported yet. */
	cancel = cancel_hold();
	tell_all(b, &t);
	cancel_release(cancel);
	pthread_mutex_lock(&b->lock);
	next = next_time(b);
	pthread_mutex_unlock(&b->lock);
	return next;
}

/* False: the deadline has come. */
