/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Special calls: bypass, cost, detached, bursts, shadow mode; and every outcome.
 */

#include <errno.h>
#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

static const struct weir_call bypass = {.flags = WEIR_CALL_BYPASS};

Test(calls, a_bypass_is_counted_but_neither_limited_nor_sampled)
{
	struct weir_config config = rig_config(1);
	struct weir_limiter *l;
	struct weir_token held, token[3];
	struct weir_wait wait;

	config.windowing = WEIR_WINDOW_SAMPLE;
	config.queue = 1;
	l = rig_make(&config);
	cr_assert_eq(weir_try_acquire(l, &held), 0);
	cr_assert_eq(rig_fill(l, &bypass, token, 3), 3);
	cr_assert(rig_snapshot(l).passing == 3 && rig_snapshot(l).bypassed == 3);
	cr_assert(weir_inflight(l) == 1 && rig_snapshot(l).admitted == 1);
	cr_assert_eq(weir_enqueue_for(l, &bypass, NULL, NULL, &wait), -EINVAL);
	rig_time += WEIR_MS;
	weir_release(l, &token[0], WEIR_SUCCESS);
	weir_release(l, &token[1], WEIR_DROPPED);
	weir_release(l, &token[1], WEIR_DROPPED);
	cr_assert(rig_snapshot(l).passing == 1 && rig_snapshot(l).double_released == 1);
	cr_assert(rig_snapshot(l).windows == 0 && rig_snapshot(l).succeeded == 0);
	weir_release(l, &held, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).windows, 1);
	weir_limiter_destroy(l);
}

/* It holds nothing by which it could be detected, but it does no harm either. */
Test(calls, releasing_a_copy_of_a_bypass_ends_nothing)
{
	struct weir_config config = rig_config(1);
	struct weir_limiter *l = rig_make(&config);
	struct weir_token token, copy;

	cr_assert_eq(weir_try_acquire_for(l, &bypass, &token), 0);
	copy = token;
	weir_release(l, &token, WEIR_SUCCESS);
	weir_release(l, &copy, WEIR_SUCCESS);
	cr_assert(rig_snapshot(l).passing == 0 && rig_snapshot(l).inflight == 0);
	weir_limiter_destroy(l);
}

Test(calls, a_cost_is_a_number_of_permits)
{
	struct weir_config config = rig_config(10);
	struct weir_limiter *l = rig_make(&config);
	const struct weir_call four = {.cost = 4}, twenty = {.cost = 20};
	struct weir_token token[3], none;

	cr_assert_eq(rig_fill(l, &four, token, 3), 2);
	cr_assert(token[0].cost == 4 && token[1].inflight == 8);
	cr_assert_eq(weir_inflight(l), 8);
	cr_assert_eq(rig_snapshot(l).admitted, 2, "calls, not permits");
	cr_assert_eq(weir_try_acquire_for(l, &twenty, &none), -EAGAIN);
	rig_empty(l, token, 2);
	cr_assert_eq(weir_try_acquire_for(l, &twenty, &token[0]), 0, "it may when alone");
	cr_assert_eq(token[0].cost, 10);
	cr_assert_eq(weir_try_acquire(l, &none), -EAGAIN);
	weir_release(l, &token[0], WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(rig_snapshot(l).admitted, 3);
	weir_limiter_destroy(l);
}

/* A waiter with a cost is one call when it is granted, and one when it has ended. */
Test(calls, a_waiter_with_a_cost_is_one_call)
{
	const struct weir_partition partitions[] = {{.name = "a"}};
	const struct weir_call ten = {.partition = 1, .cost = 10};
	struct weir_config config = rig_config(20);
	struct weir_limiter *l;
	struct weir_token token;
	struct weir_wait wait;

	config.queue = 1;
	config.partitions = partitions;
	config.partition_count = 1;
	l = rig_make(&config);
	cr_assert_eq(weir_enqueue_for(l, &ten, NULL, NULL, &wait), 0);
	cr_assert(rig_snapshot(l).inflight == 10 && rig_snapshot(l).admitted == 1);
	cr_assert_eq(weir_poll(l, &wait, &token), 0);
	cr_assert(rig_snapshot(l).admitted == 1 && rig_partition(l, 1).admitted == 1);
	weir_release(l, &token, WEIR_SUCCESS);
	cr_assert(rig_snapshot(l).admitted == 1 && rig_partition(l, 1).admitted == 1);
	cr_assert(rig_snapshot(l).succeeded == 1 && rig_snapshot(l).inflight == 0);
	weir_limiter_destroy(l);
}

Test(calls, a_waiter_with_a_cost_is_not_overtaken_by_cheaper_calls)
{
	struct weir_config config = rig_config(4);
	const struct weir_call three = {.cost = 3};
	struct weir_limiter *l;
	struct weir_token token[4], granted;
	struct weir_wait large, small;

	config.queue = 4;
	l = rig_make(&config);
	cr_assert_eq(rig_fill(l, NULL, token, 4), 4);
	cr_assert_eq(weir_enqueue_for(l, &three, NULL, NULL, &large), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &small), 0);
	rig_empty(l, token, 2);
	cr_assert_eq(weir_try_acquire(l, &granted), -EAGAIN);
	cr_assert_eq(weir_poll(l, &small, &granted), -EAGAIN);
	rig_empty(l, &token[2], 1);
	cr_assert_eq(weir_poll(l, &large, &granted), 0);
	cr_assert_eq(granted.cost, 3);
	cr_assert_eq(weir_poll(l, &small, &token[0]), -EAGAIN);
	weir_release(l, &granted, WEIR_IGNORE);
	cr_assert_eq(weir_poll(l, &small, &token[0]), 0);
	weir_limiter_destroy(l);
}

Test(calls, an_invalid_call_is_rejected)
{
	struct weir_config config = rig_config(4);
	struct weir_limiter *l = rig_make(&config);
	const struct weir_call bad[] = {
		{.partition = 1},
		{.priority = WEIR_PRIORITY_MAX + 1},
		{.priority = WEIR_PRIORITY_MIN - 1},
		{.cost = WEIR_LIMIT_MAX + 1},
		{.flags = 2},
		{.reserved = 1},
	};
	struct weir_token token;
	struct weir_wait wait;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		token.state = 7;
		cr_assert_eq(weir_try_acquire_for(l, &bad[i], &token), -EINVAL);
		cr_assert_eq(token.state, 0);
		cr_assert_eq(weir_acquire_for(l, &bad[i], WEIR_FOREVER, &token), -EINVAL);
		cr_assert_eq(weir_enqueue_for(l, &bad[i], NULL, NULL, &wait), -EINVAL);
	}
	cr_assert_eq(rig_snapshot(l).rejected, 0);
	weir_limiter_destroy(l);
}

Test(calls, a_detached_call_keeps_its_permit_and_is_no_latency)
{
	struct weir_config config = rig_config(2);
	struct weir_limiter *l;
	struct weir_token stream, call, none = {.state = 0};

	config.windowing = WEIR_WINDOW_SAMPLE;
	l = rig_make(&config);
	cr_assert_eq(weir_try_acquire(l, &stream), 0);
	cr_assert_eq(weir_try_acquire(l, &call), 0);
	cr_assert_eq(weir_detach(l, &stream), 0);
	cr_assert_eq(weir_detach(l, &stream), 0, "twice is once");
	cr_assert_eq(weir_detach(l, &none), -EINVAL);
	cr_assert(weir_inflight(l) == 2 && rig_snapshot(l).detached == 1);
	rig_time += WEIR_MS;
	weir_release(l, &call, WEIR_SUCCESS);
	rig_time += 3600 * WEIR_S;
	weir_release(l, &stream, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert(rig_snapshot(l).windows == 1 && rig_snapshot(l).last.window.rtt_max == 1e6);
	cr_assert_eq(rig_snapshot(l).succeeded, 2);
	weir_release(l, &stream, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 1);

	cr_assert_eq(weir_try_acquire(l, &stream), 0);
	cr_assert_eq(weir_detach(l, &stream), 0);
	weir_release(l, &stream, WEIR_DROPPED);
	cr_assert(rig_snapshot(l).last.window.dropped == 1, "a drop is a drop");
	cr_assert_eq(rig_snapshot(l).last.window.count, 0);
	weir_limiter_destroy(l);
}

static struct weir_limit_ops on_top;

/* A limit of two, with detached calls on top of it. */
static struct weir_config config_on_top(void)
{
	struct weir_config config = rig_config(2);

	on_top = weir_settable;
	on_top.flags |= WEIR_LIMIT_DETACHED;
	config.limit = &on_top;
	config.windowing = WEIR_WINDOW_SAMPLE;
	return config;
}

static void detach_all(struct weir_limiter *l, struct weir_token *tokens, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(weir_detach(l, &tokens[i]), 0);
}

Test(calls, a_detached_call_takes_no_room_if_the_limit_asks_for_that)
{
	struct weir_config config = config_on_top();
	struct weir_limiter *l = rig_make(&config);
	struct weir_token stream[2], call[3];
	struct weir_wait wait;

	cr_assert_eq(rig_fill(l, NULL, stream, 2), 2);
	detach_all(l, stream, 2);
	cr_assert_eq(weir_detach(l, &stream[0]), 0);
	cr_assert(weir_limit(l) == 4 && weir_inflight(l) == 2);
	cr_assert_eq(rig_fill(l, NULL, call, 3), 2);
	weir_release(l, &call[0], WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).windows, 0, "it took no time");
	rig_time += WEIR_MS;
	weir_release(l, &call[1], WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).last.window.inflight_max, 2, "one of two calls");
	cr_assert(rig_snapshot(l).last.window.limit == 2 && rig_snapshot(l).last.limit == 2);

	weir_release(l, &stream[0], WEIR_IGNORE);
	cr_assert(weir_limit(l) == 3 && weir_inflight(l) == 1);
	weir_release(l, &stream[0], WEIR_IGNORE);
	cr_assert(weir_limit(l) == 3 && rig_snapshot(l).double_released == 1);
	weir_release(l, &stream[1], WEIR_DROPPED);
	cr_assert(weir_limit(l) == 2 && weir_inflight(l) == 0);
	cr_assert_eq(rig_snapshot(l).last.window.dropped, 1, "a drop is a drop");

	cr_assert_eq(rig_fill(l, NULL, call, 2), 2);
	cr_assert_eq(weir_limit_set(l, 5), 0);
	detach_all(l, call, 1);
	cr_assert_eq(weir_limit(l), 6);
	rig_empty(l, call, 2);
	cr_assert_eq(weir_limit(l), 5);
	weir_limiter_destroy(l);

	config.queue = 1;
	l = rig_make(&config);
	cr_assert_eq(rig_fill(l, NULL, stream, 2), 2);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	detach_all(l, stream, 1);
	cr_assert_eq(weir_poll(l, &wait, call), 0, "the waiter is admitted");
	rig_empty(l, call, 1);
	rig_empty(l, stream, 2);
	cr_assert_eq(weir_limit(l), 2);
	weir_limiter_destroy(l);
}

/* Streams that began after a call were not in flight when it was admitted: only itself was. */
Test(calls, what_was_detached_since_is_not_subtracted_twice)
{
	struct weir_config config = config_on_top();
	struct weir_limiter *l = rig_make(&config);
	struct weir_token call, stream[3];

	cr_assert_eq(weir_try_acquire(l, &call), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_try_acquire(l, &stream[i]), 0);
		detach_all(l, &stream[i], 1);
	}
	rig_time += WEIR_MS;
	weir_release(l, &call, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).last.window.inflight_max, 1);
	rig_empty(l, stream, 3);
	weir_limiter_destroy(l);
}

/* Their costs count in full, and they are bounded by limit_max and by a partition's cap. */
Test(calls, detached_calls_stay_within_all_bounds)
{
	const struct weir_partition streams = {.name = "streams", .max = 3};
	const struct weir_call dear = {.cost = 2}, stream = {.partition = 1};
	struct weir_config config = config_on_top();
	struct weir_limiter *l;
	struct weir_token token[8];

	config.limit_max = 5;
	l = rig_make(&config);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_try_acquire_for(l, &dear, &token[i]), 0);
		detach_all(l, &token[i], 1);
		cr_assert_eq(weir_limit(l), i == 0 ? 4 : 5);
	}
	cr_assert_eq(rig_fill(l, NULL, &token[2], 4), 1);
	detach_all(l, &token[2], 1);
	cr_assert_eq(rig_fill(l, NULL, &token[3], 4), 0);
	rig_empty(l, &token[1], 2);
	cr_assert(weir_limit(l) == 4 && weir_inflight(l) == 2);
	rig_empty(l, token, 1);
	weir_limiter_destroy(l);

	config.limit_max = 0;
	config.partitions = &streams;
	config.partition_count = 1;
	l = rig_make(&config);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_try_acquire_for(l, &stream, &token[i]), 0);
		detach_all(l, &token[i], 1);
	}
	cr_assert_eq(weir_try_acquire_for(l, &stream, &token[3]), -EAGAIN);
	cr_assert_eq(rig_fill(l, NULL, &token[3], 4), 2);
	rig_empty(l, token, 5);
	cr_assert_eq(weir_limit(l), 2);
	weir_limiter_destroy(l);
}

Test(calls, a_copy_of_a_detached_token_does_not_lower_the_limit)
{
	struct weir_config config = config_on_top();
	struct weir_limiter *l = rig_make(&config);
	struct weir_token call, stream, copy;

	cr_assert_eq(weir_try_acquire(l, &call), 0);
	cr_assert_eq(weir_try_acquire(l, &stream), 0);
	detach_all(l, &stream, 1);
	copy = stream;
	weir_release(l, &stream, WEIR_SUCCESS);
	weir_release(l, &copy, WEIR_SUCCESS);
	cr_assert_eq(weir_limit(l), 2);
	weir_release(l, &call, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 1);
	weir_limiter_destroy(l);

	config.track = 4;
	l = rig_make(&config);
	cr_assert_eq(weir_try_acquire(l, &call), 0);
	cr_assert_eq(weir_try_acquire(l, &stream), 0);
	detach_all(l, &call, 1);
	detach_all(l, &stream, 1);
	copy = stream;
	weir_release(l, &stream, WEIR_SUCCESS);
	weir_release(l, &copy, WEIR_SUCCESS);
	cr_assert(weir_limit(l) == 3 && rig_snapshot(l).double_released == 1);
	weir_release(l, &call, WEIR_SUCCESS);
	cr_assert_eq(weir_limit(l), 2);
	weir_limiter_destroy(l);
}

/* One of each outcome, then a success that closes the window. */
Test(calls, each_outcome_is_counted_as_what_it_is)
{
	const enum weir_outcome outcomes[] = {WEIR_SUCCESS,   WEIR_IGNORE,    WEIR_DROPPED,
					      WEIR_TIMED_OUT, WEIR_CANCELLED, WEIR_FAILED};
	struct weir_config config = rig_config(20);
	struct weir_limiter *l;
	struct weir_token token;

	config.window_samples = 4;
	rig_time = WEIR_S;
	l = rig_make(&config);
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		rig_time += (weir_dur)(i + 1) * WEIR_MS;
		weir_release(l, &token, outcomes[i]);
	}
	rig_time += WEIR_S;
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	rig_time += WEIR_MS;
	weir_release(l, &token, WEIR_SUCCESS);

	struct weir_snapshot s = rig_snapshot(l);
	const struct weir_window *w = &s.last.window;

	cr_assert_eq(s.windows, 1);
	cr_assert(w->count == 4 && w->dropped == 1 && w->timed_out == 1);
	cr_assert(w->cancelled == 1 && w->failed == 1);
	cr_assert(w->rtt_max == 4e6 && w->rtt_min == 1e6, "only samples count");
	cr_assert(s.succeeded == 2 && s.ignored == 1 && s.dropped == 1 && s.timed_out == 1 &&
		  s.cancelled == 1 && s.failed == 1 && s.admitted == 7);
	weir_limiter_destroy(l);
}

static double cpu_shown;

static double show_cpu(const struct weir_gauge *self)
{
	(void)self;
	return cpu_shown;
}

static struct weir_limit_ops asking_ops;

/* A limiter with windows of one sample, whose limit has these flags. */
static struct weir_config config_asking(uint32_t flags)
{
	struct weir_config config = rig_config(20);

	asking_ops = weir_fixed;
	asking_ops.flags = flags;
	config.limit = &asking_ops;
	config.limit_config = NULL;
	config.windowing = WEIR_WINDOW_SAMPLE;
	return config;
}

static struct weir_limiter *make_asking(uint32_t flags, const struct weir_gauge *cpu)
{
	struct weir_config config = config_asking(flags);

	config.cpu = cpu;
	return rig_make(&config);
}

static struct weir_window window_now(struct weir_limiter *l)
{
	rig_time += WEIR_MS;
	weir_sample_at(l, rig_time - WEIR_MS, rig_time, 1, WEIR_SUCCESS);
	return rig_snapshot(l).last.window;
}

/* With windows of one sample and with windows of time. */
Test(calls, others_are_in_the_next_window_with_their_time)
{
	static const enum weir_outcome outcomes[] = {WEIR_IGNORE, WEIR_CANCELLED, WEIR_FAILED};

	for (int windowing = WEIR_WINDOW_TIME; windowing <= WEIR_WINDOW_SAMPLE; windowing++) {
		struct weir_config config = config_on_top();
		struct weir_limiter *l;
		struct weir_token token;
		struct weir_window w;

		config.windowing = (enum weir_windowing)windowing;
		config.window_samples = 1;
		l = rig_make(&config);
		window_now(l);
		for (unsigned i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
			cr_assert_eq(weir_try_acquire(l, &token), 0);
			rig_time += 2 * WEIR_MS;
			weir_release(l, &token, outcomes[i]);
		}
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		weir_release(l, &token, WEIR_SUCCESS); /* no time has passed: no latency */
		rig_time += 10 * WEIR_S;
		w = window_now(l);
		cr_assert_eq(w.others, 4, "%u", w.others);
		cr_assert_eq(w.others_time, 6e6, "%g", w.others_time);
		rig_time += 10 * WEIR_S;
		w = window_now(l);
		cr_assert(w.others == 0 && w.others_time == 0, "once only");
		weir_limiter_destroy(l);
	}
}

Test(calls, inflight_now_is_set_for_limits_that_ask_for_it)
{
	struct weir_config config = config_on_top();
	struct weir_limiter *l;
	struct weir_token token[3];

	on_top.flags |= WEIR_LIMIT_NOW;
	l = rig_make(&config);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_try_acquire(l, &token[i]), 0);
		if (i == 0)
			detach_all(l, token, 1);
	}
	rig_time += WEIR_MS;
	weir_release(l, &token[2], WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).last.window.inflight_max, 2);
	cr_assert_eq(rig_snapshot(l).last.window.inflight_now, 1);
	rig_empty(l, token, 2);
	cr_assert_eq(rig_snapshot(l).last.window.inflight_now, 1);
	weir_limiter_destroy(l);

	l = make_asking(0, NULL);
	cr_assert_eq(weir_try_acquire(l, token), 0);
	cr_assert_eq(window_now(l).inflight_now, 0, "not asked for");
	rig_empty(l, token, 1);
	weir_limiter_destroy(l);
}

Test(calls, the_cpu_gauge_is_read_for_limits_that_ask_for_it)
{
	static const struct weir_gauge gauge = {.read = show_cpu};
	const struct {
		double shown, seen;
	} cases[] = {{0.7, 0.7}, {0, 0}, {1.5, 1}, {-1, 0}, {NAN, 0}, {INFINITY, 1}};
	struct weir_limiter *l = make_asking(WEIR_LIMIT_CPU, &gauge);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cpu_shown = cases[i].shown;
		cr_assert_eq(window_now(l).cpu, cases[i].seen, "%f", cases[i].shown);
	}
	weir_limiter_destroy(l);

	cpu_shown = 0.7;
	l = make_asking(WEIR_LIMIT_QUEUE, &gauge);
	cr_assert_eq(window_now(l).cpu, 0, "not asked for");
	weir_limiter_destroy(l);
	l = make_asking(WEIR_LIMIT_CPU, NULL);
	cr_assert_eq(window_now(l).cpu, 0, "not known");
	weir_limiter_destroy(l);
}

static struct weir_limiter *make_with_real_time(const struct weir_clock *clock)
{
	struct weir_config config = config_asking(WEIR_LIMIT_REAL_TIME);

	config.clock = clock;
	config.clock_zero = 5 * WEIR_S;
	return rig_make(&config);
}

Test(calls, real_time_is_what_the_program_says_of_its_own_clock)
{
	struct weir_limiter *l = make_with_real_time(&rig_clock);

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(window_now(l).real, rig_time + 5 * WEIR_S);
		rig_time += 20 * WEIR_S;
	}
	weir_limiter_destroy(l);

	l = make_asking(0, NULL);
	cr_assert_eq(window_now(l).real, 0, "not asked for");
	weir_limiter_destroy(l);
}

/* Seconds by which the system's clock was set since the program started. */
static int64_t clock_set_by;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += clock_set_by;
	return r;
}

static uint64_t system_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * WEIR_S + (uint64_t)now.tv_nsec;
}

/* What a window that ends so much later than now has as its real time, less that. */
static uint64_t real_time_later(struct weir_limiter *l, weir_dur later)
{
	const weir_time now = weir_now() + later;

	weir_sample_at(l, now - WEIR_MS, now, 1, WEIR_SUCCESS);
	return rig_snapshot(l).last.window.real - later;
}

static void check_real_time(struct weir_limiter *l, weir_dur later)
{
	const uint64_t before = system_time();
	const uint64_t real = real_time_later(l, later);

	cr_assert_geq(real + WEIR_MS, before);
	cr_assert_leq(real, system_time() + WEIR_MS);
}

/* Within ten seconds it need not notice that the clock was set. */
Test(calls, real_time_is_that_of_the_system)
{
	struct weir_limiter *l = make_with_real_time(NULL);

	check_real_time(l, 0);
	check_real_time(l, 20 * WEIR_S);
	clock_set_by = 3600;
	check_real_time(l, 40 * WEIR_S);
	clock_set_by = -3600;
	check_real_time(l, 60 * WEIR_S);
	weir_limiter_destroy(l);
}

Test(calls, queue_delays_of_the_backend_are_counted)
{
	struct weir_limiter *l = make_asking(WEIR_LIMIT_QUEUE, NULL);
	struct weir_token held, passed, detached, released;

	cr_assert_eq(weir_try_acquire(l, &held), 0);
	cr_assert_eq(weir_try_acquire(l, &detached), 0);
	cr_assert_eq(weir_try_acquire(l, &released), 0);
	cr_assert_eq(weir_try_acquire_for(l, &bypass, &passed), 0);
	cr_assert_eq(weir_detach(l, &detached), 0);
	weir_release(l, &released, WEIR_IGNORE);
	weir_queued(l, &held, 5 * WEIR_MS);
	weir_queued(l, &held, 0 - WEIR_MS);
	weir_queued(l, &detached, 1);
	weir_queued(l, &released, 2);
	weir_queued(l, &passed, 3);
	cr_assert(window_now(l).queued == 1 && rig_snapshot(l).last.window.queue_min == 5e6);
	cr_assert_eq(window_now(l).queued, 0);
	weir_release(l, &held, WEIR_IGNORE);
	weir_release(l, &detached, WEIR_IGNORE);
	weir_release(l, &passed, WEIR_IGNORE);
	weir_limiter_destroy(l);

	l = make_asking(0, NULL);
	cr_assert_eq(weir_try_acquire(l, &held), 0);
	weir_queued(l, &held, 5);
	cr_assert_eq(window_now(l).queued, 0, "not asked for");
	weir_release(l, &held, WEIR_IGNORE);
	weir_limiter_destroy(l);
}

/* Whether a limit decreases after a window with calls of these outcomes. */
static bool shrinks(const struct weir_limit_ops *ops, uint32_t dropped, uint32_t timed_out,
		    uint32_t cancelled, uint32_t failed)
{
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX] = {0};
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_window w = {
		.end = WEIR_S, .count = 10, .inflight_max = 40, .limit = 40, .rtt = 1e7};
	double before, after;

	cr_assert_eq(weir_limit_complete(ops, NULL, 0, config, NULL, 0), 0);
	ops->init(state, config, 0.5);
	for (int i = 0; i < 20; i++)
		before = ops->update(state, &w);
	w.dropped = dropped;
	w.timed_out = timed_out;
	w.cancelled = cancelled;
	w.failed = failed;
	w.count = dropped + timed_out > 0 ? 10 : 0;
	after = ops->update(state, &w);
	return after < before;
}

Test(calls, each_limit_reacts_to_each_outcome_as_documented)
{
	const struct {
		const struct weir_limit_ops *ops;
		bool dropped, timed_out;
	} limits[] = {{&weir_aimd, true, true},     {&weir_vegas, true, true},
		      {&weir_gradient, true, true}, {&weir_gradient2, false, false},
		      {&weir_bbr, false, false},    {&weir_cautious, true, true},
		      {&weir_codel, false, false},  {&weir_hillclimb, false, false},
		      {&weir_envoy, false, false},  {&weir_failsafe, false, false},
		      {&weir_vector, true, true},   {&weir_fixed, false, false},
		      {&weir_elastic, false, true}};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct weir_limit_ops *ops = limits[i].ops;

		cr_assert_eq(shrinks(ops, 1, 0, 0, 0), limits[i].dropped, "%s", ops->name);
		cr_assert_eq(shrinks(ops, 0, 1, 0, 0), limits[i].timed_out, "%s", ops->name);
		cr_assert(!shrinks(ops, 0, 0, 1, 0), "%s", ops->name);
		cr_assert(!shrinks(ops, 0, 0, 0, 1), "%s", ops->name);
	}
}

/* A window of that many concurrent calls, each of which takes rtt. */
static uint32_t play_window(struct weir_limiter *l, uint32_t calls, weir_dur rtt)
{
	struct weir_token token[64];
	uint32_t admitted = rig_fill(l, NULL, token, calls);

	rig_time += rtt;
	for (uint32_t i = 0; i + 1 < admitted; i++)
		weir_release(l, &token[i], WEIR_SUCCESS);
	rig_time += WEIR_S;
	weir_release_at(l, rig_time, &token[admitted - 1], WEIR_IGNORE);
	/* One more sample, to close the window. */
	weir_sample_at(l, rig_time - rtt, rig_time, 1, WEIR_SUCCESS);
	return admitted;
}

static struct weir_limiter *make_bursting(void)
{
	struct weir_config config = rig_config(10);

	config.burst = 5;
	rig_time = WEIR_S;
	return rig_make(&config);
}

Test(calls, a_short_burst_goes_above_the_limit)
{
	struct weir_limiter *l = make_bursting();

	cr_assert(weir_limit(l) == 10 && rig_snapshot(l).burst == 5);
	(void)play_window(l, 4, WEIR_MS);
	cr_assert_eq(play_window(l, 40, WEIR_MS), 15);
	cr_assert_eq(rig_snapshot(l).burst, 5, "it did no harm");
	weir_limiter_destroy(l);
}

Test(calls, a_burst_that_raises_latency_is_the_last)
{
	struct weir_limiter *l = make_bursting();

	(void)play_window(l, 4, WEIR_MS);
	(void)play_window(l, 4, WEIR_MS);
	cr_assert_eq(play_window(l, 40, 2 * WEIR_MS), 15);
	cr_assert_eq(rig_snapshot(l).burst, 0);
	cr_assert_eq(play_window(l, 40, 2 * WEIR_MS), 10);
	(void)play_window(l, 4, WEIR_MS);
	cr_assert_eq(rig_snapshot(l).burst, 5, "a calm window brings it back");
	weir_limiter_destroy(l);
}

Test(calls, a_burst_that_lasts_is_closed)
{
	struct weir_limiter *l = make_bursting();
	uint32_t windows = 0;

	(void)play_window(l, 4, WEIR_MS);
	while (play_window(l, 40, WEIR_MS) == 15)
		windows++;
	cr_assert_eq(windows, 5);
	cr_assert_eq(weir_limit(l), 10, "the learned limit is unchanged");
	weir_limiter_destroy(l);
}

/* Any window with a call in it reaches a limit of one; that alone is no burst. */
Test(calls, a_burst_above_a_limit_of_one_opens_again)
{
	struct weir_config config = rig_config(1);
	struct weir_limiter *l;

	config.burst = 5;
	rig_time = WEIR_S;
	l = rig_make(&config);
	(void)play_window(l, 1, WEIR_MS);
	(void)play_window(l, 1, WEIR_MS);
	cr_assert_eq(play_window(l, 40, 2 * WEIR_MS), 6);
	cr_assert_eq(rig_snapshot(l).burst, 0, "latency rose");
	(void)play_window(l, 1, WEIR_MS);
	cr_assert_eq(rig_snapshot(l).burst, 5);
	weir_limiter_destroy(l);
}

/* A random source that acts as another thread: it sets the limit while a window is processed. */
struct intruder {
	struct weir_random random;
	struct weir_limiter *limiter; /* NULL: do nothing */
};

static double intrude(struct weir_random *self)
{
	struct intruder *intruder = (struct intruder *)self;

	if (intruder->limiter != NULL)
		cr_assert_eq(weir_limit_set(intruder->limiter, 5), 0);
	intruder->limiter = NULL;
	return 0.5;
}

Test(calls, a_limit_set_while_a_window_ends_the_burst_stays)
{
	struct intruder intruder = {.random = {.next = intrude}};
	struct weir_config config = rig_config(20);
	struct weir_limiter *l;
	struct weir_token token[24];

	config.burst = 4;
	config.random = &intruder.random;
	config.windowing = WEIR_WINDOW_SAMPLE;
	rig_time = WEIR_S;
	l = rig_make(&config);
	cr_assert_eq(rig_fill(l, NULL, token, 24), 24);
	rig_time += WEIR_MS;
	intruder.limiter = l;
	weir_release(l, &token[23], WEIR_DROPPED);
	cr_assert(intruder.limiter == NULL && rig_snapshot(l).burst == 0);
	cr_assert_eq(weir_limit(l), 5);
	rig_empty(l, token, 23);
	cr_assert_eq(rig_fill(l, NULL, token, 24), 5, "and is in force");
	weir_limiter_destroy(l);
}

Test(calls, in_shadow_mode_no_call_is_refused)
{
	struct weir_config config = rig_config(2);
	struct weir_limiter *l;
	struct weir_token token[8];

	config.shadow = 1;
	l = rig_make(&config);
	cr_assert_eq(rig_fill(l, NULL, token, 8), 8);

	struct weir_snapshot s = rig_snapshot(l);

	cr_assert(s.shadow == 1 && s.admitted == 2 && s.would_reject == 6 && s.passing == 6);
	cr_assert(s.rejected == 0 && s.inflight == 2);
	for (int i = 7; i >= 0; i--)
		weir_release(l, &token[i], WEIR_SUCCESS);
	cr_assert(rig_snapshot(l).passing == 0 && rig_snapshot(l).inflight == 0);
	weir_shadow_set(l, false);
	cr_assert_eq(rig_fill(l, NULL, token, 8), 2, "and now it is enforced");
	cr_assert_eq(rig_snapshot(l).rejected, 6);
	weir_limiter_destroy(l);
}

Test(calls, in_shadow_mode_no_call_waits)
{
	struct weir_config config = rig_config(1);
	struct weir_limiter *l;
	struct weir_token token[4];
	struct weir_wait wait[3];

	config.queue = 3;
	l = rig_make(&config);
	cr_assert_eq(weir_try_acquire(l, &token[0]), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait[0]), 0);
	cr_assert_eq(weir_poll(l, &wait[0], &token[1]), -EAGAIN);
	weir_shadow_set(l, true);
	cr_assert_eq(weir_poll(l, &wait[0], &token[1]), 0, "the waiter is let through");
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait[1]), 0);
	cr_assert_eq(weir_poll(l, &wait[1], &token[2]), 0);
	cr_assert(token[1].cost == 0 && token[2].cost == 0);
	cr_assert(rig_snapshot(l).would_reject == 2 && weir_waiting(l) == 0);
	rig_empty(l, token, 3);
	cr_assert(weir_inflight(l) == 0 && rig_snapshot(l).passing == 0);
	weir_limiter_destroy(l);
}

Test(calls, in_shadow_mode_a_thread_is_let_through_at_once)
{
	struct weir_config config = rig_config(1);
	struct weir_limiter *l;
	struct weir_token a, b;

	config.clock = NULL;
	config.queue = 3;
	config.shadow = 1;
	l = rig_make(&config);
	cr_assert_eq(weir_acquire(l, WEIR_FOREVER, &a), 0);
	cr_assert_eq(weir_acquire(l, WEIR_FOREVER, &b), 0);
	cr_assert(a.cost == 1 && b.cost == 0);
	weir_release(l, &b, WEIR_SUCCESS);
	weir_release(l, &a, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}
