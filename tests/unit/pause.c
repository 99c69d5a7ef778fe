/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses: a limit asks for a time in which no call is admitted.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "rig.h"

#define LENGTH ((double)(10 * WEIR_MS)) /* of a pause */

/* What the next window shall make of the limit; negative: a pause. */
static double answer;

static double pausing_init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return 4;
}

static double pausing_update(void *state, const struct weir_window *w)
{
	(void)state;
	(void)w;
	return answer;
}

static const struct weir_sampling each_sample = {.windowing = WEIR_WINDOW_SAMPLE};

static const struct weir_limit_ops pausing = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_PAUSES,
	.name = "pausing",
	.about = "Does what the test says.",
	.version = 1,
	.state_size = 1,
	.init = pausing_init,
	.update = pausing_update,
	.sampling = &each_sample,
};

static struct weir_limiter *make(uint32_t queue, const struct weir_limit_ops *ops, bool virtual)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.queue = queue;
	if (virtual)
		config.clock = &rig_clock;
	rig_time = WEIR_S;
	return rig_make(&config);
}

/* A call ends in time, and its window makes this of the limit. */
static void end_with(struct weir_limiter *l, struct weir_token *token, double limit)
{
	answer = limit;
	rig_time++; /* a call that takes no time is no sample */
	weir_release(l, token, WEIR_SUCCESS);
}

/* The limit pauses, with no call in flight. */
static void begin_pause(struct weir_limiter *l)
{
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, -LENGTH);
}

Test(pause, admits_no_call_until_it_is_over)
{
	struct weir_limiter *l = make(0, &pausing, true);
	struct weir_token a, b;

	begin_pause(l);
	cr_expect_eq(weir_limit(l), 0);
	cr_expect_eq(rig_snapshot(l).limit, 0);
	cr_expect_eq(rig_snapshot(l).last.limit, 0);
	cr_expect_eq(weir_try_acquire(l, &a), -EAGAIN);
	rig_time += (weir_time)LENGTH - 1;
	cr_expect_eq(weir_try_acquire(l, &a), -EAGAIN);
	rig_time += 1;
	cr_expect_eq(weir_try_acquire(l, &a), 0);
	cr_expect_eq(weir_limit(l), 1, "the lowest");
	cr_expect_eq(weir_try_acquire(l, &b), -EAGAIN);
	end_with(l, &a, 3);
	cr_expect_eq(weir_limit(l), 3);
	weir_limiter_destroy(l);
}

Test(pause, a_call_that_ends_meanwhile_can_end_or_prolong_it)
{
	struct weir_limiter *l = make(0, &pausing, true);
	struct weir_token a, b, c;

	cr_assert_eq(weir_try_acquire(l, &a), 0);
	cr_assert_eq(weir_try_acquire(l, &b), 0);
	begin_pause(l);
	rig_time += (weir_time)LENGTH / 2;
	end_with(l, &a, -LENGTH);
	rig_time += (weir_time)LENGTH / 2;
	cr_expect_eq(weir_try_acquire(l, &c), -EAGAIN);
	end_with(l, &b, 2);
	cr_expect_eq(weir_limit(l), 2);
	cr_expect_eq(weir_try_acquire(l, &c), 0);
	end_with(l, &c, 2);
	weir_limiter_destroy(l);
}

Test(pause, is_a_minute_at_most)
{
	struct weir_limiter *l = make(0, &pausing, true);
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, -INFINITY);
	rig_time += WEIR_PAUSE_MAX - 1;
	cr_expect_eq(weir_try_acquire(l, &token), -EAGAIN);
	rig_time += 1;
	cr_expect_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

/* Such as a limiter's clock that is set back: the pause would last until the old time. */
Test(pause, ends_when_the_clock_goes_far_back)
{
	struct weir_limiter *l = make(0, &pausing, true);
	struct weir_token token;

	rig_time = 3600 * WEIR_S;
	begin_pause(l);
	rig_time = WEIR_S;
	cr_expect_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

Test(pause, is_only_for_limits_that_ask_for_it)
{
	struct weir_limit_ops ops = pausing;
	struct weir_limiter *l;
	struct weir_token token;

	ops.flags = 0;
	l = make(0, &ops, true);
	begin_pause(l);
	cr_expect_eq(weir_limit(l), 1);
	cr_expect_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

Test(pause, a_cap_of_zero_outlasts_it)
{
	struct weir_limiter *l = make(0, &pausing, true);
	struct weir_token token;

	begin_pause(l);
	cr_assert_eq(weir_limit_cap(l, 0), 0);
	rig_time += (weir_time)LENGTH;
	cr_expect_eq(weir_try_acquire(l, &token), -EAGAIN);
	cr_assert_eq(weir_limit_cap(l, WEIR_LIMIT_MAX), 0);
	cr_expect_eq(weir_try_acquire(l, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

Test(pause, partitions_with_a_guarantee_pause_too)
{
	static const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	const struct weir_call live = {.partition = 1};
	struct weir_config config;
	struct weir_limiter *l;
	struct weir_token token;

	weir_config_init(&config);
	config.limit = &pausing;
	config.clock = &rig_clock;
	config.partitions = partitions;
	config.partition_count = 1;
	rig_time = WEIR_S;
	l = rig_make(&config);
	begin_pause(l);
	cr_expect_eq(weir_try_acquire_for(l, &live, &token), -EAGAIN);
	rig_time += (weir_time)LENGTH;
	cr_expect_eq(weir_try_acquire_for(l, &live, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

Test(pause, a_call_in_the_queue_is_admitted_before_the_one_that_ends_it)
{
	struct weir_limiter *l = make(2, &pausing, true);
	struct weir_token token, other;
	struct weir_wait wait;

	begin_pause(l);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	rig_time += (weir_time)LENGTH;
	cr_expect_eq(weir_try_acquire(l, &other), -EAGAIN);
	cr_expect_eq(weir_poll(l, &wait, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

Test(pause, a_poll_ends_it)
{
	struct weir_limiter *l = make(2, &pausing, true);
	struct weir_token token;
	struct weir_wait wait;

	begin_pause(l);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	cr_expect_eq(weir_poll(l, &wait, &token), -EAGAIN);
	rig_time += (weir_time)LENGTH;
	cr_expect_eq(weir_poll(l, &wait, &token), 0);
	end_with(l, &token, 1);
	weir_limiter_destroy(l);
}

static void *acquire(void *arg)
{
	struct weir_token token;

	cr_assert_eq(weir_acquire(arg, WEIR_FOREVER, &token), 0);
	weir_release(arg, &token, WEIR_SUCCESS);
	return NULL;
}

/* No call comes when the pause is over: one of the threads wakes by itself. */
Test(pause, threads_that_wait_are_admitted_after_it)
{
	struct weir_limiter *l = make(4, &pausing, false);
	pthread_t threads[3];

	begin_pause(l);
	answer = 1;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, acquire, l), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

/* A thread already sleeps when the pause begins, without a time to wake. */
Test(pause, threads_that_waited_before_are_admitted_after_it)
{
	struct weir_limiter *l = make(4, &pausing, false);
	struct weir_token held[4];
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		cr_assert_eq(weir_try_acquire(l, &held[i]), 0);
	cr_assert_eq(pthread_create(&thread, NULL, acquire, l), 0);
	while (weir_waiting(l) == 0)
		usleep(100);
	for (int i = 0; i < 3; i++)
		end_with(l, &held[i], i < 2 ? 1 : -LENGTH);
	end_with(l, &held[3], -LENGTH);
	answer = 1;
	pthread_join(thread, NULL);
	cr_expect_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}
