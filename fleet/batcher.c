/*
 * The batcher: a list of operations, a table of batches in progress, and what is due when.
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

#include <weir/batcher.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFER         10000
#define BATCHES        1024
#define BATCHES_MAX    65535
#define FLUSH_INTERVAL (100 * WEIR_MS)
#define WANTS_INTERVAL (100 * WEIR_MS)
#define AUDIT_INTERVAL (10 * WEIR_S)
#define TIME_MAX       (60 * WEIR_S)
#define PAUSE          (500 * WEIR_MS)

/* No duration of ours is longer, so that sums stay far from the end of 63 bits. */
#define DURATION_MAX (UINT64_C(1) << 60)

#define NIL UINT32_MAX

struct batch {
	uint32_t stamp; /* of its use */
	uint32_t late;  /* the stamp of a use that ended before it was done */
	uint32_t next;  /* among the free, the open, or those to be told */
	bool used, told;
	const struct weir_watcher *watcher;
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

static weir_time time_now(const struct weir_batcher *b)
{
	return b->config.clock != NULL ? b->config.clock->now(b->config.clock) : weir_now();
}

static weir_time after(weir_time now, weir_dur duration)
{
	return duration < DURATION_MAX ? now + duration : WEIR_FOREVER;
}

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

static void tell(const struct weir_batcher *b, enum weir_batcher_event event, uint64_t value)
{
	if (b->config.event != NULL)
		b->config.event(b->config.arg, event, value);
}

static void add_cost(struct weir_cost *sum, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		sum->units[i] += cost->units[i];
}

static void subtract_cost(struct weir_cost *sum, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		sum->units[i] -= cost->units[i];
}

static bool is_idle(const struct weir_batcher *b)
{
	return b->stats.queued == 0 && b->stats.running == 0;
}

/* Have the thread look again. */
static void kick(struct weir_batcher *b)
{
	b->kicked = true;
	pthread_cond_signal(&b->work);
}

static bool wants_changed(const struct weir_batcher *b)
{
	return b->config.wants != NULL &&
	       memcmp(&b->wanted, &b->stats.needs, sizeof(b->wanted)) != 0;
}

/* More is needed, or less: the first change since that was told sets the thread's timer. */
static void need(struct weir_batcher *b,
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
				const struct weir_watcher *watcher)
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

static void end_batch(struct weir_batcher *b, struct batch *batch)
{
	need(b, subtract_cost, &batch->cost);
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
	end_batch(b, batch);
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
static void take_out(struct weir_batcher *b, struct weir_operation **link)
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
		take_out(b, link);
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
static void await_flush(struct weir_batcher *b)
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
	const struct weir_watcher *watcher = batch->watcher;
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

	t.last = &t.told;
	pthread_mutex_lock(&b->lock);
	time_out(b, &t);
	resume_if_due(b, &t);
	flush_if_due(b, &t);
	audit_if_due(b, &t);
	want_if_due(b, &t);
	pthread_mutex_unlock(&b->lock);
	tell_all(b, &t);
	pthread_mutex_lock(&b->lock);
	next = next_time(b);
	pthread_mutex_unlock(&b->lock);
	return next;
}

/* False: the deadline has come. */
static bool wait_until(struct weir_batcher *b, pthread_cond_t *cond, weir_time deadline)
{
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / WEIR_S),
		.tv_nsec = (long)(deadline % WEIR_S),
	};

	if (deadline == WEIR_FOREVER)
		return pthread_cond_wait(cond, &b->lock) == 0;
	return pthread_cond_timedwait(cond, &b->lock, &until) != ETIMEDOUT;
}

static void *run(void *arg)
{
	struct weir_batcher *b = arg;
	bool stopped = false;

	while (!stopped) {
		const weir_time next = weir_batcher_turn(b);

		pthread_mutex_lock(&b->lock);
		while (!b->kicked && !b->stopped && wait_until(b, &b->work, next))
			;
		b->kicked = false;
		stopped = b->stopped;
		pthread_mutex_unlock(&b->lock);
	}
	return NULL;
}

/* Handing over. */

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

/* With the lock. 0: there is room. */
static int find_room(struct weir_batcher *b, weir_time deadline)
{
	const bool may_wait = deadline != 0 && b->config.clock == NULL;
	bool in_time = true;

	while (!b->closed && b->stats.queued >= b->config.buffer && may_wait && in_time) {
		b->stats.blocked++;
		in_time = wait_until(b, &b->room, deadline);
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
		await_flush(b);
	b->stats.accepted++;
	need(b, add_cost, &op->cost);
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
	if (batch->used && batch->told && batch->stamp == handle.stamp) {
		b->stats.done++;
		end_batch(b, batch);
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
		tell(b, WEIR_BATCHER_PAUSE, b->config.pause);
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
		tell(b, WEIR_BATCHER_RESUME, 0);
}

struct weir_cost weir_batcher_needs(struct weir_batcher *b)
{
	struct weir_cost needs;

	pthread_mutex_lock(&b->lock);
	needs = b->stats.needs;
	pthread_mutex_unlock(&b->lock);
	return needs;
}

/* The end. */

/* With the lock. True: it was open. */
static bool close_it(struct weir_batcher *b)
{
	const bool was_open = !b->closed;

	b->closed = true;
	pthread_cond_broadcast(&b->room);
	return was_open;
}

int weir_batcher_drain(struct weir_batcher *b, weir_time deadline)
{
	uint32_t queued;
	bool told, idle, in_time = true;

	pthread_mutex_lock(&b->lock);
	queued = b->stats.queued;
	told = close_it(b);
	pthread_mutex_unlock(&b->lock);
	if (told)
		tell(b, WEIR_BATCHER_SHUTDOWN, queued);
	pthread_mutex_lock(&b->lock);
	while (b->config.by_hand == 0 && !is_idle(b) && in_time)
		in_time = wait_until(b, &b->idle, deadline);
	idle = is_idle(b);
	pthread_mutex_unlock(&b->lock);
	if (idle)
		return 0;
	return b->config.by_hand != 0 ? -EAGAIN : -ETIMEDOUT;
}

/* The oldest, out of the list; NULL: there is none. */
static struct weir_operation *discard_one(struct weir_batcher *b)
{
	struct weir_operation *op;

	pthread_mutex_lock(&b->lock);
	op = b->first;
	if (op != NULL) {
		take_out(b, &b->first);
		b->stats.released--;
		b->stats.discarded++;
		need(b, subtract_cost, &op->cost);
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
	bool told;

	pthread_mutex_lock(&b->lock);
	queued = b->stats.queued;
	told = close_it(b);
	pthread_mutex_unlock(&b->lock);
	if (told)
		tell(b, WEIR_BATCHER_SHUTDOWN, queued);
	while ((op = discard_one(b)) != NULL) {
		if (given != NULL)
			given(context, op);
		count++;
	}
	return count;
}

int weir_batcher_destroy(struct weir_batcher *b)
{
	bool idle;

	if (b == NULL)
		return 0;
	pthread_mutex_lock(&b->lock);
	idle = is_idle(b);
	if (idle) {
		b->stopped = true;
		kick(b);
	}
	pthread_mutex_unlock(&b->lock);
	if (!idle)
		return -EBUSY;
	if (b->config.by_hand == 0)
		pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->room);
	pthread_cond_destroy(&b->idle);
	pthread_cond_destroy(&b->work);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return 0;
}

/* The beginning. */

void weir_batcher_config_init_sized(struct weir_batcher_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static void explain(char *why, size_t why_size, const char *format, ...)
{
	va_list args;

	if (why_size == 0 || why == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(why, why_size, format, args);
	va_end(args);
}

/* So that analysers see what is returned. */
#define refuse(...) (explain(__VA_ARGS__), -EINVAL)

static void complete_duration(weir_dur *duration, weir_dur otherwise)
{
	if (*duration == 0)
		*duration = otherwise;
}

static int check(const struct weir_batcher_config *config, struct weir_batcher_config *c, char *why,
		 size_t why_size)
{
	if (config == NULL || config->size < offsetof(struct weir_batcher_config, buffer))
		return refuse(why, why_size,
			      "weir_batcher_config_init() was not called for this configuration.");
	if (config->size > sizeof(*c))
		return refuse(why, why_size, "The program was built for a newer library.");
	memset(c, 0, sizeof(*c));
	memcpy(c, config, config->size);
	if (c->rate == NULL)
		return refuse(why, why_size, "There is no rate.");
	if (c->batches > BATCHES_MAX)
		return refuse(why, why_size, "batches is %u, above %u.", (unsigned)c->batches,
			      (unsigned)BATCHES_MAX);
	if (c->by_hand > 1 || c->reserved != 0)
		return refuse(why, why_size, "by_hand is neither 0 nor 1, or reserved is not 0.");
	if (c->clock != NULL && c->by_hand == 0)
		return refuse(why, why_size, "With a clock of its own it is turned by hand.");
	c->buffer = c->buffer != 0 ? c->buffer : BUFFER;
	c->batches = c->batches != 0 ? c->batches : BATCHES;
	complete_duration(&c->flush_interval, FLUSH_INTERVAL);
	complete_duration(&c->wants_interval, WANTS_INTERVAL);
	complete_duration(&c->audit_interval, AUDIT_INTERVAL);
	complete_duration(&c->time_max, TIME_MAX);
	complete_duration(&c->pause, PAUSE);
	if (c->flush_interval > DURATION_MAX)
		return refuse(why, why_size, "flush_interval is longer than 36 years.");
	return 0;
}

int weir_batcher_config_check(const struct weir_batcher_config *config, char *why, size_t why_size)
{
	struct weir_batcher_config complete;

	return check(config, &complete, why, why_size);
}

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Everything is zero before. */
static void set_up(struct weir_batcher *b, const struct weir_batcher_config *c)
{
	struct weir_rate_snapshot rate;
	weir_time now;

	weir_rate_snapshot_init(&rate);
	weir_rate_snapshot_take(c->rate, &rate);
	b->config = *c;
	b->quotas = rate.quota_count;
	b->end = &b->first;
	for (uint32_t i = 0; i < c->batches; i++)
		b->batches[i].next = i + 1 < c->batches ? i + 1 : NIL;
	now = time_now(b);
	b->released = now;
	b->next_flush = now + c->flush_interval;
	b->next_audit = after(now, c->audit_interval);
	b->next_wants = now;
	pthread_mutex_init(&b->lock, NULL);
	cond_init(&b->room);
	cond_init(&b->idle);
	cond_init(&b->work);
}

int weir_batcher_create(const struct weir_batcher_config *config, struct weir_batcher **batcher)
{
	struct weir_batcher_config c;
	struct weir_batcher *b;

	*batcher = NULL;
	if (check(config, &c, NULL, 0) != 0)
		return -EINVAL;
	b = calloc(1, sizeof(*b) + c.batches * sizeof(b->batches[0]));
	if (b == NULL)
		return -ENOMEM;
	set_up(b, &c);
	if (c.by_hand == 0) {
		const int error = pthread_create(&b->thread, NULL, run, b);

		if (error != 0) {
			b->config.by_hand = 1;
			(void)weir_batcher_destroy(b);
			return -error;
		}
	}
	*batcher = b;
	return 0;
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
