/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random combinations of everything: shedding, partitions or none, a queue in every order, costs,
 * bursts, calls let through, tokens detached, within the limit or on top of it, limits and shares
 * that change, shadow mode on and off, state saved and loaded, callbacks that call back, clocks
 * that start anywhere. There is no reference model of every decision. Instead, invariants are
 * checked after each step:
 *   - what is in flight is what is held, in total and in each partition;
 *   - a waiter has not been notified, and a notified caller waits no more;
 *   - no call waits in shadow mode, or while there is room for all calls that wait.
 * At the end every call has been served, and the limiter is as good as new.
 */

#include <errno.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS     100
#define STEPS     3000
#define PARTS_MAX 6 /* including partition 0 */
#define QUEUE     12
#define HOLDERS   400
#define SPARE     20 /* room for tokens that callbacks acquire */
#define HOLD      (20 * WEIR_MS)
#define LIMIT_MAX 40
#define NESTED    3 /* callbacks within callbacks */

struct rig;

/* A waiter, as the test knows it. */
struct caller {
	struct rig *rig;
	struct weir_wait wait;
	bool used, notified;
	bool let_through; /* notified in shadow mode, so it may hold nothing */
	uint16_t part;
	uint32_t cost;
};

struct rig {
	uint64_t seed, random;
	unsigned step, nested;
	struct weir_limiter *limiter;
	uint32_t parts; /* including partition 0; 1: no partitions */
	uint32_t costs; /* highest cost of a call */
	struct weir_limit_ops limit;
	struct weir_token held[HOLDERS];
	uint32_t holders;
	struct caller callers[QUEUE];
};

#define HOLDS(rig, condition)                                                                      \
	cr_assert(condition, "seed %lu, step %u: not true: %s", (unsigned long)(rig)->seed,        \
		  (rig)->step, #condition)

static weir_time virtual_time;

static weir_time virtual_now(const struct weir_clock *clock)
{
	(void)clock;
	return virtual_time;
}

static const struct weir_clock virtual_clock = {.now = virtual_now};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool one_in(struct rig *rig, uint32_t n)
{
	return below(&rig->random, n) == 0;
}

static struct weir_snapshot snapshot_of(const struct rig *rig)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(rig->limiter, &s);
	return s;
}

static struct weir_partition_snapshot partition_of(const struct rig *rig, uint32_t part)
{
	struct weir_partition_snapshot s;

	weir_partition_snapshot_init(&s);
	HOLDS(rig, weir_partition_snapshot_take(rig->limiter, part, &s) == 0);
	return s;
}

static struct weir_call random_call(struct rig *rig)
{
	return (struct weir_call){
		.partition = (uint16_t)below(&rig->random, rig->parts),
		.cost = 1 + below(&rig->random, rig->costs),
		.priority = (int16_t)(WEIR_PRIORITY_MIN +
				      (int16_t)below(&rig->random,
						     WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)),
	};
}

static void keep(struct rig *rig, const struct weir_token *token)
{
	HOLDS(rig, rig->holders < HOLDERS);
	rig->held[rig->holders++] = *token;
}

static void try_acquire(struct rig *rig)
{
	struct weir_call call = random_call(rig);
	struct weir_token token;

	if (rig->holders >= HOLDERS - SPARE)
		return;
	if (one_in(rig, 30))
		call.flags = WEIR_CALL_BYPASS;
	if (weir_try_acquire_for(rig->limiter, &call, &token) == 0)
		keep(rig, &token);
}

static void release(struct rig *rig)
{
	struct weir_token token;
	uint32_t i;

	if (rig->holders == 0)
		return;
	i = below(&rig->random, rig->holders);
	token = rig->held[i];
	rig->held[i] = rig->held[--rig->holders];
	weir_release(rig->limiter, &token, (enum weir_outcome)below(&rig->random, 6));
}

static void detach(struct rig *rig)
{
	if (rig->holders > 0)
		HOLDS(rig, weir_detach(rig->limiter,
				       &rig->held[below(&rig->random, rig->holders)]) == 0);
}

static void move_limit(struct rig *rig)
{
	uint32_t most = one_in(rig, 4) ? LIMIT_MAX : 10;

	HOLDS(rig, weir_limit_set(rig->limiter, 1 + below(&rig->random, most)) == 0);
}

/* Save the limiter's state and load it again, as recent or as old. */
static void remember(struct rig *rig)
{
	unsigned char memory[WEIR_SAVED_MAX];
	int size = weir_limiter_save(rig->limiter, memory, sizeof(memory));

	HOLDS(rig, size > 0);
	HOLDS(rig, weir_limiter_load(rig->limiter, memory, (size_t)size,
				     below(&rig->random, 2) * 100 * WEIR_S, NULL, 0) == 0);
}

/* Called from a callback. A waiter that was notified before already has its permit. */
static void cancel_another(struct rig *rig, const struct caller *self)
{
	struct caller *c = &rig->callers[below(&rig->random, QUEUE)];
	struct weir_token token;
	int r;

	if (!c->used || c == self || c->notified)
		return;
	r = weir_cancel(rig->limiter, &c->wait, &token);
	HOLDS(rig, r == 0 || r == -EALREADY);
	c->used = false;
	if (r == -EALREADY)
		weir_release(rig->limiter, &token, WEIR_IGNORE);
}

static void call_back(struct rig *rig, const struct caller *self)
{
	switch (below(&rig->random, 6)) {
	case 0:
		release(rig);
		break;
	case 1:
		move_limit(rig);
		break;
	case 2:
		try_acquire(rig);
		break;
	case 3:
		weir_shadow_set(rig->limiter, snapshot_of(rig).shadow != 0);
		break;
	case 4:
		cancel_another(rig, self);
		break;
	default:
		remember(rig);
		break;
	}
}

static void notify(void *arg)
{
	struct caller *c = arg;
	struct rig *rig = c->rig;

	HOLDS(rig, c->used && !c->notified);
	c->notified = true;
	c->let_through = snapshot_of(rig).shadow != 0;
	if (rig->nested == NESTED || !one_in(rig, 4))
		return;
	rig->nested++;
	call_back(rig, c);
	rig->nested--;
}

static void enter(struct rig *rig)
{
	struct weir_call call = random_call(rig);
	struct caller *c = rig->callers;

	while (c < &rig->callers[QUEUE] && c->used)
		c++;
	if (c == &rig->callers[QUEUE])
		return;
	*c = (struct caller){.rig = rig, .used = true, .part = call.partition, .cost = call.cost};
	if (weir_enqueue_for(rig->limiter, &call, notify, c, &c->wait) == 0)
		return;
	HOLDS(rig, !c->notified);
	c->used = false;
}

static void poll(struct rig *rig, struct caller *c)
{
	bool notified = c->notified;
	struct weir_token token;
	int r = weir_poll(rig->limiter, &c->wait, &token);

	HOLDS(rig, r == 0 || (r == -EAGAIN && !notified));
	HOLDS(rig, (r == 0) == c->notified);
	if (r != 0)
		return;
	c->used = false;
	keep(rig, &token);
}

static void cancel(struct rig *rig, struct caller *c)
{
	bool notified = c->notified;
	struct weir_token token;
	int r = weir_cancel(rig->limiter, &c->wait, &token);

	HOLDS(rig, r == (notified ? -EALREADY : 0));
	c->used = false;
	if (notified)
		keep(rig, &token);
}

static void come_back(struct rig *rig, bool give_up)
{
	struct caller *c = &rig->callers[below(&rig->random, QUEUE)];

	if (!c->used || rig->holders >= HOLDERS - SPARE)
		return;
	if (give_up)
		cancel(rig, c);
	else
		poll(rig, c);
}

/* Shares with a sum of at most 1, some of them too small for a permit. */
static void draw_shares(struct rig *rig, struct weir_partition *partitions)
{
	static const char *const names[PARTS_MAX] = {"unknown", "a", "b", "c", "d", "e"};
	double left = 1;

	for (uint32_t i = rig->parts; i-- > 0;) {
		struct weir_partition *p = &partitions[i];

		*p = (struct weir_partition){.name = names[i]};
		if (!one_in(rig, 3))
			p->share = left * below(&rig->random, 100) / 150.0;
		if (one_in(rig, 20) && left > 0.1)
			p->share = 1e-12;
		left -= p->share;
		if (one_in(rig, 4))
			p->cap = p->share + (1 - p->share) * (1 + below(&rig->random, 99)) / 100.0;
		if (one_in(rig, 6))
			p->max = 1 + below(&rig->random, 6);
	}
}

static void move_shares(struct rig *rig)
{
	struct weir_partition partitions[PARTS_MAX];
	char why[100] = "";
	int r;

	if (rig->parts == 1)
		return;
	draw_shares(rig, partitions);
	r = weir_partitions_set(rig->limiter, partitions, rig->parts, why, sizeof(why));
	cr_assert_eq(r, 0, "seed %lu: %s", (unsigned long)rig->seed, why);
}

/* Permits held. Callers that were notified and have not polled hold from 1 up to their cost. */
static void check_in_flight(const struct rig *rig, const struct weir_snapshot *s)
{
	uint32_t held = 0, least_notified = 0, most_notified = 0, sum = 0;

	for (uint32_t i = 0; i < rig->holders; i++)
		held += rig->held[i].cost;
	for (uint32_t i = 0; i < QUEUE; i++)
		if (rig->callers[i].used && rig->callers[i].notified) {
			least_notified += !rig->callers[i].let_through;
			most_notified += rig->callers[i].cost;
		}
	HOLDS(rig, s->inflight >= held + least_notified && s->inflight <= held + most_notified);
	if (rig->parts == 1)
		return;
	for (uint32_t i = 0; i < rig->parts; i++)
		sum += partition_of(rig, i).inflight;
	HOLDS(rig, s->inflight == sum);
}

/* The waiters of one partition, as the limiter sees them. */
struct row {
	uint32_t cap, inflight, kept;
	bool capped; /* a call waits for the cap: others may be behind it */
};

static struct row row_of(const struct rig *rig, uint32_t part, uint32_t room)
{
	struct weir_partition_snapshot s;

	if (rig->parts == 1)
		return (struct row){.cap = room};
	s = partition_of(rig, part);
	return (struct row){.cap = s.cap, .inflight = s.inflight, .kept = s.reserved};
}

static uint32_t cost_of(const struct caller *c, const struct row *row, uint32_t room)
{
	return least(c->cost, least(row->cap, room));
}

static bool waits(const struct caller *c)
{
	return c->used && !c->notified;
}

/*
 * If every waiter would find room, except those that wait for their cap, then a waiter with none in
 * front of it should have been served.
 */
static void check_served(const struct rig *rig, const struct weir_snapshot *s)
{
	const uint32_t room = s->limit + s->burst;
	uint32_t kept = 0;
	bool all_fit = true, any = false;
	struct row rows[PARTS_MAX];

	for (uint32_t i = 0; i < rig->parts; i++) {
		rows[i] = row_of(rig, i, room);
		kept += rows[i].kept;
	}
	for (const struct caller *c = rig->callers; c < &rig->callers[QUEUE]; c++) {
		struct row *row = &rows[c->part];

		if (!waits(c))
			continue;
		if (rig->parts > 1 && row->inflight + cost_of(c, row, room) > row->cap)
			row->capped = true;
		else if (s->inflight + cost_of(c, row, room) + kept > room)
			all_fit = false;
	}
	for (const struct caller *c = rig->callers; c < &rig->callers[QUEUE]; c++)
		any = any || (waits(c) && !rows[c->part].capped);
	HOLDS(rig, !any || !all_fit);
}

static void check(const struct rig *rig)
{
	struct weir_snapshot s = snapshot_of(rig);
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < QUEUE; i++)
		waiting += waits(&rig->callers[i]);
	HOLDS(rig, s.waiting == waiting);
	HOLDS(rig, s.shadow == 0 || waiting == 0);
	check_in_flight(rig, &s);
	check_served(rig, &s);
}

static void step(struct rig *rig)
{
	uint32_t what = below(&rig->random, 100);

	virtual_time += below(&rig->random, 2) * below(&rig->random, 3 * WEIR_MS);
	if (what < 35)
		try_acquire(rig);
	else if (what < 60)
		release(rig);
	else if (what < 78)
		enter(rig);
	else if (what < 92)
		come_back(rig, what < 80);
	else if (what < 95)
		move_limit(rig);
	else if (what == 95)
		move_shares(rig);
	else if (what == 96)
		weir_shadow_set(rig->limiter, one_in(rig, 3));
	else if (what == 97)
		virtual_time += HOLD;
	else if (what == 98)
		detach(rig);
	check(rig);
}

static void configure(struct rig *rig, struct weir_config *config)
{
	weir_config_init(config);
	config->queue = QUEUE;
	config->order = (enum weir_order)below(&rig->random, 3);
	config->queue_stand = (1 + below(&rig->random, 50)) * WEIR_MS;
	config->partition_hold = HOLD;
	config->shed = below(&rig->random, 2);
	config->burst = below(&rig->random, 2) * below(&rig->random, 8);
	config->windowing = (enum weir_windowing)below(&rig->random, 2);
	config->window_min = config->window_max = 5 * WEIR_MS;
	config->window_samples = 3;
	config->track = 8 * below(&rig->random, 2);
	config->shadow = one_in(rig, 10);
	config->stripes = 1 + below(&rig->random, 2);
	config->clock = &virtual_clock;
}

static void begin(struct rig *rig, uint64_t seed)
{
	/* Zero, soon after it, and just before a time overflows 62, 63 or 64 bits. */
	static const weir_time starts[] = {
		0,
		1,
		WEIR_S,
		(UINT64_C(1) << 62) - WEIR_S / 10,
		(UINT64_C(1) << 63) - WEIR_S / 10,
		UINT64_MAX - WEIR_S / 10,
	};
	struct weir_partition partitions[PARTS_MAX];
	struct weir_settable_config settable;
	struct weir_config config;

	*rig = (struct rig){.seed = seed, .random = seed};
	rig->parts = one_in(rig, 3) ? 1 : 2 + below(&rig->random, PARTS_MAX - 1);
	rig->costs = one_in(rig, 2) ? 1 : 1 + below(&rig->random, 6);
	configure(rig, &config);
	settable = (struct weir_settable_config){.initial = 1 + below(&rig->random, 20)};
	rig->limit = weir_settable;
	if (one_in(rig, 2))
		rig->limit.flags |= WEIR_LIMIT_DETACHED;
	config.limit = &rig->limit;
	config.limit_config = &settable;
	if (rig->parts > 1) {
		draw_shares(rig, partitions);
		config.partitions = partitions;
		config.partition_count = rig->parts;
	}
	virtual_time = starts[below(&rig->random, 6)];
	cr_assert_eq(weir_limiter_create(&config, &rig->limiter), 0);
}

/* The calls that still wait need only poll from time to time. */
static void serve_all(struct rig *rig)
{
	uint32_t left = QUEUE;

	for (int round = 0; round < 60 && left > 0; round++) {
		virtual_time += HOLD + WEIR_MS;
		left = 0;
		for (uint32_t i = 0; i < QUEUE; i++) {
			if (rig->callers[i].used)
				poll(rig, &rig->callers[i]);
			left += rig->callers[i].used;
			while (rig->holders > 0)
				release(rig);
		}
		check(rig);
	}
	HOLDS(rig, left == 0);
}

/* All permits of the limit are available, once no shares reserve any. */
static void check_whole(struct rig *rig)
{
	const struct weir_partition none[PARTS_MAX] = {{.name = "unknown"}, {.name = "a"},
						       {.name = "b"},       {.name = "c"},
						       {.name = "d"},       {.name = "e"}};
	const struct weir_call call = {.priority = WEIR_PRIORITY_MAX};
	struct weir_token token;
	uint32_t room;

	if (rig->parts > 1)
		HOLDS(rig, weir_partitions_set(rig->limiter, none, rig->parts, NULL, 0) == 0);
	HOLDS(rig, weir_limit_set(rig->limiter, LIMIT_MAX) == 0);
	room = LIMIT_MAX + snapshot_of(rig).burst;
	for (uint32_t i = 0; i < room; i++) {
		HOLDS(rig, weir_try_acquire_for(rig->limiter, &call, &token) == 0);
		HOLDS(rig, token.inflight == i + 1);
	}
	HOLDS(rig, weir_try_acquire_for(rig->limiter, &call, &token) == -EAGAIN);
}

static void finish(struct rig *rig)
{
	struct weir_snapshot s;

	weir_shadow_set(rig->limiter, false);
	while (rig->holders > 0)
		release(rig);
	serve_all(rig);
	s = snapshot_of(rig);
	HOLDS(rig, s.inflight == 0 && s.waiting == 0 && s.passing == 0);
	HOLDS(rig, s.double_released == 0);
	HOLDS(rig, s.admitted == s.succeeded + s.ignored + s.dropped + s.timed_out + s.cancelled +
					 s.failed);
	check_whole(rig);
	weir_limiter_destroy(rig->limiter);
}

Test(mixture, loses_no_permit_and_forgets_no_waiter)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct rig rig;

		begin(&rig, seed);
		for (rig.step = 0; rig.step < STEPS; rig.step++)
			step(&rig);
		finish(&rig);
	}
}
