/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The batcher in simulated time. The first part is a table of cases published for other systems, by
 * their ids: those of Azure's rate limiting pattern (AZ) and of go-batcher's tests (BT, GB), as far
 * as they concern a batcher. Where what these publish is inexact, the exact value is expected, and
 * the comment of the case says so. The second part tests properties of this batcher.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/batcher.h>

#define EVENTS  (WEIR_BATCHER_SHUTDOWN + 1)
#define BATCHES 20000

static weir_time given_time;

static weir_time read_clock(const struct weir_clock *clock)
{
	(void)clock;
	return given_time;
}

static const struct weir_clock given_clock = {.now = read_clock};

/* The program around the batcher: batches in progress, and the callbacks so far. */
static struct play {
	struct weir_rate *rate;
	struct weir_batcher *batcher;
	weir_dur work; /* how long a batch takes; WEIR_FOREVER: it is never reported done */
	struct {
		struct weir_batch batch;
		weir_time end;
		size_t count;
		struct weir_operation *first;
		bool done;
	} batches[BATCHES];
	unsigned begun;
	uint64_t operations, cost; /* released */
	unsigned events[EVENTS];
	uint64_t values[EVENTS];
	struct weir_cost wanted;
	unsigned wants;
} play;

static void on_event(void *arg, enum weir_batcher_event event, uint64_t value)
{
	(void)arg;
	play.events[event]++;
	play.values[event] = value;
}

static void on_wants(void *arg, const struct weir_cost *units)
{
	(void)arg;
	play.wanted = *units;
	play.wants++;
}

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	const unsigned i = play.begun++;

	(void)arg;
	cr_assert_lt(i, BATCHES);
	play.batches[i].batch = batch;
	play.batches[i].count = count;
	play.batches[i].first = first;
	play.batches[i].end = play.work == WEIR_FOREVER ? WEIR_FOREVER : given_time + play.work;
	play.batches[i].done = false;
	play.operations += count;
	for (; first != NULL; first = first->next, count--)
		play.cost += first->cost.units[0];
	cr_assert_eq(count, 0);
	if (play.work == 0) {
		play.batches[i].done = true;
		cr_assert_eq(weir_batcher_done(play.batcher, batch), 0);
	}
}

static struct weir_batcher_config plan(void)
{
	struct weir_batcher_config config;

	weir_batcher_config_init(&config);
	config.by_hand = 1;
	config.clock = &given_clock;
	config.event = on_event;
	return config;
}

/* A rate of units per second, with slots of one flush interval; and a batcher. */
static void begin(struct weir_batcher_config config, uint64_t units, uint32_t flags)
{
	struct weir_rate_config rate;
	char why[160] = "";

	memset(&play, 0, sizeof(play));
	weir_rate_config_init(&rate);
	rate.quotas[0] = (struct weir_quota){.units = units, .flags = flags};
	rate.slot = config.flush_interval != 0 ? config.flush_interval : 100 * WEIR_MS;
	rate.clock = &given_clock;
	cr_assert_eq(weir_rate_create(&rate, &play.rate), 0);
	config.rate = play.rate;
	cr_assert_eq(weir_batcher_config_check(&config, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(weir_batcher_create(&config, &play.batcher), 0);
}

static struct weir_batcher_stats look(void)
{
	struct weir_batcher_stats s;

	weir_batcher_stats_init(&s);
	weir_batcher_stats_take(play.batcher, &s);
	cr_assert_eq(s.accepted, s.queued + s.released + s.discarded);
	cr_assert_eq(s.batches, s.running + s.done + s.timed_out + s.reset);
	return s;
}

/* Report batches done whose time is over. Returns when the next one is. */
static weir_time work(void)
{
	weir_time next = WEIR_FOREVER;

	for (unsigned i = 0; i < play.begun; i++) {
		if (play.batches[i].done)
			continue;
		if (play.batches[i].end <= given_time) {
			play.batches[i].done = true;
			(void)weir_batcher_done(play.batcher, play.batches[i].batch);
		} else if (play.batches[i].end < next) {
			next = play.batches[i].end;
		}
	}
	return next;
}

/* Everything that happens in that time. */
static void pass(weir_dur time)
{
	const weir_time end = given_time + time;

	for (;;) {
		weir_time next = weir_batcher_turn(play.batcher);
		const weir_time done = work();

		next = next < done ? next : done;
		if (next > end)
			break;
		given_time = next;
	}
	given_time = end;
	work();
	(void)weir_batcher_turn(play.batcher);
}

static void finish(void)
{
	(void)weir_batcher_discard(play.batcher, NULL, NULL);
	for (unsigned i = 0; i < play.begun; i++)
		(void)weir_batcher_done(play.batcher, play.batches[i].batch);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 0);
	cr_assert_eq(weir_batcher_destroy(play.batcher), 0);
	weir_rate_destroy(play.rate);
}

static const struct weir_batch_handler plain = {.process = process};

static struct weir_operation *make(const struct weir_batch_handler *watcher, uint64_t cost,
				   uint32_t flags, unsigned count)
{
	struct weir_operation *ops = calloc(count, sizeof(*ops));

	cr_assert_not_null(ops);
	for (unsigned i = 0; i < count; i++)
		ops[i] = (struct weir_operation){
			.watcher = watcher, .cost = {{cost}}, .flags = flags};
	return ops;
}

static struct weir_operation *enqueue(const struct weir_batch_handler *watcher, uint64_t cost,
				      uint32_t flags, unsigned count)
{
	struct weir_operation *ops = make(watcher, cost, flags, count);

	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(weir_batcher_enqueue(play.batcher, &ops[i], 0), 0);
	return ops;
}

/*
 * AZ1: 10,000 records of 10 units each, a backend that accepts 20,000 units per second. A client
 * that sends everything, and repeats what was refused, sends 30,000 and is refused 20,000 times.
 * With the rate, it sends 10,000 and is refused 0 times.
 */
static void az1(const char *id)
{
	unsigned left = 10000, sent = 0, refused = 0;
	struct weir_operation *ops;

	while (left > 0) {
		sent += left;
		left -= left < 2000 ? left : 2000;
		refused += left;
	}
	cr_assert_eq(sent, 30000, "%s", id);
	cr_assert_eq(refused, 20000, "%s", id);
	begin(plan(), 20000, 0);
	ops = enqueue(&plain, 10, 0, 10000);
	for (unsigned second = 1; second <= 5; second++) {
		const uint64_t before = play.operations;

		pass(WEIR_S);
		cr_assert_leq(play.operations - before, 2000, "%s: the backend refuses some", id);
	}
	cr_assert_eq(play.operations, 10000, "%s", id);
	finish();
	free(ops);
}

/* AZ2: 100 per second are released as 20 every 200 ms. */
static void az2(const char *id)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.flush_interval = 200 * WEIR_MS;
	begin(config, 100, 0);
	ops = enqueue(&plain, 1, 0, 100);
	for (unsigned k = 1; k <= 5; k++) {
		pass(200 * WEIR_MS);
		cr_assert_eq(play.operations, k * 20, "%s, flush %u: %lu", id, k,
			     (unsigned long)play.operations);
	}
	finish();
	free(ops);
}

/*
 * AZ3: two of 20 partitions of 500 per second are 50 per second: 100 are done in 2 s, and then
 * nothing is wanted any more.
 */
static void az3(const char *id)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.wants = on_wants;
	begin(config, 2 * 500 / 20, 0);
	ops = enqueue(&plain, 1, 0, 100);
	pass(1900 * WEIR_MS);
	cr_assert_lt(play.operations, 100, "%s", id);
	cr_assert_gt(play.wanted.units[0], 0, "%s", id);
	pass(200 * WEIR_MS);
	cr_assert_eq(play.operations, 100, "%s", id);
	cr_assert_eq(play.wanted.units[0], 0, "%s", id);
	finish();
	free(ops);
}

static void refused(const char *id, uint64_t most, uint64_t cost, int expected)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *op = make(&plain, cost, 0, 1);

	config.cost_max.units[0] = most;
	begin(config, most, 0);
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), expected, "%s", id);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], expected == 0 ? cost : 0, "%s", id);
	cr_assert_eq(look().too_dear, expected != 0, "%s", id);
	finish();
	free(op);
}

static void bt1(const char *id)
{
	refused(id, 1000, 2000, -E2BIG);
}

static void bt2(const char *id)
{
	refused(id, 12000, 11000, 0);
	refused(id, 12000, 13000, -E2BIG);
}

static void bt3(const char *id)
{
	static const struct weir_batch_handler watcher = {.process = process, .attempts_max = 3};
	struct weir_operation *op = make(&watcher, 0, 0, 1);

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), 0, "%s", id);
		pass(100 * WEIR_MS);
	}
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), -ELOOP, "%s", id);
	cr_assert_eq(look().too_often, 1, "%s", id);
	cr_assert_eq(play.operations, 3, "%s", id);
	finish();
	free(op);
}

/* BT4: published is that two are done in 250 ms, at twice the capacity; one is exact. */
static void bt4(const char *id)
{
	struct weir_operation *ops;

	begin(plan(), 100, 0);
	ops = enqueue(&plain, 100, 0, 4);
	pass(250 * WEIR_MS);
	cr_assert_eq(play.operations, 1, "%s", id);
	pass(3 * WEIR_S);
	cr_assert_eq(play.operations, 4, "%s", id);
	finish();
	free(ops);
}

static void bt5(const char *id)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.flush_interval = 300 * WEIR_MS;
	begin(config, 0, 0);
	ops = enqueue(&plain, 1, 0, 1);
	pass(650 * WEIR_MS);
	cr_assert_eq(play.events[WEIR_BATCHER_FLUSH], 2, "%s", id);
	cr_assert_eq(look().flushes, 2, "%s", id);
	finish();
	free(ops);
}

static void bt6(const char *id)
{
	struct weir_operation *a, *b;

	begin(plan(), 1000, 0);
	a = enqueue(&plain, 800, 0, 1);
	b = enqueue(&plain, 300, 0, 1);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 1100, "%s", id);
	finish();
	free(a);
	free(b);
}

static void bt7(const char *id)
{
	static const struct weir_batch_handler watcher = {.process = process,
							  .time_max = 50 * WEIR_MS};
	struct weir_operation *ops;

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	play.work = 200 * WEIR_MS;
	ops = enqueue(&watcher, 100, 0, 1);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 100, "%s", id);
	pass(149 * WEIR_MS);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 100, "%s", id);
	pass(WEIR_MS);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 0, "%s", id);
	cr_assert_eq(play.events[WEIR_BATCHER_TIMED_OUT], 1, "%s", id);
	cr_assert_eq(weir_batcher_done(play.batcher, play.batches[0].batch), -ETIMEDOUT, "%s", id);
	cr_assert_eq(look().timed_out, 1, "%s", id);
	finish();
	free(ops);
}

static void bt8(const char *id)
{
	weir_time began;

	begin(plan(), 100, 0);
	weir_batcher_pause(play.batcher);
	weir_batcher_pause(play.batcher);
	began = given_time;
	cr_assert_eq(look().paused, 1, "%s", id);
	while (look().paused != 0)
		pass(WEIR_MS);
	cr_assert_geq(given_time - began, 500 * WEIR_MS, "%s", id);
	cr_assert_lt(given_time - began, 600 * WEIR_MS, "%s", id);
	cr_assert_eq(play.events[WEIR_BATCHER_PAUSE], 1, "%s", id);
	cr_assert_eq(play.events[WEIR_BATCHER_RESUME], 1, "%s", id);
	finish();
}

static void bt9(const char *id)
{
	static const struct weir_batch_handler watcher = {.process = process, .batch_max = 3};
	struct weir_operation *ops;

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	ops = enqueue(&watcher, 1, WEIR_OPERATION_BATCHABLE, 9);
	pass(100 * WEIR_MS);
	cr_assert_eq(play.begun, 3, "%s", id);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(play.batches[i].count, 3, "%s", id);
	finish();
	free(ops);
}

/*
 * With that many batches at once, and operations that are never done: begun batches, and operations
 * left in the buffer.
 */
static void full_table(const char *id, uint32_t batches, uint32_t batch_max, uint32_t flags,
		       unsigned operations, unsigned begun, uint32_t left)
{
	const struct weir_batch_handler watcher = {.process = process, .batch_max = batch_max};
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.batches = batches;
	begin(config, 0, WEIR_QUOTA_UNLIMITED);
	play.work = WEIR_FOREVER;
	ops = enqueue(&watcher, 1, flags, operations);
	pass(WEIR_S);
	cr_assert_eq(play.begun, begun, "%s: %u batches", id, play.begun);
	cr_assert_eq(look().queued, left, "%s: %u left", id, look().queued);
	cr_assert_eq(weir_batcher_done(play.batcher, play.batches[0].batch), 0, "%s", id);
	pass(WEIR_S);
	cr_assert_eq(look().queued, 0, "%s: when a batch slot is free again", id);
	finish();
	free(ops);
}

static void bt10(const char *id)
{
	full_table(id, 2, 0, 0, 3, 2, 1);
}

static void bt11(const char *id)
{
	full_table(id, 2, 2, WEIR_OPERATION_BATCHABLE, 5, 2, 1);
}

static void bt12(const char *id)
{
	static const struct weir_batch_handler one = {.process = process},
					       other = {.process = process};
	struct weir_batcher_config config = plan();
	struct weir_operation *a, *b, *c;

	config.batches = 1;
	begin(config, 0, WEIR_QUOTA_UNLIMITED);
	play.work = WEIR_FOREVER;
	a = enqueue(&one, 1, WEIR_OPERATION_BATCHABLE, 1);
	b = enqueue(&other, 1, WEIR_OPERATION_BATCHABLE, 1);
	c = enqueue(&one, 1, WEIR_OPERATION_BATCHABLE, 1);
	pass(WEIR_S);
	cr_assert_eq(play.begun, 1, "%s", id);
	cr_assert_eq(play.batches[0].first, a, "%s", id);
	cr_assert_eq(a->next, c, "%s", id);
	cr_assert_eq(look().queued, 1, "%s", id);
	cr_assert_eq(b->inside, play.batcher, "%s", id);
	finish();
	free(a);
	free(b);
	free(c);
}

/*
 * BT13 is what go-batcher's arithmetic releases per second, from a tenth of the capacity to ten
 * times as much. BT14 is the same with fractions of a unit, and debt, carried over: exact.
 */
static void bt13_14(const char *id)
{
	static const struct {
		uint64_t capacity;
		weir_dur flush;
		uint64_t cost, published, exact; /* per second, over ten seconds */
	} rows[] = {
		{9, 100, 1, 0, 9},        {19, 100, 1, 10, 19},
		{99, 100, 1, 90, 99},     {100, 100, 1, 100, 100},
		{100, 200, 1, 100, 100},  {333, 100, 1, 330, 333},
		{999, 1, 1, 0, 999},      {100, 100, 100, 1000, 100},
		{100, 100, 30, 300, 102}, {20000, 100, 15000, 150000, 21000},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t a_flush = rows[i].capacity * rows[i].flush / 1000;
		const uint64_t in_a_flush = (a_flush + rows[i].cost - 1) / rows[i].cost;
		struct weir_batcher_config config = plan();
		struct weir_operation *ops;

		cr_assert_eq(in_a_flush * rows[i].cost * 1000 / rows[i].flush, rows[i].published,
			     "%s, row %u: published", id, i);
		config.flush_interval = rows[i].flush * WEIR_MS;
		config.buffer = 100000;
		begin(config, rows[i].capacity, 0);
		ops = enqueue(&plain, rows[i].cost, 0, 10000);
		pass(10 * WEIR_S);
		cr_assert_eq(play.cost / 10, rows[i].exact, "%s, row %u: %lu", id, i,
			     (unsigned long)play.cost);
		finish();
		free(ops);
	}
}

/* GB19: the end is reported, and nothing is accepted after that. */
static void gb19(const char *id)
{
	struct weir_operation *ops, *late = make(&plain, 1, 0, 1);

	begin(plan(), 0, 0);
	ops = enqueue(&plain, 1, 0, 7);
	cr_assert_eq(weir_batcher_drain(play.batcher, 0), -EAGAIN, "%s", id);
	cr_assert_eq(weir_batcher_drain(play.batcher, 0), -EAGAIN, "%s", id);
	cr_assert_eq(play.events[WEIR_BATCHER_SHUTDOWN], 1, "%s", id);
	cr_assert_eq(play.values[WEIR_BATCHER_SHUTDOWN], 7, "%s", id);
	cr_assert_eq(weir_batcher_enqueue(play.batcher, late, 0), -ESHUTDOWN, "%s", id);
	cr_assert_eq(weir_batcher_destroy(play.batcher), -EBUSY, "%s", id);
	cr_assert_eq(weir_batcher_discard(play.batcher, NULL, NULL), 7, "%s", id);
	cr_assert_eq(weir_batcher_drain(play.batcher, 0), 0, "%s", id);
	finish();
	free(ops);
	free(late);
}

static const struct {
	const char *id;
	void (*play)(const char *id);
} vectors[] = {
	{"AZ1", az1},   {"AZ2", az2},   {"AZ3", az3},   {"BT1", bt1},
	{"BT2", bt2},   {"BT3", bt3},   {"BT4", bt4},   {"BT5", bt5},
	{"BT6", bt6},   {"BT7", bt7},   {"BT8", bt8},   {"BT9", bt9},
	{"BT10", bt10}, {"BT11", bt11}, {"BT12", bt12}, {"BT13, BT14", bt13_14},
	{"GB19", gb19},
};

Test(batcher, matches_published_or_exact_results)
{
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		vectors[i].play(vectors[i].id);
}

/* Properties of this batcher. */

Test(batcher, refuses_invalid_arguments)
{
	struct weir_operation *op = make(NULL, 1, 0, 1);
	struct weir_batcher_config config = plan();
	const struct weir_batch none = {.stamp = 0}, far = {.slot = 1 << 20, .stamp = 1};
	struct weir_batcher *batcher;
	char why[100];

	cr_assert_eq(weir_batcher_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "rate must not be NULL.");
	cr_assert_eq(weir_batcher_create(&config, &batcher), -EINVAL);
	cr_assert_null(batcher);
	cr_assert_eq(weir_batcher_destroy(NULL), 0);
	begin(plan(), 10, 0);
	config.rate = play.rate;
	config.by_hand = 0;
	cr_assert_eq(weir_batcher_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "A clock other than the default requires by_hand.");
	config.by_hand = 1;
	config.batches = 65536;
	cr_assert_eq(weir_batcher_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "batches is 65536, more than 65535.");
	cr_assert_eq(weir_batcher_enqueue(play.batcher, NULL, 0), -EINVAL);
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), -EINVAL, "no watcher");
	op->watcher = &plain;
	op->cost.units[1] = 1;
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), -EINVAL, "no such quota");
	op->cost = (struct weir_cost){{1}};
	op->flags = 8;
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), -EINVAL, "no such flag");
	op->flags = 0;
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), 0);
	cr_assert_eq(weir_batcher_enqueue(play.batcher, op, 0), -EBUSY, "twice");
	cr_assert_eq(look().accepted, 1);
	cr_assert_eq(weir_batcher_done(play.batcher, none), -EINVAL);
	cr_assert_eq(weir_batcher_done(play.batcher, far), -EINVAL);
	finish();
	free(op);
}

Test(batcher, a_full_buffer_leaks_no_demand)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *ops, *more = make(&plain, 5, 0, 1);

	config.buffer = 2;
	begin(config, 0, 0);
	ops = enqueue(&plain, 5, 0, 2);
	cr_assert_eq(weir_batcher_enqueue(play.batcher, more, 0), -EAGAIN);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 10);
	cr_assert_eq(look().full, 1);
	finish();
	free(ops);
	free(more);
}

Test(batcher, an_audit_resets_batches_never_reported_done)
{
	static const struct weir_batch_handler patient = {.process = process,
							  .time_max = WEIR_FOREVER};
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.audit_interval = WEIR_S;
	config.time_max = 5 * WEIR_S;
	begin(config, 0, WEIR_QUOTA_UNLIMITED);
	play.work = WEIR_FOREVER;
	ops = enqueue(&patient, 100, 0, 2);
	pass(4 * WEIR_S);
	cr_assert_eq(play.events[WEIR_BATCHER_AUDIT_SKIPPED], 4);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 200);
	pass(2 * WEIR_S);
	cr_assert_eq(play.events[WEIR_BATCHER_AUDIT_FAILED], 1);
	cr_assert_eq(play.values[WEIR_BATCHER_AUDIT_FAILED], 2);
	cr_assert_eq(weir_batcher_needs(play.batcher).units[0], 0);
	pass(WEIR_S);
	cr_assert_eq(play.events[WEIR_BATCHER_AUDIT_PASSED], 1);
	cr_assert_eq(weir_batcher_done(play.batcher, play.batches[0].batch), -ETIMEDOUT);
	cr_assert_eq(look().reset, 2);
	finish();
	free(ops);
}

Test(batcher, flushes_on_request)
{
	struct weir_operation *ops;

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	ops = enqueue(&plain, 1, 0, 3);
	weir_batcher_flush(play.batcher);
	pass(0);
	cr_assert_eq(play.operations, 3);
	finish();
	free(ops);
}

Test(batcher, a_pause_releases_nothing_and_can_be_ended)
{
	struct weir_operation *ops;

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	ops = enqueue(&plain, 1, 0, 3);
	weir_batcher_pause(play.batcher);
	weir_batcher_flush(play.batcher);
	pass(400 * WEIR_MS);
	cr_assert_eq(play.operations, 0);
	weir_batcher_resume(play.batcher);
	pass(0);
	cr_assert_eq(play.operations, 3);
	cr_assert_eq(play.events[WEIR_BATCHER_RESUME], 1);
	finish();
	free(ops);
}

Test(batcher, the_first_operation_after_a_while_waits_for_others)
{
	struct weir_operation *a, *b;

	begin(plan(), 0, WEIR_QUOTA_UNLIMITED);
	pass(250 * WEIR_MS);
	a = enqueue(&plain, 1, WEIR_OPERATION_BATCHABLE, 1);
	pass(49 * WEIR_MS);
	cr_assert_eq(play.operations, 0);
	b = enqueue(&plain, 1, WEIR_OPERATION_BATCHABLE, 1);
	pass(WEIR_MS);
	cr_assert_eq(play.begun, 1);
	cr_assert_eq(play.operations, 2);
	finish();
	free(a);
	free(b);
}

/* Operations and bytes, and a batch of both. */
Test(batcher, respects_several_quotas)
{
	struct weir_rate_config rate;
	struct weir_batcher_config config = plan();
	struct weir_operation *ops = make(&plain, 1, WEIR_OPERATION_BATCHABLE, 100);

	memset(&play, 0, sizeof(play));
	weir_rate_config_init(&rate);
	rate.quotas[0] = (struct weir_quota){.units = 100};
	rate.quotas[1] = (struct weir_quota){.units = 10000};
	rate.quota_count = 2;
	rate.slot = 100 * WEIR_MS;
	rate.clock = &given_clock;
	cr_assert_eq(weir_rate_create(&rate, &play.rate), 0);
	config.rate = play.rate;
	cr_assert_eq(weir_batcher_create(&config, &play.batcher), 0);
	for (unsigned i = 0; i < 100; i++) {
		ops[i].cost.units[1] = 200;
		cr_assert_eq(weir_batcher_enqueue(play.batcher, &ops[i], 0), 0);
	}
	pass(WEIR_S);
	cr_assert_eq(play.operations, 50);
	cr_assert_eq(play.begun, 10, "one batch a flush");
	cr_assert_eq(weir_batcher_needs(play.batcher).units[1], 50 * 200);
	finish();
	free(ops);
}

Test(batcher, wants_are_reported_when_they_change)
{
	struct weir_batcher_config config = plan();
	struct weir_operation *ops;

	config.wants = on_wants;
	begin(config, 0, 0);
	ops = enqueue(&plain, 7, 0, 3);
	pass(0);
	cr_assert_eq(play.wanted.units[0], 21);
	pass(10 * WEIR_S);
	cr_assert_eq(play.wants, 1);
	cr_assert_eq(weir_batcher_discard(play.batcher, NULL, NULL), 3);
	pass(0);
	cr_assert_eq(play.wanted.units[0], 0);
	cr_assert_eq(play.wants, 2);
	finish();
	free(ops);
}

/* With its thread, in real time: nothing is asserted about timing. */

static _Atomic unsigned worked;

static void work_and_free(void *arg, struct weir_batch batch, struct weir_operation *first,
			  size_t count)
{
	(void)count;
	while (first != NULL) {
		struct weir_operation *next = first->next;

		free(first);
		worked++;
		first = next;
	}
	cr_assert_eq(weir_batcher_done(*(struct weir_batcher **)arg, batch), 0);
}

Test(batcher, a_drain_loses_nothing, .timeout = 60)
{
	struct weir_batcher *batcher;
	const struct weir_batch_handler watcher = {
		.process = work_and_free, .arg = &batcher, .batch_max = 7};
	struct weir_batcher_config config;
	struct weir_rate_config pace;
	struct weir_operation *op;
	struct weir_rate *rate;

	weir_rate_config_init(&pace);
	pace.quotas[0] = (struct weir_quota){.units = 20000};
	pace.slot = 2 * WEIR_MS;
	cr_assert_eq(weir_rate_create(&pace, &rate), 0);
	weir_batcher_config_init(&config);
	config.rate = rate;
	config.buffer = 20;
	config.flush_interval = WEIR_MS;
	cr_assert_eq(weir_batcher_create(&config, &batcher), 0);
	for (unsigned i = 0; i < 500; i++) {
		op = make(&watcher, 1, i % 3 == 0 ? WEIR_OPERATION_BATCHABLE : 0, 1);
		cr_assert_eq(weir_batcher_enqueue(batcher, op, WEIR_FOREVER), 0);
	}
	cr_assert_eq(weir_batcher_drain(batcher, WEIR_FOREVER), 0);
	cr_assert_eq(worked, 500);
	op = make(&watcher, 1, 0, 1);
	cr_assert_eq(weir_batcher_enqueue(batcher, op, WEIR_FOREVER), -ESHUTDOWN);
	free(op);
	cr_assert_eq(weir_batcher_destroy(batcher), 0);
	weir_rate_destroy(rate);
}

static void *close_later(void *arg)
{
	struct weir_batcher_stats s;

	weir_batcher_stats_init(&s);
	do
		weir_batcher_stats_take(arg, &s);
	while (s.blocked == 0);
	cr_assert_eq(weir_batcher_discard(arg, NULL, NULL), 1);
	return NULL;
}

Test(batcher, an_enqueue_that_waits_for_room_fails_at_the_end, .timeout = 60)
{
	struct weir_operation *ops = make(&plain, 1, 0, 2);
	struct weir_batcher_config config;
	struct weir_rate_config closed;
	struct weir_batcher *batcher;
	struct weir_rate *rate;
	pthread_t thread;

	weir_rate_config_init(&closed);
	cr_assert_eq(weir_rate_create(&closed, &rate), 0);
	weir_batcher_config_init(&config);
	config.rate = rate;
	config.buffer = 1;
	cr_assert_eq(weir_batcher_create(&config, &batcher), 0);
	cr_assert_eq(weir_batcher_enqueue(batcher, &ops[0], WEIR_FOREVER), 0);
	cr_assert_eq(weir_batcher_enqueue(batcher, &ops[1], weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(weir_batcher_drain(batcher, 0), -ETIMEDOUT);
	cr_assert_eq(weir_batcher_enqueue(batcher, &ops[1], WEIR_FOREVER), -ESHUTDOWN);
	cr_assert_eq(weir_batcher_discard(batcher, NULL, NULL), 1);
	cr_assert_eq(weir_batcher_destroy(batcher), 0);

	cr_assert_eq(weir_batcher_create(&config, &batcher), 0);
	cr_assert_eq(weir_batcher_enqueue(batcher, &ops[0], WEIR_FOREVER), 0);
	cr_assert_eq(pthread_create(&thread, NULL, close_later, batcher), 0);
	cr_assert_eq(weir_batcher_enqueue(batcher, &ops[1], WEIR_FOREVER), -ESHUTDOWN);
	pthread_join(thread, NULL);
	cr_assert_eq(weir_batcher_destroy(batcher), 0);
	weir_rate_destroy(rate);
	free(ops);
}
