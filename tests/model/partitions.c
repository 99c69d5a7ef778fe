/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations on a limiter with partitions. Each decision is compared with a simple reference
 * model (the twin) that does what weir/partition.h says, in whole numbers and from scratch each
 * time. With and without a queue; limits, shares and caps change meanwhile. In some runs the limit
 * is mostly far away, so that stripes are lent permits, which must change nothing.
 */

#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS   80
#define STEPS   4000
#define PARTS   5 /* including partition 0 */
#define QUEUE   10
#define HOLDERS 200
#define HOLD    (20 * WEIR_MS)
#define COSTS   4 /* highest cost of a call */

/* A waiter, as the test knows it. */
struct caller {
	struct weir_wait wait;
	bool used;
	uint32_t part, cost;
	weir_time since;
	uint32_t granted; /* permits, according to the twin; 0: still waiting */
};

struct share {
	uint32_t percent, cap_percent, max;
	uint32_t guarantee, cap;
	uint32_t busy, peak, before;
	weir_time since;
	uint32_t line[QUEUE]; /* callers, oldest first */
	uint32_t waiting;
	bool stuck; /* at its cap when last examined: its waiters block no others */
};

struct twin {
	uint32_t limit, inflight;
	struct share shares[PARTS];
	bool newest_first;
};

struct rig {
	uint64_t seed, random;
	weir_time now;
	struct weir_limiter *limiter;
	struct twin twin;
	struct caller callers[QUEUE];
	struct weir_token held[HOLDERS];
	uint32_t holders, queue;
	bool far;      /* the limit is high at times, and calls are samples */
	uint32_t lent; /* calls that had a lent permit */
};

static weir_time virtual_time;

static weir_time virtual_now(const struct weir_clock *clock)
{
	(void)clock;
	return virtual_time;
}

static const struct weir_clock virtual_clock = {.now = virtual_now};

static const char *const names[PARTS] = {"unknown", "a", "b", "c", "d"};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Round all guarantees up, then the smallest fractions down until the limit suffices. */
static void twin_apportion(struct twin *t)
{
	uint32_t sum = 0, fraction[PARTS];

	for (uint32_t i = 0; i < PARTS; i++) {
		uint32_t exact = t->shares[i].percent * t->limit;

		fraction[i] = exact % 100;
		t->shares[i].guarantee = (exact + 99) / 100;
		sum += t->shares[i].guarantee;
	}
	while (sum > t->limit) {
		uint32_t worst = PARTS;

		for (uint32_t i = 0; i < PARTS; i++)
			if (fraction[i] > 0 && (worst == PARTS || fraction[i] <= fraction[worst]))
				worst = i;
		fraction[worst] = 0;
		t->shares[worst].guarantee--;
		sum--;
	}
}

static void twin_retune(struct twin *t)
{
	twin_apportion(t);
	for (uint32_t i = 0; i < PARTS; i++) {
		struct share *s = &t->shares[i];
		uint32_t cap = s->cap_percent * t->limit / 100;

		s->cap = s->cap_percent == 100 ? s->max : least(cap > 0 ? cap : 1, s->max);
		s->guarantee = least(s->guarantee, s->cap);
	}
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t twin_kept_for(const struct share *s)
{
	uint32_t level = least(most(s->peak, s->before), s->guarantee);

	return level > s->busy ? level - s->busy : 0;
}

static uint32_t twin_kept(const struct twin *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < PARTS; i++)
		kept += twin_kept_for(&t->shares[i]);
	return kept;
}

static uint32_t twin_cost(const struct twin *t, const struct share *s, uint32_t cost)
{
	return least(cost, least(t->limit, s->cap));
}

static bool twin_entitled(const struct twin *t, const struct share *s, uint32_t cost)
{
	return s->busy + twin_cost(t, s, cost) <= s->guarantee;
}

/* Admit a call if there are permits. Reservations are computed with it in its partition. */
static bool twin_take(struct twin *t, struct share *s, uint32_t asked)
{
	uint32_t cost = twin_cost(t, s, asked), keep;
	bool entitled = twin_entitled(t, s, asked);

	if (s->busy + cost > s->cap)
		return false;
	s->busy += cost;
	keep = entitled ? 0 : twin_kept(t);
	if (t->inflight + cost + keep > t->limit) {
		s->busy -= cost;
		return false;
	}
	if (entitled)
		s->peak = most(s->peak, s->busy);
	t->inflight += cost;
	return true;
}

static bool twin_roll(struct share *s, weir_time now)
{
	uint32_t level = least(most(s->peak, s->before), s->guarantee);

	if (s->since != 0 && now - s->since <= HOLD)
		return false;
	s->before = s->since == 0 || now - s->since > 2 * HOLD ? s->busy : s->peak;
	s->peak = s->busy;
	s->since = now;
	return least(most(s->peak, s->before), s->guarantee) < level;
}

/* End intervals that are over. True if less is reserved for a partition. */
static bool twin_lapse(struct rig *rig)
{
	bool any = false;

	for (uint32_t i = 0; i < PARTS; i++)
		any |= twin_roll(&rig->twin.shares[i], rig->now);
	return any;
}

static uint32_t twin_next(const struct twin *t, const struct share *s)
{
	return s->line[t->newest_first ? s->waiting - 1 : 0];
}

static void twin_leave(struct share *s, uint32_t caller)
{
	uint32_t at = 0;

	while (s->line[at] != caller)
		at++;
	memmove(&s->line[at], &s->line[at + 1], (s->waiting - at - 1) * sizeof(s->line[0]));
	s->waiting--;
}

static bool twin_serve_part(struct rig *rig, struct share *s)
{
	uint32_t i = twin_next(&rig->twin, s);
	struct caller *c = &rig->callers[i];

	if (!twin_take(&rig->twin, s, c->cost))
		return false;
	c->granted = twin_cost(&rig->twin, s, c->cost);
	twin_leave(s, i);
	return true;
}

/* Of the waiters within their guarantee, the oldest; else the one that has borrowed least. */
static bool twin_serve_one(struct rig *rig)
{
	struct twin *t = &rig->twin;
	bool tried[PARTS] = {false}, owed = false;

	for (uint32_t i = 0; i < PARTS; i++) {
		struct share *s = &t->shares[i];
		uint32_t cost = s->waiting > 0 ? rig->callers[twin_next(t, s)].cost : 0;

		s->stuck = s->waiting > 0 && s->busy + least(cost, s->cap) > s->cap;
	}
	for (;;) {
		struct share *best = NULL;

		for (uint32_t i = 0; i < PARTS; i++) {
			struct share *s = &t->shares[i];

			if (s->waiting == 0 || s->stuck || tried[i] ||
			    !twin_entitled(t, s, rig->callers[twin_next(t, s)].cost))
				continue;
			if (best == NULL || rig->callers[twin_next(t, s)].since <
						    rig->callers[twin_next(t, best)].since)
				best = s;
		}
		if (best == NULL)
			break;
		if (twin_serve_part(rig, best))
			return true;
		tried[best - t->shares] = owed = true;
	}
	if (owed)
		return false;

	struct share *best = NULL;

	for (uint32_t i = 0; i < PARTS; i++) {
		struct share *s = &t->shares[i];

		if (s->waiting == 0 || s->stuck)
			continue;
		if (best == NULL ||
		    (int32_t)(s->busy - s->guarantee) < (int32_t)(best->busy - best->guarantee))
			best = s;
	}
	return best != NULL && twin_serve_part(rig, best);
}

static void twin_drain(struct rig *rig)
{
	(void)twin_lapse(rig);
	while (twin_serve_one(rig))
		;
}

/* Whether a call waits for room, not for a cap. */
static bool twin_awaited(const struct twin *t)
{
	for (uint32_t i = 0; i < PARTS; i++)
		if (t->shares[i].waiting > 0 && !t->shares[i].stuck)
			return true;
	return false;
}

static bool twin_attempt(struct twin *t, struct share *s, uint32_t asked)
{
	return s->waiting == 0 && (twin_entitled(t, s, asked) || !twin_awaited(t)) &&
	       twin_take(t, s, asked);
}

/* Whether the room is reserved for others, for this call or for waiters in front of it. */
static bool twin_room_is_reserved(struct twin *t, struct share *s, uint32_t cost)
{
	uint32_t kept;

	if (s->waiting > 0)
		return twin_kept(t) > 0;
	if (s->busy + cost > s->cap)
		return false;
	s->busy += cost;
	kept = twin_kept(t);
	s->busy -= cost;
	return kept > 0 && t->inflight + cost <= t->limit;
}

static bool twin_try(struct rig *rig, struct share *s, uint32_t asked)
{
	struct twin *t = &rig->twin;
	uint32_t cost = twin_cost(t, s, asked);

	if (twin_attempt(t, s, asked))
		return true;
	if (s->waiting == 0 && s->busy + cost <= s->cap && twin_entitled(t, s, asked)) {
		bool less = twin_roll(s, rig->now);

		s->peak = most(s->peak, least(most(s->peak, s->busy) + asked, s->guarantee));
		if (less)
			twin_drain(rig);
		return false;
	}
	if (!twin_room_is_reserved(t, s, cost) || !twin_lapse(rig))
		return false;
	twin_drain(rig);
	return twin_attempt(t, s, asked);
}

static struct weir_call random_call(struct rig *rig)
{
	return (struct weir_call){
		.partition = (uint16_t)below(&rig->random, PARTS),
		.cost = below(&rig->random, 4) > 0 ? 1 : 1 + below(&rig->random, COSTS),
	};
}

static void try_acquire(struct rig *rig)
{
	struct weir_call call = random_call(rig);
	struct weir_token token;
	struct share *s = &rig->twin.shares[call.partition];
	uint32_t cost = twin_cost(&rig->twin, s, call.cost);
	bool expected;
	int r;

	if (rig->holders == HOLDERS)
		return;
	expected = twin_try(rig, s, call.cost);
	r = weir_try_acquire_for_at(rig->limiter, &call, rig->now, &token);
	cr_assert_eq(r, expected ? 0 : -EAGAIN, "seed %lu: %d, expected %d",
		     (unsigned long)rig->seed, r, expected);
	if (!expected)
		return;
	cr_assert_eq(token.cost, cost);
	cr_assert_eq(token.inflight, rig->twin.inflight);
	rig->lent += token.home != 0;
	cr_assert_leq(rig->twin.inflight, rig->twin.limit);
	rig->held[rig->holders++] = token;
}

static void release(struct rig *rig)
{
	struct twin *t = &rig->twin;
	struct weir_token token;
	struct share *s;
	uint32_t i;

	if (rig->holders == 0)
		return;
	i = below(&rig->random, rig->holders);
	token = rig->held[i];
	rig->held[i] = rig->held[--rig->holders];
	s = &t->shares[token.partition];
	s->busy -= token.cost;
	t->inflight -= token.cost;
	if (s->waiting > 0 || twin_awaited(t))
		twin_drain(rig);
	weir_release_at(rig->limiter, rig->now, &token, rig->far ? WEIR_SUCCESS : WEIR_IGNORE);
}

static void enter(struct rig *rig)
{
	struct weir_call call = random_call(rig);
	struct share *s = &rig->twin.shares[call.partition];
	struct weir_wait none;
	struct caller *c;
	uint32_t i = 0;

	while (i < rig->queue && rig->callers[i].used)
		i++;
	if (i == rig->queue) {
		cr_assert_eq(weir_enqueue_for_at(rig->limiter, &call, rig->now, NULL, NULL, &none),
			     -EAGAIN);
		return;
	}
	c = &rig->callers[i];
	*c = (struct caller){
		.used = true, .part = call.partition, .cost = call.cost, .since = rig->now};
	s->line[s->waiting++] = i;
	twin_drain(rig);
	cr_assert_eq(weir_enqueue_for_at(rig->limiter, &call, rig->now, NULL, NULL, &c->wait), 0);
}

/* A caller that was granted a permit takes it; one that waits goes on waiting, or gives up. */
static void come_back(struct rig *rig, bool give_up)
{
	struct caller *c = &rig->callers[below(&rig->random, QUEUE)];
	struct twin *t = &rig->twin;
	struct weir_token token;
	int r;

	if (!c->used || rig->holders == HOLDERS)
		return;
	if (c->granted == 0 && give_up) {
		twin_leave(&t->shares[c->part], (uint32_t)(c - rig->callers));
		twin_drain(rig);
		r = weir_cancel_at(rig->limiter, rig->now, &c->wait, &token);
		cr_assert_eq(r, 0, "seed %lu", (unsigned long)rig->seed);
		c->used = false;
		return;
	}
	if (c->granted == 0 && twin_kept(t) > 0)
		twin_drain(rig);
	r = weir_poll_at(rig->limiter, rig->now, &c->wait, &token);
	cr_assert_eq(r, c->granted > 0 ? 0 : -EAGAIN, "seed %lu", (unsigned long)rig->seed);
	if (r != 0)
		return;
	cr_assert_eq(token.cost, c->granted);
	rig->held[rig->holders++] = token;
	c->used = false;
}

static void move_limit(struct rig *rig)
{
	rig->twin.limit = 1 + below(&rig->random, below(&rig->random, 4) == 0 ? 100 : 12);
	if (rig->far && below(&rig->random, 3) > 0)
		rig->twin.limit = 64 + below(&rig->random, 400);
	twin_retune(&rig->twin);
	twin_drain(rig);
	virtual_time = rig->now;
	cr_assert_eq(weir_limit_set(rig->limiter, rig->twin.limit), 0);
}

static struct weir_partition configured(const struct twin *t, uint32_t i)
{
	const struct share *s = &t->shares[i];

	return (struct weir_partition){
		.name = names[i],
		.share = s->percent / 100.0,
		.cap = s->cap_percent / 100.0,
		.max = s->max,
	};
}

/* New shares, with a sum of at most 1. */
static void draw_shares(struct rig *rig)
{
	uint32_t left = 100;

	for (uint32_t i = PARTS; i-- > 0;) {
		struct share *s = &rig->twin.shares[i];

		s->percent = i == 0 ? below(&rig->random, 2) * below(&rig->random, left + 1)
				    : below(&rig->random, 2 * left / 3 + 1);
		left -= s->percent;
		s->cap_percent = 100;
		s->max = WEIR_LIMIT_MAX;
		if (below(&rig->random, 4) == 0)
			s->cap_percent = s->percent + 1 + below(&rig->random, 100 - s->percent);
		if (below(&rig->random, 6) == 0)
			s->max = 1 + below(&rig->random, 20);
	}
}

static void move_shares(struct rig *rig)
{
	struct weir_partition partitions[PARTS];
	char why[100];

	draw_shares(rig);
	for (uint32_t i = 0; i < PARTS; i++)
		partitions[i] = configured(&rig->twin, i);
	twin_retune(&rig->twin);
	twin_drain(rig);
	virtual_time = rig->now;
	cr_assert_eq(weir_partitions_set(rig->limiter, partitions, PARTS, why, sizeof(why)), 0,
		     "%s", why);
}

static void compare(const struct rig *rig)
{
	const struct twin *t = &rig->twin;
	uint32_t sum = 0;

	cr_assert_eq(weir_limit(rig->limiter), t->limit);
	cr_assert_eq(weir_inflight(rig->limiter), t->inflight, "seed %lu",
		     (unsigned long)rig->seed);
	for (unsigned i = 0; i < PARTS; i++) {
		const struct share *s = &t->shares[i];
		struct weir_partition_snapshot p;

		weir_partition_snapshot_init(&p);
		cr_assert_eq(weir_partition_snapshot_take(rig->limiter, i, &p), 0);
		cr_assert_eq(p.guarantee, s->guarantee, "seed %lu: %u of %u is %u, not %u",
			     (unsigned long)rig->seed, s->percent, t->limit, p.guarantee,
			     s->guarantee);
		cr_assert_eq(p.cap, s->cap);
		cr_assert_eq(p.inflight, s->busy);
		cr_assert_eq(p.waiting, s->waiting);
		cr_assert_eq(p.reserved, twin_kept_for(s), "seed %lu", (unsigned long)rig->seed);
		sum += p.guarantee;
	}
	cr_assert_leq(sum, t->limit, "the guarantees exceed the limit");
}

static void step(struct rig *rig)
{
	uint32_t what = below(&rig->random, 100);

	rig->now += below(&rig->random, 2) * below(&rig->random, 3 * WEIR_MS);
	if (what < 40)
		try_acquire(rig);
	else if (what < 65)
		release(rig);
	else if (what < 80 && rig->queue > 0)
		enter(rig);
	else if (what < 95 && rig->queue > 0)
		come_back(rig, what < 83);
	else if (what < 97)
		move_limit(rig);
	else if (what == 97)
		move_shares(rig);
	else if (what == 98)
		rig->now += HOLD;
	compare(rig);
}

static void begin(struct rig *rig, uint64_t seed, uint32_t queue, bool far)
{
	struct weir_partition partitions[PARTS];
	struct weir_settable_config settable;
	struct weir_config config;

	*rig = (struct rig){
		.seed = seed, .random = seed, .now = WEIR_S, .queue = queue, .far = far};
	rig->twin.limit = settable.initial = 1 + below(&rig->random, 30);
	rig->twin.newest_first = below(&rig->random, 2) != 0;
	draw_shares(rig);
	twin_retune(&rig->twin);
	for (uint32_t i = 0; i < PARTS; i++)
		partitions[i] = configured(&rig->twin, i);
	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.partitions = partitions;
	config.partition_count = PARTS;
	config.partition_hold = HOLD;
	config.queue = queue;
	config.order = rig->twin.newest_first ? WEIR_LIFO : WEIR_FIFO;
	config.clock = &virtual_clock;
	config.stripes = far ? 2 : 0;
	config.window_min = config.window_max = 5 * WEIR_MS;
	config.window_samples = 1;
	cr_assert_eq(weir_limiter_create(&config, &rig->limiter), 0);
	for (uint16_t i = 0; i < PARTS; i++)
		cr_assert_eq(weir_partition_find(rig->limiter, names[i]), i);
}

/* End all calls: nothing is left over. */
static void finish(struct rig *rig)
{
	while (rig->holders > 0)
		release(rig);
	for (uint32_t i = 0; i < QUEUE; i++) {
		struct weir_token token;

		if (!rig->callers[i].used)
			continue;
		if (weir_cancel_at(rig->limiter, rig->now, &rig->callers[i].wait, &token) ==
		    -EALREADY)
			weir_release_at(rig->limiter, rig->now, &token, WEIR_IGNORE);
	}
	cr_assert_eq(weir_inflight(rig->limiter), 0);
	cr_assert_eq(weir_waiting(rig->limiter), 0);
	weir_limiter_destroy(rig->limiter);
}

/* Returns how many calls had a lent permit. */
static uint32_t play(uint32_t queue, bool far)
{
	uint32_t lent = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct rig rig;

		begin(&rig, seed, queue, far);
		for (int i = 0; i < STEPS; i++)
			step(&rig);
		finish(&rig);
		lent += rig.lent;
	}
	return lent;
}

Test(partitions, match_the_reference_model)
{
	play(0, false);
}

Test(partitions, with_a_queue_match_the_reference_model)
{
	play(QUEUE, false);
}

Test(partitions, far_from_the_limit_match_the_reference_model)
{
	cr_assert_gt(play(0, true), 1000);
	cr_assert_gt(play(QUEUE, true), 1000);
}
