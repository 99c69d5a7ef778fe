/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations on a limiter with a queue. Each decision is compared with a simple reference
 * model (the twin): a list of waiters, a count, a limit.
 */

#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS   60
#define STEPS   4000
#define QUEUE   12
#define HOLDERS 64
#define STAND   (10 * WEIR_MS)

/* A waiter, as the test knows it. */
struct caller {
	struct weir_wait wait;
	unsigned notified; /* times its callback ran */
	bool used;
	bool granted; /* according to the twin */
	bool callback;
};

/* The reference model: callers by number, oldest first. */
struct twin {
	uint32_t limit, inflight, waiting;
	uint32_t line[QUEUE];
	weir_time standing_since;
	enum weir_order order;
	uint64_t admitted, rejected, abandoned, released;
};

struct rig {
	uint64_t seed, random;
	weir_time now;
	struct weir_limiter *limiter;
	struct twin twin;
	struct caller callers[QUEUE];
	struct weir_token held[HOLDERS];
	uint32_t holders;
};

/* weir_limit_set() has no form that takes the time. */
static weir_time virtual_time;

static weir_time virtual_now(const struct weir_clock *clock)
{
	(void)clock;
	return virtual_time;
}

static const struct weir_clock virtual_clock = {.now = virtual_now};

static void notify(void *arg)
{
	((struct caller *)arg)->notified++;
}

static void twin_leave(struct twin *t, uint32_t at)
{
	memmove(&t->line[at], &t->line[at + 1], (t->waiting - at - 1) * sizeof(t->line[0]));
	t->waiting--;
}

static void twin_serve(struct rig *rig)
{
	struct twin *t = &rig->twin;

	while (t->waiting > 0 && t->inflight < t->limit) {
		bool newest = t->order == WEIR_LIFO ||
			      (t->order == WEIR_ADAPTIVE && rig->now - t->standing_since > STAND);
		uint32_t at = newest ? t->waiting - 1 : 0;

		rig->callers[t->line[at]].granted = true;
		t->inflight++;
		t->admitted++;
		twin_leave(t, at);
	}
}

static void take(struct rig *rig, const struct weir_token *token)
{
	struct twin *t = &rig->twin;

	t->inflight++;
	t->admitted++;
	cr_assert_eq(token->inflight, t->inflight);
	rig->held[rig->holders++] = *token;
}

static bool has_room(const struct twin *t)
{
	return t->waiting == 0 && t->inflight < t->limit;
}

static void try_acquire(struct rig *rig)
{
	struct weir_token token;
	bool expected = has_room(&rig->twin);
	int r = weir_try_acquire_at(rig->limiter, rig->now, &token);

	cr_assert_eq(r, expected ? 0 : -EAGAIN, "seed %lu", (unsigned long)rig->seed);
	rig->twin.rejected += !expected;
	if (expected)
		take(rig, &token);
}

/* Enqueue with one of the two functions. With at_once there is no room, or it would not wait. */
static int enqueue(struct rig *rig, struct caller *c, struct weir_wait *wait, bool at_once)
{
	weir_granted_fn *granted = c != NULL && c->callback ? notify : NULL;
	struct weir_token none;

	if (!at_once)
		return weir_enqueue_at(rig->limiter, rig->now, granted, c, wait);
	return weir_acquire_or_enqueue_at(rig->limiter, NULL, rig->now, granted, c, wait, &none);
}

static void enter(struct rig *rig, bool at_once)
{

	struct twin *t = &rig->twin;
	uint32_t i = 0, occupied = 0;
	struct caller *c;
	int r;

	for (uint32_t k = 0; k < QUEUE; k++)
		occupied += rig->callers[k].used;
	while (i < QUEUE && rig->callers[i].used)
		i++;
	if (i == QUEUE) {
		struct weir_wait wait;

		r = enqueue(rig, NULL, &wait, at_once);
		cr_assert_eq(r, -EAGAIN, "seed %lu: %u in the queue", (unsigned long)rig->seed,
			     occupied);
		t->rejected++;
		return;
	}
	c = &rig->callers[i];
	*c = (struct caller){.used = true, .callback = below(&rig->random, 2) != 0};
	if (t->waiting == 0)
		t->standing_since = rig->now;
	t->line[t->waiting++] = i;
	twin_serve(rig);
	r = enqueue(rig, c, &c->wait, at_once);
	cr_assert_eq(r, at_once ? -EINPROGRESS : 0, "seed %lu", (unsigned long)rig->seed);
}

static void acquire_or_enter(struct rig *rig)
{
	struct weir_token token;
	struct weir_wait wait;
	int r;

	if (!has_room(&rig->twin)) {
		enter(rig, true);
		return;
	}
	r = weir_acquire_or_enqueue_at(rig->limiter, NULL, rig->now, NULL, NULL, &wait, &token);
	cr_assert_eq(r, 0, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(weir_poll_at(rig->limiter, rig->now, &wait, &token), -EINVAL);
	take(rig, &token);
}

static void keep(struct rig *rig, struct caller *c, const struct weir_token *token)
{
	struct weir_token none;

	cr_assert_eq(c->notified, c->callback ? 1 : 0);
	cr_assert_eq(weir_poll_at(rig->limiter, rig->now, &c->wait, &none), -EINVAL);
	cr_assert_eq(weir_cancel_at(rig->limiter, rig->now, &c->wait, &none), -EINVAL);
	c->used = false;
	rig->held[rig->holders++] = *token;
}

static void poll(struct rig *rig)
{
	struct caller *c = &rig->callers[below(&rig->random, QUEUE)];
	struct weir_token token;

	if (!c->used)
		return;
	cr_assert_eq(weir_poll_at(rig->limiter, rig->now, &c->wait, &token),
		     c->granted ? 0 : -EAGAIN, "seed %lu", (unsigned long)rig->seed);
	if (c->granted)
		keep(rig, c, &token);
}

static void cancel(struct rig *rig)
{
	uint32_t i = below(&rig->random, QUEUE), at = 0;
	struct twin *t = &rig->twin;
	struct caller *c = &rig->callers[i];
	struct weir_token token;

	if (!c->used)
		return;
	cr_assert_eq(weir_cancel_at(rig->limiter, rig->now, &c->wait, &token),
		     c->granted ? -EALREADY : 0, "seed %lu", (unsigned long)rig->seed);
	if (c->granted) {
		keep(rig, c, &token);
		return;
	}
	while (t->line[at] != i)
		at++;
	twin_leave(t, at);
	t->abandoned++;
	c->used = false;
}

static void release(struct rig *rig)
{
	uint32_t i;

	if (rig->holders == 0)
		return;
	i = below(&rig->random, rig->holders);
	rig->twin.inflight--;
	rig->twin.released++;
	twin_serve(rig);
	weir_release_at(rig->limiter, rig->now, &rig->held[i],
			(enum weir_outcome)below(&rig->random, 3));
	rig->held[i] = rig->held[--rig->holders];
}

static void set_limit(struct rig *rig)
{
	uint32_t limit = 1 + below(&rig->random, 8);

	rig->twin.limit = limit;
	twin_serve(rig);
	cr_assert_eq(weir_limit_set(rig->limiter, limit), 0);
}

static void compare(const struct rig *rig)
{
	const struct twin *t = &rig->twin;
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(rig->limiter, &s);
	cr_assert_eq(s.limit, t->limit, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.inflight, t->inflight, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.waiting, t->waiting, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.admitted, t->admitted);
	cr_assert_eq(s.rejected, t->rejected);
	cr_assert_eq(s.abandoned, t->abandoned);
	cr_assert_eq(s.succeeded + s.ignored + s.dropped, t->released);
}

static void step(struct rig *rig)
{
	rig->now += below(&rig->random, 3) == 0 ? below(&rig->random, 5000000) : 0;
	virtual_time = rig->now;
	switch (below(&rig->random, 16)) {
	case 0:
	case 1:
		if (rig->holders < HOLDERS - QUEUE)
			try_acquire(rig);
		break;
	case 2:
		set_limit(rig);
		break;
	case 3:
		cancel(rig);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		poll(rig);
		break;
	case 8:
	case 9:
		if (rig->holders < HOLDERS - QUEUE)
			enter(rig, false);
		break;
	case 10:
	case 11:
		if (rig->holders < HOLDERS - QUEUE)
			acquire_or_enter(rig);
		break;
	default:
		release(rig);
		break;
	}
	compare(rig);
}

static void run(enum weir_order order)
{
	struct weir_settable_config settable = {.initial = 3};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct rig rig;
		struct weir_config config;

		rig = (struct rig){.seed = seed, .random = seed, .now = WEIR_S};
		rig.twin = (struct twin){.limit = 3, .order = order};
		weir_config_init(&config);
		config.limit = &weir_settable;
		config.limit_config = &settable;
		config.clock = &virtual_clock;
		config.queue = QUEUE;
		config.order = order;
		config.queue_stand = STAND;
		cr_assert_eq(weir_limiter_create(&config, &rig.limiter), 0);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&rig);
		weir_limiter_destroy(rig.limiter);
	}
}

Test(waiting, fifo)
{
	run(WEIR_FIFO);
}

Test(waiting, lifo)
{
	run(WEIR_LIFO);
}

Test(waiting, adaptive)
{
	run(WEIR_ADAPTIVE);
}
