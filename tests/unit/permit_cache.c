/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permits that are lent to stripes: when, to which stripe, and that they are called back. The tests
 * stay on one CPU, so that a single stripe has them all.
 */

#include <errno.h>
#include <sched.h>

#include "lib/limiter/limiter.h"
#include "rig.h"

#define LIMIT   1000
#define STRIPES 4
#define QUOTA   (LIMIT / 4 / STRIPES)

static void stay(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	if (cpu < 0)
		cr_skip("the current CPU is not known here");
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		cr_skip("a thread cannot choose its CPU here");
}

static struct weir_config caching(uint32_t limit)
{
	struct weir_config config = rig_config(limit);

	rig_time = WEIR_S;
	config.stripes = STRIPES;
	config.queue = 4;
	return config;
}

static const struct permit_cache *of(const struct weir_limiter *l)
{
	return &l->admission.cache;
}

static bool is_open(const struct weir_limiter *l)
{
	return cache_is(cache_mode(of(l)), CACHE_OPEN);
}

static uint32_t counted(const struct weir_limiter *l)
{
	return gate_inflight(gate_read(l->admission.gate));
}

static uint32_t lent(const struct weir_limiter *l)
{
	return atomic_load(&l->admission.gate->lent);
}

/* Calls for two windows, one at a time: the limit is far away. */
static void run_quiet_windows(struct weir_limiter *l)
{
	struct weir_token token;

	for (int i = 0; i < 30; i++) {
		rig_time += 10 * WEIR_MS;
		cr_assert_eq(weir_try_acquire_at(l, rig_time - WEIR_MS, &token), 0);
		weir_release_at(l, rig_time, &token, WEIR_SUCCESS);
	}
}

static struct weir_limiter *opened(void)
{
	struct weir_config config = caching(LIMIT);
	struct weir_limiter *l;

	stay();
	l = rig_make(&config);
	cr_assert(!is_open(l));
	run_quiet_windows(l);
	cr_assert(is_open(l));
	return l;
}

/* With nothing held, the limiter behaves like any other. */
static void check_whole(struct weir_limiter *l, uint32_t limit)
{
	static struct weir_token token[LIMIT + 1];

	cr_assert(weir_inflight(l) == 0 && rig_snapshot(l).inflight == 0);
	cr_assert_eq(rig_fill(l, NULL, token, LIMIT + 1), limit);
	cr_assert_eq(weir_inflight(l), limit);
	cr_assert_eq(token[limit - 1].inflight, limit);
	rig_empty(l, token, limit);
	cr_assert(weir_inflight(l) == 0 && counted(l) == 0 && lent(l) == 0);
}

Test(permit_cache, a_permit_stays_with_its_stripe_and_is_taken_up_again)
{
	struct weir_limiter *l = opened();
	struct weir_token token;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		cr_assert(token.inflight == 1 && token.home != 0);
		cr_assert(weir_inflight(l) == 1 && counted(l) == 1 && lent(l) == 1);
		weir_release(l, &token, WEIR_IGNORE);
		cr_assert(weir_inflight(l) == 0 && counted(l) == 1 && lent(l) == 1);
		cr_assert_eq(rig_snapshot(l).inflight, 0);
	}
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, it_opens_only_for_configurations_that_allow_it)
{
	static const struct weir_partition partition = {.name = "a", .share = 0.5};
	struct weir_config config[7];

	for (unsigned i = 0; i < 7; i++)
		config[i] = caching(LIMIT);
	config[0].stripes = 1;
	config[1].limit_max = 32 * STRIPES - 1;
	config[2].limit_max = 32 * STRIPES;
	config[3].partitions = &partition;
	config[3].partition_count = 1;
	config[4].windowing = WEIR_WINDOW_SAMPLE;
	config[5].shed = 1;
	config[6].burst = 1;
	for (unsigned i = 0; i < 7; i++) {
		struct weir_limiter *l = rig_make(&config[i]);

		for (int k = 0; k < 3; k++)
			run_quiet_windows(l);
		cr_assert_eq(is_open(l), i >= 2, "configuration %u", i);
		weir_limiter_destroy(l);
	}
}

Test(permit_cache, it_does_not_open_after_a_window_that_came_nearer_to_the_limit)
{
	struct weir_config config = caching(LIMIT);
	struct weir_token token[LIMIT / 4];
	struct weir_limiter *l;

	stay();
	l = rig_make(&config);
	cr_assert_eq(rig_fill(l, NULL, token, LIMIT / 4), LIMIT / 4);
	run_quiet_windows(l);
	cr_assert(!is_open(l));
	rig_empty(l, token, 2);
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	/* Permits taken before belong to the gate, and go back there. */
	cr_assert(lent(l) == 0 || lent(l) == 1);
	rig_empty(l, token + 2, LIMIT / 4 - 2);
	cr_assert(is_open(l) && weir_inflight(l) == 0 && counted(l) == lent(l));
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, a_stripe_has_no_more_than_its_quota)
{
	struct weir_limiter *l = opened();
	struct weir_token token[2 * QUOTA];

	cr_assert_eq(rig_fill(l, NULL, token, 2 * QUOTA), 2 * QUOTA);
	cr_assert(lent(l) == QUOTA && token[QUOTA - 1].home != 0 && token[QUOTA].home == 0);
	rig_empty(l, token, 2 * QUOTA);
	cr_assert(weir_inflight(l) == 0 && counted(l) == QUOTA && lent(l) == QUOTA);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, permits_are_called_back_when_half_of_the_limit_is_in_flight)
{
	struct weir_limiter *l = opened();
	struct weir_token token[LIMIT / 2];

	cr_assert_eq(rig_fill(l, NULL, token, LIMIT / 2 - 1), LIMIT / 2 - 1);
	cr_assert(is_open(l) && token[LIMIT / 2 - 2].inflight == LIMIT / 2 - 1);
	rig_empty(l, token, 10); /* these are lent, and stay */
	cr_assert(counted(l) == LIMIT / 2 - 1 && weir_inflight(l) == LIMIT / 2 - 11);
	cr_assert_eq(rig_fill(l, NULL, token, 10), 10);
	cr_assert(is_open(l) && token[9].inflight == LIMIT / 2 - 1);
	cr_assert_eq(weir_try_acquire(l, &token[LIMIT / 2 - 1]), 0);
	cr_assert(!is_open(l) && token[LIMIT / 2 - 1].inflight == LIMIT / 2);
	rig_empty(l, token, LIMIT / 2);
	cr_assert(counted(l) == 0 && lent(l) == 0);
	/* The next quiet window opens it again. */
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, a_lower_limit_finds_nothing_idle)
{
	struct weir_limiter *l = opened();
	struct weir_token token[QUOTA], more[QUOTA];

	cr_assert_eq(rig_fill(l, NULL, token, QUOTA), QUOTA);
	rig_empty(l, token, QUOTA - 10);
	cr_assert_eq(weir_limit_set(l, LIMIT - 100), 0);
	cr_assert(is_open(l) && counted(l) == QUOTA);
	cr_assert_eq(weir_limit_set(l, QUOTA), 0);
	cr_assert(!is_open(l) && counted(l) == 10);
	cr_assert_eq(rig_fill(l, NULL, more, QUOTA), QUOTA - 10);
	cr_assert_eq(weir_limit_set(l, 5), 0);
	rig_empty(l, more, QUOTA - 10);
	cr_assert_eq(rig_fill(l, NULL, more, QUOTA), 0);
	rig_empty(l, token + QUOTA - 10, 10);
	check_whole(l, 5);
	weir_limiter_destroy(l);
}

Test(permit_cache, a_call_that_needs_the_whole_limit_gets_it)
{
	const struct weir_call all = {.cost = LIMIT}, nearly = {.cost = LIMIT - 1};
	struct weir_limiter *l = opened();
	struct weir_token token, big;

	cr_assert_eq(counted(l), 1);
	cr_assert_eq(weir_try_acquire_for(l, &all, &big), 0);
	cr_assert(!is_open(l) && big.inflight == LIMIT);
	weir_release(l, &big, WEIR_IGNORE);
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(weir_try_acquire_for(l, &all, &big), -EAGAIN);
	cr_assert_eq(weir_try_acquire_for(l, &nearly, &big), 0);
	weir_release(l, &big, WEIR_IGNORE);
	weir_release(l, &token, WEIR_IGNORE);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, a_waiter_gets_idle_permits)
{
	const struct weir_call big = {.cost = LIMIT - 5};
	struct weir_limiter *l = opened();
	struct weir_token token[10], got;
	struct weir_wait wait;

	cr_assert_eq(rig_fill(l, NULL, token, 10), 10);
	rig_empty(l, token, 4);
	cr_assert(is_open(l) && counted(l) == 10);
	cr_assert_eq(weir_enqueue_for(l, &big, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_poll(l, &wait, &got), -EAGAIN); /* six are held */
	cr_assert(!is_open(l) && counted(l) == 6);
	cr_assert_eq(weir_limit_set(l, LIMIT - 1), 0);
	cr_assert(!is_open(l)); /* as long as a call waits */
	cr_assert_eq(weir_limit_set(l, LIMIT), 0);
	rig_empty(l, token + 4, 1);
	cr_assert_eq(weir_poll(l, &wait, &got), 0);
	weir_release(l, &got, WEIR_IGNORE);
	rig_empty(l, token + 5, 5);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

/* A permit released after closing is released through its stripe, which still counts it. */
Test(permit_cache, a_lent_permit_outlives_the_open_mode)
{
	struct weir_limiter *l = opened();
	struct weir_token token[3], copy;

	cr_assert_eq(rig_fill(l, NULL, token, 3), 3);
	cr_assert(!cache_close(of(l)) && !is_open(l) && lent(l) == 3);
	copy = token[0];
	rig_empty(l, token, 1);
	cr_assert(counted(l) == 2 && lent(l) == 2);
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	rig_empty(l, token + 1, 2);
	cr_assert(is_open(l) && weir_inflight(l) == 0);
	weir_release(l, &copy, WEIR_IGNORE);
	cr_assert_eq(rig_snapshot(l).double_released, 1);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

Test(permit_cache, copies_are_detected)
{
	struct weir_config config = caching(LIMIT);
	struct weir_token own, own_copy, lent_copy, token;
	struct weir_limiter *l;

	stay();
	l = rig_make(&config);
	cr_assert_eq(weir_try_acquire(l, &own), 0);
	own_copy = own;
	weir_release(l, &own, WEIR_IGNORE);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	lent_copy = token;
	weir_release(l, &token, WEIR_IGNORE);
	cr_assert(weir_inflight(l) == 0 && counted(l) > 0);

	token = lent_copy;
	weir_release(l, &token, WEIR_IGNORE);
	cr_assert(rig_snapshot(l).double_released == 1 && weir_inflight(l) == 0);
	token = own_copy;
	weir_release(l, &token, WEIR_IGNORE);
	cr_assert(rig_snapshot(l).double_released == 2 && weir_inflight(l) == 0);
	token = own_copy;
	token.home = STRIPES + 1; /* no stripe at all */
	weir_release(l, &token, WEIR_IGNORE);
	cr_assert_eq(rig_snapshot(l).double_released, 3);
	check_whole(l, LIMIT);

	/* If the same stripe has another permit out, that permit's own release is the one reported. */
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	lent_copy = token;
	weir_release(l, &lent_copy, WEIR_IGNORE);
	weir_release(l, &token, WEIR_IGNORE);
	cr_assert_eq(rig_snapshot(l).double_released, 4);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

/* A copy of a token of the gate itself, released just as the first permit is lent. */
Test(permit_cache, a_permit_that_a_copy_took_does_not_stay_lost)
{
	struct weir_limiter *l = opened();
	struct weir_token token[3];

	cr_assert_eq(rig_fill(l, NULL, token, 3), 3);
	(void)gate_subtract(l->admission.gate, 1);
	rig_empty(l, token, 3);
	cr_assert(!cache_close(of(l)));
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

/* A thread is stopped in a sweep: the permits it has found are its own, and others continue. */
Test(permit_cache, a_sweep_that_is_stopped_blocks_no_other_thread)
{
	struct weir_limiter *l = opened();
	struct stripe *stripe = sampler_stripe(&l->sampling);
	struct weir_token token[5];
	uint64_t word;

	cr_assert_eq(rig_fill(l, NULL, token, 5), 5);
	rig_empty(l, token, 3);
	cr_assert(cache_held(of(l)).least == 2 && cache_held(of(l)).most == 2);

	/* It has marked the stripe, and taken nothing from the gate yet. */
	atomic_fetch_add(&of(l)->shared->mode, 1);
	atomic_fetch_add(&stripe->cached, UINT64_C(1) << CACHE_MARK_SHIFT);
	cr_assert(!cache_close(of(l)) && counted(l) == 5);
	cr_assert(cache_is(cache_mode(of(l)), CACHE_SHUT));
	cr_assert(cache_held(of(l)).least == 2 && cache_held(of(l)).most == 5);
	rig_empty(l, token + 3, 1);
	cr_assert(counted(l) == 4 && cache_held(of(l)).least == 1);

	/* When the cache is opened meanwhile, the stripe is not used; closing again marks it again. */
	run_quiet_windows(l);
	run_quiet_windows(l);
	cr_assert(is_open(l));
	cr_assert_eq(weir_try_acquire(l, &token[0]), 0);
	cr_assert_eq(token[0].home, 0);
	weir_release(l, &token[0], WEIR_IGNORE);
	word = atomic_load(&stripe->cached);
	cr_assert(!cache_close(of(l)) && counted(l) == 4);
	cr_assert_gt(cache_mark(atomic_load(&stripe->cached)), cache_mark(word));

	/* The stopped thread continues. */
	(void)gate_subtract_lent(l->admission.gate, 3);
	cr_assert(cache_held(of(l)).least == 0 && cache_held(of(l)).most == 1);
	atomic_fetch_sub(&stripe->cached, 3 * CACHE_IDLE);
	cr_assert(cache_held(of(l)).least == 1 && cache_held(of(l)).most == 1);
	rig_empty(l, token + 4, 1);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}

/* A sweep leaves its mark in the stripe, so a thread that saw the cache open comes too late. */
Test(permit_cache, a_mark_stops_a_thread_that_read_an_older_mode)
{
	struct weir_limiter *l = opened();
	struct stripe *stripe = sampler_stripe(&l->sampling);
	struct weir_token token;
	uint32_t mode;
	uint64_t word;

	for (uint32_t i = 0; i < STRIPES; i++)
		if (&l->sampling.stripes[i] != stripe)
			cr_assert_eq(atomic_load(&l->sampling.stripes[i].cached), 0);
	word = atomic_load(&stripe->cached);
	mode = cache_mode(of(l));
	cr_assert_eq(cache_mark(word), mode);
	cr_assert(!cache_close(of(l)));
	for (uint32_t i = 0; i < STRIPES; i++)
		cr_assert_eq(atomic_load(&l->sampling.stripes[i].cached),
			     (uint64_t)(mode + 1) << CACHE_MARK_SHIFT);
	cr_assert_eq(cache_mode(of(l)), mode + 3);
	atomic_store(&of(l)->shared->mode, mode); /* as a thread has read it before */
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(token.home, 0);
	atomic_store(&of(l)->shared->mode, mode + 3);
	weir_release(l, &token, WEIR_IGNORE);
	check_whole(l, LIMIT);
	weir_limiter_destroy(l);
}
