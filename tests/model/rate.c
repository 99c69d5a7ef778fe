/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations on a rate. Each result is compared with a simple reference model (the twin). It
 * has no slots' origin, no remainders and no lapsing in retrospect: it goes from slot to slot, adds
 * exact fractions of a unit in 128 bits, and keeps a list of the waiters.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS  120
#define STEPS  3000
#define SEATS  6
#define QUOTAS 2

/* One unit, in fractions: a multiple of 100 percent of all periods that the test uses. */
#define WHOLE (UINT64_C(100) * 3 * 7 * 60 * WEIR_S)

__extension__ typedef __int128 number;

struct bucket {
	struct weir_quota quota;
	number left; /* in fractions; below zero: debt; including part */
	number part; /* the fraction of left that is not a whole unit yet */
};

struct caller {
	struct weir_wait wait;
	struct weir_cost cost;
	unsigned notified;
	bool used, served;
};

struct twin {
	struct bucket bucket[QUOTAS];
	unsigned quotas;
	weir_dur slot;
	weir_time edge; /* when the next slot begins */
	unsigned percent;
	uint64_t pause; /* slots that bring nothing */
	uint64_t stays; /* slots until the percentage rises */
	uint64_t step;
	weir_time lowered;
	uint64_t admitted, refused, abandoned;
	unsigned line[SEATS], waiting;
};

struct rig {
	uint64_t seed, random;
	weir_dur recovery;
	struct weir_rate *rate;
	struct twin twin;
	struct caller callers[SEATS];
};

static weir_time virtual_time;

static weir_time virtual_now(const struct weir_clock *self)
{
	(void)self;
	return virtual_time;
}

static const struct weir_clock virtual_clock = {.now = virtual_now};

static void notify(void *arg)
{
	((struct caller *)arg)->notified++;
}

static void twin_lapse(struct bucket *b, number most)
{
	if ((b->left - b->part) / WHOLE > most && b->quota.flags == 0)
		b->left = most * WHOLE + b->part;
}

static bool limited(const struct bucket *b)
{
	return b->quota.flags == 0;
}

static number depth(const struct twin *t, const struct bucket *b)
{
	const number worth = (number)t->slot * b->quota.units;

	if (b->quota.units == 0)
		return 0;
	return (worth + b->quota.period - 1) / b->quota.period + b->quota.burst;
}

/* Whole units. */
static number units_left(const struct twin *t, const struct bucket *b)
{
	const number whole = (b->left - b->part) / WHOLE;

	return whole < depth(t, b) ? whole : depth(t, b);
}

/* Begin a slot: add what it brings; what exceeds the depth lapses. */
static void twin_slot(struct twin *t)
{
	const bool worthless = t->pause > 0;

	for (unsigned i = 0; i < t->quotas; i++) {
		struct bucket *b = &t->bucket[i];
		number worth = 0;

		if (limited(b) && !worthless)
			worth = (number)t->slot * b->quota.units * t->percent *
				(WHOLE / 100 / b->quota.period);
		b->left += worth;
		b->part = (b->part + worth) % WHOLE;
		twin_lapse(b, depth(t, b));
	}
	if (worthless) {
		t->pause--;
	} else if (t->percent < 100 && --t->stays == 0) {
		t->percent = t->percent + 5 < 100 ? t->percent + 5 : 100;
		t->stays = t->step;
	}
	t->edge += t->slot;
}

static bool twin_take(struct twin *t, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < t->quotas; i++)
		if (cost->units[i] > 0 && limited(&t->bucket[i]) &&
		    units_left(t, &t->bucket[i]) <= 0)
			return false;
	for (unsigned i = 0; i < t->quotas; i++) {
		struct bucket *b = &t->bucket[i];

		if (cost->units[i] == 0 || !limited(b))
			continue;
		b->left -= (number)cost->units[i] * WHOLE;
	}
	t->admitted++;
	return true;
}

static void twin_serve(struct rig *rig)
{
	struct twin *t = &rig->twin;

	while (t->waiting > 0 && twin_take(t, &rig->callers[t->line[0]].cost)) {
		rig->callers[t->line[0]].served = true;
		t->waiting--;
		memmove(&t->line[0], &t->line[1], t->waiting * sizeof(t->line[0]));
	}
}

static uint64_t draw_units(struct rig *rig)
{
	switch (below(&rig->random, 5)) {
	case 0:
		return 1 + below(&rig->random, 400);
	case 1:
		return 0;
	default:
		return 1 + below(&rig->random, 4);
	}
}

static struct weir_cost draw_cost(struct rig *rig)
{
	struct weir_cost cost = {.units = {0}};

	for (unsigned i = 0; i < rig->twin.quotas; i++)
		cost.units[i] = draw_units(rig);
	return cost;
}

static struct weir_quota draw_quota(struct rig *rig)
{
	static const weir_dur periods[] = {WEIR_S, 3 * WEIR_S, 60 * WEIR_S, 7 * WEIR_S};
	static const uint64_t units[] = {0, 1, 9, 75, 333, 1000, 20000, 12345678901};

	return (struct weir_quota){
		.units = units[below(&rig->random, 8)],
		.period = periods[below(&rig->random, 4)],
		.burst = below(&rig->random, 2) * below(&rig->random, 100),
		.flags = below(&rig->random, 12) == 0 ? WEIR_QUOTA_UNLIMITED : 0,
	};
}

static void try_it(struct rig *rig)
{
	const struct weir_cost cost = draw_cost(rig);
	struct twin *t = &rig->twin;
	const bool expected = t->waiting == 0 && twin_take(t, &cost);

	cr_assert_eq(weir_rate_try_for(rig->rate, &cost), expected ? 0 : -EAGAIN, "seed %lu",
		     (unsigned long)rig->seed);
	t->refused += !expected;
}

static void enter(struct rig *rig)
{
	struct twin *t = &rig->twin;
	struct caller *c;
	unsigned i = 0;

	while (i < SEATS && rig->callers[i].used)
		i++;
	if (i == SEATS)
		return;
	c = &rig->callers[i];
	*c = (struct caller){.cost = draw_cost(rig), .used = true};
	t->line[t->waiting++] = i;
	twin_serve(rig);
	cr_assert_eq(weir_rate_enqueue(rig->rate, &c->cost, notify, c, &c->wait), 0);
}

static void leave(struct rig *rig)
{
	const unsigned i = below(&rig->random, SEATS);
	struct caller *c = &rig->callers[i];
	struct twin *t = &rig->twin;

	if (!c->used)
		return;
	cr_assert_eq(weir_rate_cancel(rig->rate, &c->wait), c->served ? -EALREADY : 0, "seed %lu",
		     (unsigned long)rig->seed);
	c->used = false;
	for (unsigned k = 0; k < t->waiting; k++) {
		if (t->line[k] != i)
			continue;
		t->waiting--;
		memmove(&t->line[k], &t->line[k + 1], (t->waiting - k) * sizeof(t->line[0]));
		t->abandoned++;
		twin_serve(rig);
		break;
	}
}

static void poll(struct rig *rig)
{
	struct caller *c = &rig->callers[below(&rig->random, SEATS)];

	if (!c->used)
		return;
	cr_assert_eq(weir_rate_poll(rig->rate, &c->wait), c->served ? 0 : -EAGAIN, "seed %lu",
		     (unsigned long)rig->seed);
	c->used = !c->served;
}

static void settle(struct rig *rig)
{
	const unsigned i = below(&rig->random, rig->twin.quotas);
	const uint64_t taken = below(&rig->random, 20), actual = below(&rig->random, 20);
	struct bucket *b = &rig->twin.bucket[i];

	if (limited(b)) {
		b->left += ((number)taken - (number)actual) * WHOLE;
		twin_lapse(b, depth(&rig->twin, b));
		if (actual < taken)
			twin_serve(rig);
	}
	cr_assert_eq(weir_rate_settle(rig->rate, i, taken, actual), 0);
}

static void set(struct rig *rig)
{
	const unsigned i = below(&rig->random, rig->twin.quotas);
	const struct weir_quota value = draw_quota(rig);
	struct bucket *b = &rig->twin.bucket[i];
	const number rest = b->part * b->quota.period;

	/* The remainder of a unit is kept to 1/100 of a nanosecond of the period. */
	b->left -= b->part;
	b->part = rest / b->quota.period / (WHOLE / 100 / b->quota.period);
	b->part = b->part * value.period / b->quota.period * (WHOLE / 100 / value.period);
	b->left += b->part;
	b->quota = value;
	twin_lapse(b, depth(&rig->twin, b));
	twin_serve(rig);
	cr_assert_eq(weir_rate_set(rig->rate, i, &value), 0);
}

static void throttle(struct rig *rig)
{
	const weir_dur retry = below(&rig->random, 2) * below(&rig->random, 1000) * WEIR_MS;
	const weir_time began = rig->twin.edge - rig->twin.slot;
	const weir_time until = virtual_time + retry;
	struct twin *t = &rig->twin;
	uint64_t pause = 0;

	while ((int64_t)(until - (began + (pause + 1) * t->slot)) > 0)
		pause++;
	t->pause = pause > t->pause ? pause : t->pause;
	t->stays = t->step;
	if (t->percent == 100 || virtual_time - t->lowered >= rig->recovery) {
		t->lowered = virtual_time;
		t->percent = t->percent * 70 / 100 > 10 ? t->percent * 70 / 100 : 10;
	}
	for (unsigned i = 0; i < t->quotas; i++)
		twin_lapse(&t->bucket[i], 0);
	weir_rate_throttled(rig->rate, retry);
}

static void pass(struct rig *rig)
{
	struct twin *t = &rig->twin;
	const weir_dur most = below(&rig->random, 20) == 0 ? 100 * t->slot : 2 * t->slot;

	virtual_time += draw(&rig->random) % most;
	while ((int64_t)(virtual_time - t->edge) >= 0)
		twin_slot(t);
	twin_serve(rig);
	(void)weir_rate_serve(rig->rate);
}

/* A waiter is served at the time that the rate returns, and not a nanosecond before. */
static void wait_for_next(struct rig *rig)
{
	struct twin *t = &rig->twin;
	const weir_time next = weir_rate_serve(rig->rate);
	const unsigned waiting = t->waiting;

	if (next == WEIR_FOREVER || next - virtual_time > 3600 * WEIR_S)
		return;
	cr_assert_gt((int64_t)(next - virtual_time), 0);
	virtual_time = next - 1;
	while ((int64_t)(virtual_time - t->edge) >= 0)
		twin_slot(t);
	twin_serve(rig);
	cr_assert_eq(t->waiting, waiting, "seed %lu: a turn is early", (unsigned long)rig->seed);
	virtual_time = next;
	while ((int64_t)(virtual_time - t->edge) >= 0)
		twin_slot(t);
	twin_serve(rig);
	cr_assert_lt(t->waiting, waiting, "seed %lu: a turn is late", (unsigned long)rig->seed);
	(void)weir_rate_serve(rig->rate);
}

static void compare(struct rig *rig)
{
	const struct twin *t = &rig->twin;
	const unsigned long seed = (unsigned long)rig->seed;
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rig->rate, &s);
	cr_assert_eq(s.admitted, t->admitted, "seed %lu", seed);
	cr_assert_eq(s.refused, t->refused, "seed %lu", seed);
	cr_assert_eq(s.abandoned, t->abandoned, "seed %lu", seed);
	cr_assert_eq(s.waiting, t->waiting, "seed %lu", seed);
	cr_assert_eq(s.percent, t->pause > 0 ? 0 : t->percent, "seed %lu", seed);
	for (unsigned i = 0; i < t->quotas; i++) {
		const number left = units_left(t, &t->bucket[i]);

		if (!limited(&t->bucket[i]))
			continue;
		cr_assert_eq(s.quotas[i].available, left > 0 ? (uint64_t)left : 0, "seed %lu",
			     seed);
		cr_assert_eq(s.quotas[i].debt, left < 0 ? (uint64_t)-left : 0, "seed %lu", seed);
	}
	for (unsigned i = 0; i < SEATS; i++)
		cr_assert_eq(rig->callers[i].notified,
			     rig->callers[i].served && rig->callers[i].notified > 0,
			     "seed %lu: notified once", seed);
}

static void step(struct rig *rig)
{
	switch (below(&rig->random, 40)) {
	case 0:
		set(rig);
		break;
	case 1:
		throttle(rig);
		break;
	case 2:
	case 3:
		settle(rig);
		break;
	case 4:
	case 5:
		wait_for_next(rig);
		break;
	case 6:
	case 7:
	case 8:
		enter(rig);
		break;
	case 9:
		leave(rig);
		break;
	case 10:
	case 11:
	case 12:
		poll(rig);
		break;
	case 13:
	case 14:
	case 15:
	case 16:
	case 17:
	case 18:
	case 19:
	case 20:
		pass(rig);
		break;
	default:
		try_it(rig);
	}
}

static void begin(struct rig *rig, uint64_t seed)
{
	static const weir_dur slots[] = {WEIR_MS, 20 * WEIR_MS, 123456789, 200 * WEIR_MS};
	struct weir_rate_config config;
	struct twin *t = &rig->twin;

	*rig = (struct rig){.seed = seed, .random = seed};
	virtual_time = draw(&rig->random);
	weir_rate_config_init(&config);
	t->quotas = config.quota_count = 1 + below(&rig->random, QUOTAS);
	t->slot = config.slot = slots[below(&rig->random, 4)];
	rig->recovery = config.recovery = 200 * WEIR_MS + below(&rig->random, 1000) * WEIR_MS;
	t->step = rig->recovery / t->slot;
	t->percent = 100;
	config.clock = &virtual_clock;
	config.queue = SEATS;
	for (unsigned i = 0; i < t->quotas; i++)
		t->bucket[i].quota = config.quotas[i] = draw_quota(rig);
	t->edge = virtual_time;
	twin_slot(t);
	cr_assert_eq(weir_rate_create(&config, &rig->rate), 0);
}

Test(rate, matches_the_reference_model)
{
	struct rig rig;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(&rig, seed);
		for (unsigned i = 0; i < STEPS; i++) {
			step(&rig);
			compare(&rig);
		}
		weir_rate_destroy(rig.rate);
	}
}
