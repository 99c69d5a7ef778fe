/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations on a limiter that may lend permits to CPUs. Each decision is compared with that
 * of a simple reference model, the twin, which has only a count and a limit. The thread moves from
 * CPU to CPU, the limit is at times far above the calls in flight and at times near them, and calls
 * come in waves.
 */

#include <errno.h>
#include <sched.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS   40
#define STEPS   6000
#define TOP     400
#define HOLDERS TOP

struct twin {
	uint32_t limit, inflight;
	bool waits; /* a call waits; at most one */
	uint32_t wanted;
	uint64_t admitted, rejected, released, copies;
	uint64_t lent; /* of those admitted */
};

struct rig {
	uint64_t seed, random;
	weir_time now;
	struct weir_limiter *limiter;
	struct twin twin;
	struct weir_wait wait;
	struct weir_token held[HOLDERS];
	uint32_t holders, wave;
	cpu_set_t allowed;
};

static weir_time virtual_time;

static weir_time virtual_now(const struct weir_clock *clock)
{
	(void)clock;
	return virtual_time;
}

static const struct weir_clock virtual_clock = {.now = virtual_now};

/* Move to a random CPU. If that is not allowed, the thread stays where the kernel puts it. */
static void move(struct rig *rig)
{
	unsigned cpu = below(&rig->random, (uint32_t)CPU_COUNT(&rig->allowed));
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static uint32_t affordable(const struct rig *rig, uint32_t cost)
{
	return cost < rig->twin.limit ? cost : rig->twin.limit;
}

/* A waiter is served as soon as there is room. */
static void serve(struct rig *rig)
{
	struct twin *t = &rig->twin;
	struct weir_token token;
	const uint32_t cost = affordable(rig, t->wanted);
	const bool expected = t->waits && t->inflight + cost <= t->limit;
	int r;

	if (!t->waits)
		return;
	r = weir_poll_at(rig->limiter, rig->now, &rig->wait, &token);
	cr_assert_eq(r, expected ? 0 : -EAGAIN, "seed %lu", (unsigned long)rig->seed);
	if (!expected)
		return;
	cr_assert_eq(token.cost, cost);
	t->waits = false;
	t->inflight += cost;
	t->admitted++;
	rig->held[rig->holders++] = token;
}

static void try_acquire(struct rig *rig, uint32_t wanted)
{
	const struct weir_call call = {.cost = wanted};
	const uint32_t cost = affordable(rig, wanted);
	struct twin *t = &rig->twin;
	struct weir_token token;
	bool expected = !t->waits && t->inflight + cost <= t->limit;
	int r = wanted == 1 ? weir_try_acquire_at(rig->limiter, rig->now, &token)
			    : weir_try_acquire_for_at(rig->limiter, &call, rig->now, &token);

	cr_assert_eq(r, expected ? 0 : -EAGAIN, "seed %lu: %u of %u", (unsigned long)rig->seed,
		     t->inflight, t->limit);
	t->rejected += !expected;
	if (!expected)
		return;
	t->inflight += cost;
	t->admitted++;
	t->lent += token.home != 0;
	/* The token's number is too high by at most what may be idle, and on the same side of half. */
	cr_assert(token.inflight >= t->inflight && token.inflight <= t->inflight + TOP / 4);
	if (2 * (uint64_t)token.inflight >= t->limit)
		cr_assert_eq(token.inflight, t->inflight);
	rig->held[rig->holders++] = token;
}

static void enter(struct rig *rig)
{
	struct twin *t = &rig->twin;
	const struct weir_call call = {.cost = 1 + below(&rig->random, 20)};

	if (t->waits)
		return;
	cr_assert_eq(weir_enqueue_for_at(rig->limiter, &call, rig->now, NULL, NULL, &rig->wait), 0);
	t->waits = true;
	t->wanted = call.cost;
	serve(rig);
}

static void leave(struct rig *rig)
{
	struct weir_token token;

	if (!rig->twin.waits)
		return;
	cr_assert_eq(weir_cancel_at(rig->limiter, rig->now, &rig->wait, &token), 0);
	rig->twin.waits = false;
}

static void release(struct rig *rig)
{
	struct weir_token copy;
	uint32_t i;

	if (rig->holders == 0)
		return;
	i = below(&rig->random, rig->holders);
	copy = rig->held[i];
	rig->twin.inflight -= rig->held[i].cost;
	rig->twin.released++;
	weir_release_at(rig->limiter, rig->now, &rig->held[i], WEIR_SUCCESS);
	rig->held[i] = rig->held[--rig->holders];
	if (rig->twin.inflight == 0 && !rig->twin.waits) {
		weir_release_at(rig->limiter, rig->now, &copy, WEIR_SUCCESS);
		rig->twin.copies++;
	}
	serve(rig);
}

static void set_limit(struct rig *rig)
{
	const bool near = below(&rig->random, 3) == 0;

	rig->twin.limit = near ? 1 + below(&rig->random, 40) : TOP - below(&rig->random, 100);
	cr_assert_eq(weir_limit_set(rig->limiter, rig->twin.limit), 0);
	serve(rig);
}

static void compare(const struct rig *rig)
{
	const struct twin *t = &rig->twin;
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(rig->limiter, &s);
	cr_assert_eq(s.limit, t->limit, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.inflight, t->inflight, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(weir_inflight(rig->limiter), t->inflight);
	cr_assert_eq(s.waiting, t->waits);
	cr_assert(s.admitted == t->admitted && s.rejected == t->rejected);
	cr_assert_eq(s.succeeded, t->released);
	cr_assert_eq(s.double_released, t->copies, "seed %lu", (unsigned long)rig->seed);
}

/* In a wave more calls come than end, until it is high enough; then they end. */
static void come_or_go(struct rig *rig)
{
	if (below(&rig->random, 200) == 0)
		rig->wave = below(&rig->random, 3) == 0 ? TOP : below(&rig->random, TOP / 5);
	if (below(&rig->random, 8) < (rig->holders < rig->wave ? 6u : 2u) &&
	    rig->holders < HOLDERS - 1)
		try_acquire(rig, 1);
	else
		release(rig);
}

static void step(struct rig *rig)
{
	rig->now += below(&rig->random, 2 * WEIR_MS);
	virtual_time = rig->now;
	switch (below(&rig->random, 600)) {
	case 0:
		set_limit(rig);
		break;
	case 1:
		enter(rig);
		break;
	case 2:
	case 3:
	case 4:
		leave(rig);
		break;
	case 5:
		if (rig->holders < HOLDERS - 1)
			try_acquire(rig, 2 + below(&rig->random, TOP));
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		move(rig);
		break;
	default:
		come_or_go(rig);
		break;
	}
	compare(rig);
}

Test(permit_cache, decides_as_without_the_cache)
{
	struct weir_settable_config settable = {.initial = TOP};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct rig rig;
		struct weir_config config;

		rig = (struct rig){.seed = seed, .random = seed, .now = WEIR_S, .wave = TOP / 8};
		cr_assert_eq(sched_getaffinity(0, sizeof(rig.allowed), &rig.allowed), 0);
		rig.twin = (struct twin){.limit = TOP};
		weir_config_init(&config);
		config.limit = &weir_settable;
		config.limit_config = &settable;
		config.clock = &virtual_clock;
		config.queue = 1;
		config.stripes = 2;
		config.window_min = 10 * WEIR_MS;
		cr_assert_eq(weir_limiter_create(&config, &rig.limiter), 0);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&rig);
		cr_assert_gt(rig.twin.lent, 0, "seed %lu", (unsigned long)seed);
		weir_limiter_destroy(rig.limiter);
		(void)sched_setaffinity(0, sizeof(rig.allowed), &rig.allowed);
	}
}
