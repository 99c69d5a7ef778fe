/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load shedding by priority, in virtual time: calls of three priorities in equal parts arrive at
 * random at a service that runs CALLS calls at once, each for a random time.
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "../model/random.h"

#include "rig.h"

#define CALLS    50
#define SERVICE  (10 * WEIR_MS)
#define TICK     (100 * WEIR_US)
#define CLASSES  3
#define PER_TICK ((double)CALLS * TICK / SERVICE) /* calls the service can end in a tick */

static const int16_t priorities[CLASSES] = {-5, 0, 5};

static const struct weir_call highest = {.priority = WEIR_PRIORITY_MAX};
static const struct weir_call lowest = {.priority = WEIR_PRIORITY_MIN};

struct world {
	struct weir_limiter *limiter;
	uint64_t random;
	struct weir_token token[CALLS];
	weir_time end[CALLS]; /* 0: free */
	uint64_t offered[CLASSES], admitted[CLASSES];
};

static double uniform(struct world *w)
{
	return (double)(draw(&w->random) >> 11) * 0x1p-53;
}

/* A Poisson number of a small mean, after D. E. Knuth. */
static uint32_t poisson(struct world *w, double mean)
{
	double left = exp(-mean), product = uniform(w);
	uint32_t n = 0;

	for (; product > left; n++)
		product *= uniform(w);
	return n;
}

static void arrive(struct world *w, uint16_t partition, uint32_t class)
{
	const struct weir_call call = {.partition = partition, .priority = priorities[class]};
	struct weir_token token;
	uint32_t i = 0;

	w->offered[class]++;
	if (weir_try_acquire_for(w->limiter, &call, &token) != 0)
		return;
	w->admitted[class]++;
	while (w->end[i] != 0)
		i++;
	w->token[i] = token;
	w->end[i] = rig_time + (weir_dur)(-log(1 - uniform(w)) * (double)SERVICE) + 1;
}

static void complete(struct world *w)
{
	for (uint32_t i = 0; i < CALLS; i++)
		if (w->end[i] != 0 && w->end[i] <= rig_time) {
			weir_release(w->limiter, &w->token[i], WEIR_SUCCESS);
			w->end[i] = 0;
		}
}

/* Play for that time, at load times the capacity of the service. */
static void play(struct world *w, weir_dur length, double load)
{
	weir_time end = rig_time + length;

	for (uint32_t class = 0; class < CLASSES; class ++)
		w->offered[class] = w->admitted[class] = 0;
	for (; rig_time < end; rig_time += TICK) {
		complete(w);
		for (uint32_t n = poisson(w, load * PER_TICK); n > 0; n--)
			arrive(w, 0, below(&w->random, CLASSES));
	}
}

static double served(const struct world *w, uint32_t class)
{
	return (double)w->admitted[class] / (double)w->offered[class];
}

static uint64_t served_in_all(const struct world *w)
{
	return w->admitted[0] + w->admitted[1] + w->admitted[2];
}

static void begin(struct world *w, uint64_t seed, uint32_t shed, double floor)
{
	struct weir_config config = rig_config(CALLS);

	rig_time = WEIR_S;
	config.shed = shed;
	config.shed_floor = floor;
	*w = (struct world){.random = seed, .limiter = rig_make(&config)};
}

static void end(struct world *w)
{
	weir_limiter_destroy(w->limiter);
}

Test(shed, the_lowest_priority_is_shed_first_and_none_starves)
{
	struct world with, without;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		begin(&with, seed, 1, 0);
		begin(&without, seed, 0, 0);
		play(&with, 5 * WEIR_S, 2);
		play(&with, 20 * WEIR_S, 2);
		play(&without, 20 * WEIR_S, 2);
		cr_assert_gt(served(&with, 2), 0.97, "%f", served(&with, 2));
		cr_assert_gt(served(&with, 1), 2 * served(&with, 0), "%f %f %f", served(&with, 0),
			     served(&with, 1), served(&with, 2));
		cr_assert_gt(served(&with, 0), 0.01, "%f", served(&with, 0));
		/* Most of the time a margin of sqrt(50) permits is left to the highest. */
		cr_assert_gt((double)served_in_all(&with), 0.86 * (double)served_in_all(&without));
		end(&with);
		end(&without);
	}
}

Test(shed, when_the_highest_fill_the_limit_the_lowest_keep_their_floor)
{
	struct world w;

	begin(&w, 1, 1, 0.05);
	play(&w, 5 * WEIR_S, 6);
	play(&w, 20 * WEIR_S, 6);
	cr_assert_gt(served(&w, 0), 0.015, "%f", served(&w, 0));
	cr_assert_gt(served(&w, 2), 0.4, "%f", served(&w, 2));
	end(&w);
	begin(&w, 1, 1, WEIR_SHED_STRICT);
	play(&w, 5 * WEIR_S, 6);
	play(&w, 20 * WEIR_S, 6);
	cr_assert_lt(served(&w, 0), 0.002, "%f", served(&w, 0));
	end(&w);
}

Test(shed, without_overload_no_call_is_shed)
{
	struct world w;

	begin(&w, 1, 1, 0);
	play(&w, 10 * WEIR_S, 0.5);
	cr_assert_eq(rig_snapshot(w.limiter).shed, 0);
	play(&w, 10 * WEIR_S, 3);
	cr_assert_gt(rig_snapshot(w.limiter).shed, 0);
	play(&w, 20 * WEIR_S, 0.5);
	cr_assert_gt(served(&w, 0), 0.995, "%f", served(&w, 0));
	end(&w);
}

/* With calls of one priority only there is none to prefer, and shedding costs nothing. */
Test(shed, a_single_priority_is_served_as_without_shedding)
{
	struct weir_config config = rig_config(2);
	struct weir_limiter *l;
	struct weir_token token[4];

	config.shed = 1;
	rig_time = WEIR_S;
	l = rig_make(&config);
	for (int i = 0; i < 500; i++) {
		cr_assert_eq(rig_fill(l, NULL, token, 4), 2);
		rig_time += 10 * WEIR_MS;
		weir_release(l, &token[0], WEIR_SUCCESS);
		weir_release(l, &token[1], WEIR_SUCCESS);
	}
	weir_limiter_destroy(l);
}

/* A flood of the highest priority in one partition leaves the lowest in another alone. */
Test(shed, a_partition_sheds_only_its_own_calls)
{
	const struct weir_partition halves[] = {{.name = "a", .share = 0.5},
						{.name = "b", .share = 0.5}};
	struct weir_config config = rig_config(CALLS);
	struct world w;

	config.shed = 1;
	config.partitions = halves;
	config.partition_count = 2;
	rig_time = WEIR_S;
	w = (struct world){.random = 1, .limiter = rig_make(&config)};
	for (int tick = 0; tick < 200000; tick++, rig_time += TICK) {
		if (tick == 50000)
			w.offered[0] = w.admitted[0] = 0;
		complete(&w);
		for (uint32_t n = poisson(&w, 2 * PER_TICK); n > 0; n--)
			arrive(&w, 1, 2);
		for (uint32_t n = poisson(&w, 0.2 * PER_TICK); n > 0; n--)
			arrive(&w, 2, 0);
	}
	cr_assert_gt(served(&w, 0), 0.97, "%f", served(&w, 0));
	cr_assert_lt(served(&w, 2), 0.6);
	end(&w);
}

/*
 * A limit of 4. Each round offers high calls of the highest, then low calls of the lowest priority,
 * for enough rounds that the ranks settle. At the end nothing is in flight, and the next step is
 * 100 ms away.
 */
static struct weir_limiter *overloaded(double floor, int high, int low)
{
	struct weir_config config = rig_config(4);
	struct weir_limiter *l;
	struct weir_token token[4];

	config.shed = 1;
	config.shed_floor = floor;
	config.queue = 8;
	config.stripes = 1;
	rig_time = WEIR_S;
	l = rig_make(&config);
	for (int round = 0; round < 40; round++) {
		uint32_t admitted = rig_fill(l, &highest, token, (uint32_t)high);

		(void)rig_fill(l, &lowest, token + admitted, (uint32_t)low);
		cr_assert_eq(admitted, 4);
		rig_time += 101 * WEIR_MS;
		for (uint32_t i = 0; i < admitted; i++)
			weir_release(l, &token[i], WEIR_SUCCESS);
	}
	return l;
}

/* A call that is shed leaves a margin free, but no more than leaves room for itself. */
Test(shed, a_call_that_is_shed_is_admitted_when_nothing_else_is_in_flight)
{
	const struct weir_call dear = {.priority = WEIR_PRIORITY_MIN, .cost = 3};
	struct weir_limiter *l = overloaded(WEIR_SHED_STRICT, 8, 8);
	struct weir_token token[4], none;
	struct weir_wait wait;

	cr_assert_eq(rig_fill(l, &highest, token, 3), 3);
	cr_assert_eq(weir_try_acquire_for(l, &lowest, &none), -EAGAIN, "there is room for one");
	cr_assert_eq(weir_enqueue_for(l, &lowest, NULL, NULL, &wait), -EAGAIN);
	cr_assert_eq(weir_acquire_or_enqueue(l, &lowest, NULL, NULL, &wait, &none), -EAGAIN);
	rig_empty(l, token, 3);
	cr_assert_eq(weir_enqueue_for(l, &lowest, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_poll(l, &wait, &token[0]), 0);
	weir_release(l, &token[0], WEIR_IGNORE);
	cr_assert_eq(weir_try_acquire_for(l, &dear, &token[0]), 0);
	cr_assert_eq(token[0].cost, 3);
	weir_release(l, &token[0], WEIR_IGNORE);
	weir_limiter_destroy(l);
}

/* Waiters that were let through in shadow mode have no permit, and their slots until they poll. */
Test(shed, a_call_that_finds_no_slot_returns_its_permit)
{
	struct weir_limiter *l = overloaded(WEIR_SHED_STRICT, 8, 8);
	struct weir_wait wait[8], last;
	struct weir_token token[4], through;

	cr_assert_eq(rig_fill(l, &highest, token, 4), 4);
	weir_shadow_set(l, true);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(weir_enqueue_for(l, &highest, NULL, NULL, &wait[i]), 0);
	weir_shadow_set(l, false);
	rig_empty(l, token, 4);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(weir_enqueue_for(l, &lowest, NULL, NULL, &last), -EAGAIN);
	cr_assert_eq(weir_inflight(l), 0);
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(weir_poll(l, &wait[i], &through), 0);
		weir_release(l, &through, WEIR_IGNORE);
	}
	cr_assert_eq(weir_enqueue_for(l, &lowest, NULL, NULL, &last), 0);
	cr_assert_eq(weir_poll(l, &last, &through), 0);
	weir_release(l, &through, WEIR_IGNORE);
	weir_limiter_destroy(l);
}

struct loop {
	struct weir_limiter *limiter;
	struct weir_wait wait;
	struct weir_token token;
	sem_t notified;
	int answer, inside;
};

static void notify_loop(void *arg)
{
	struct loop *loop = arg;

	sem_post(&loop->notified);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	loop->inside = 1;
}

static void *poll_at_once(void *arg)
{
	struct loop *loop = arg;

	sem_wait(&loop->notified);
	loop->answer = weir_poll(loop->limiter, &loop->wait, &loop->token);
	cr_assert_eq(loop->inside, 1, "the callback has returned");
	return NULL;
}

/* A waiter that is granted at once can poll as soon as its callback runs. */
Test(shed, a_loop_that_is_notified_may_poll_at_once, .timeout = 60)
{
	struct loop loop = {.limiter = overloaded(WEIR_SHED_STRICT, 8, 8), .answer = 1};
	pthread_t thread;

	sem_init(&loop.notified, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, poll_at_once, &loop), 0);
	cr_assert_eq(weir_enqueue_for(loop.limiter, &lowest, notify_loop, &loop, &loop.wait), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(loop.answer, 0);
	weir_release(loop.limiter, &loop.token, WEIR_IGNORE);
	cr_assert_eq(weir_inflight(loop.limiter), 0);
	weir_limiter_destroy(loop.limiter);
}

/* Calls that hang close no window. Calls that are refused meanwhile move the ranks on. */
Test(shed, ranks_move_on_when_no_call_ends)
{
	struct weir_limiter *l = overloaded(WEIR_SHED_STRICT, 8, 8);
	struct weir_token token[4], last;
	uint64_t windows;

	cr_assert_eq(rig_fill(l, &highest, token, 3), 3);
	windows = rig_snapshot(l).windows;
	for (int i = 0; i < 100 && weir_try_acquire_for(l, &lowest, &last) != 0; i++)
		rig_time += 10 * WEIR_MS;
	cr_assert_eq(last.cost, 1, "now it is the highest priority in use");
	cr_assert_eq(rig_snapshot(l).windows, windows);
	weir_limiter_destroy(l);
}

/* The floor is a number of 65536 calls, and any floor is at least one. */
Test(shed, the_smallest_floor_is_not_strict)
{
	const struct {
		double floor;
		uint32_t served;
	} floors[] = {{1e-5, 1}, {WEIR_SHED_STRICT, 0}};

	for (size_t i = 0; i < 2; i++) {
		struct weir_limiter *l = overloaded(floors[i].floor, 12, 4);
		struct weir_token token[3], none;
		uint32_t served = 0;

		cr_assert_eq(rig_fill(l, &highest, token, 3), 3);
		for (uint32_t call = 0; call < 65536; call++)
			if (weir_try_acquire_for(l, &lowest, &none) == 0) {
				served++;
				weir_release(l, &none, WEIR_IGNORE);
			}
		cr_assert_eq(served, floors[i].served, "floor %g: %u", floors[i].floor, served);
		weir_limiter_destroy(l);
	}
}

Test(shed, an_invalid_floor_is_rejected)
{
	struct weir_config config = rig_config(CALLS);
	char why[100];

	config.shed_floor = 1.5;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "shed_floor is 1.5, neither 0 to 1 nor strict.");
	config.shed_floor = NAN;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL);
}
