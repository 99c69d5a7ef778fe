/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_brpc.c - the response of brpc to single windows.
 */
#include "limits.h"

#define ROUND WEIR_S

/* Rounds of calls that all take 10 ms, 5000 a second: 50 in flight. */
static void start_known(struct subject *s, const char *text)
{
	start(s, &weir_brpc, text);
	feed(s, period(ROUND, 5000, 10 * MS, 50));
	cr_assert_float_eq(number(s, "rate_max"), 5000, 1e-6);
}

Test(brpc, defaults)
{
	struct weir_brpc_config c;

	cr_assert_eq(weir_limit_complete(&weir_brpc, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 40);
	cr_assert_eq(c.min, 9);
	cr_assert_eq(c.max, INT32_MAX);
	cr_assert_eq(c.smoothing, 0.1);
	cr_assert_eq(c.explore_min, 0.06);
	cr_assert_eq(c.explore_max, 0.3);
	cr_assert_eq(c.explore_step, 0.02);
	cr_assert_eq(c.round_max, WEIR_S);
	cr_assert_eq(c.samples_min, 100);
	cr_assert_eq(c.samples_max, 200);
	cr_assert_eq(c.probe_interval, 50 * WEIR_S);
	cr_assert_eq(c.reduce, 0.9);
	cr_assert_eq(c.punish, 1);
}

Test(brpc, windows)
{
	const struct weir_sampling *s = weir_brpc.sampling;

	cr_assert(s->window_min == 20 * WEIR_MS && s->window_max == 20 * WEIR_MS);
	cr_assert(s->window_samples == 1 && s->rtt == WEIR_RTT_MEAN);
}

Test(brpc, refuses_min_above_max)
{
	assert_refused(&weir_brpc, "max=8", "min is above max");
	assert_refused(&weir_brpc, "samples_min=201", "samples_min is above samples_max");
	assert_refused(&weir_brpc, "explore_min=0.31", "explore_min is above explore_max");
	assert_accepted(&weir_brpc, "max=9,samples_min=200,explore_min=0.3");
}

Test(brpc, is_throughput_times_latency_and_a_fraction)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_float_eq(s.limit, 65, 1e-9);
	cr_assert_eq(number(&s, "explore"), 0.3);
}

Test(brpc, a_round_ends_after_samples_max)
{
	struct subject s;

	start(&s, &weir_brpc, "");
	cr_assert_eq(feed(&s, period(20 * WEIR_MS, 199, 10 * MS, 40)), 40);
	cr_assert_float_eq(feed(&s, period(20 * WEIR_MS, 201, 20 * MS, 40)), 194.675, 1e-9,
			   "10000 a second, mean of 14.975 ms? %g", s.limit);
}

Test(brpc, a_round_ends_after_round_max)
{
	struct subject s;
	int i;

	start(&s, &weir_brpc, "");
	for (i = 0; i < 9; i++)
		cr_assert_eq(feed(&s, period(100 * WEIR_MS, 15, 100 * MS, 40)), 40);
	cr_assert_float_eq(feed(&s, period(100 * WEIR_MS, 15, 100 * MS, 40)), 19.5, 1e-9);
}

Test(brpc, a_round_with_too_few_samples_is_discarded)
{
	struct subject s;
	int i;

	start(&s, &weir_brpc, "");
	for (i = 0; i < 10; i++)
		feed(&s, period(100 * WEIR_MS, i < 9 ? 10 : 9, 300 * MS, 40));
	cr_assert_eq(s.limit, 40);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
	/* Nothing of it is left in the next round. */
	feed(&s, period(ROUND, 100, 100 * MS, 40));
	cr_assert_eq(number(&s, "rtt_noload"), 100 * MS);
	cr_assert_float_eq(number(&s, "rate_max"), 100, 1e-9);
}

Test(brpc, learns_a_lower_latency_slowly_and_a_higher_one_never)
{
	struct subject s;

	start_known(&s, "");
	feed(&s, period(ROUND, 5000, 8 * MS, 50));
	cr_assert_float_eq(number(&s, "rtt_noload"), 9.8 * MS, 1e-3);
	feed(&s, period(ROUND, 5000, 20 * MS, 50));
	cr_assert_float_eq(number(&s, "rtt_noload"), 9.8 * MS, 1e-3);
}

Test(brpc, learns_a_higher_throughput_at_once_and_a_lower_one_slowly)
{
	struct subject s;

	start_known(&s, "");
	feed(&s, period(ROUND, 6000, 10 * MS, 50));
	cr_assert_float_eq(number(&s, "rate_max"), 6000, 1e-6);
	feed(&s, period(ROUND, 3000, 10 * MS, 50));
	cr_assert_float_eq(number(&s, "rate_max"), 5970, 1e-6);
}

Test(brpc, explores_less_where_latency_has_risen)
{
	struct subject s;

	start_known(&s, "");
	feed(&s, period(ROUND, 5000, 10.7 * MS, 65));
	cr_assert_float_eq(number(&s, "explore"), 0.28, 1e-12);
	cr_assert_float_eq(s.limit, 64, 1e-9);
	feed(&s, period(ROUND, 5000, 10.5 * MS, 65));
	cr_assert_float_eq(number(&s, "explore"), 0.3, 1e-12, "near enough");
	for (int i = 0; i < 20; i++)
		feed(&s, period(ROUND, 5000, 20 * MS, 65));
	cr_assert_float_eq(number(&s, "explore"), 0.06, 1e-12);
	cr_assert_float_eq(s.limit, 53, 1e-9);
	/* At a throughput well below the highest, latency alone does not reduce explore. */
	feed(&s, period(ROUND, 4700, 20 * MS, 65));
	cr_assert_float_eq(number(&s, "explore"), 0.08, 1e-12);
}

Test(brpc, measures_the_lowest_latency_again)
{
	struct subject s;

	start_known(&s, "probe_interval=4s"); /* 2 s with a random number of 0 */
	cr_assert_eq(number(&s, "probes"), 0);
	cr_assert_eq(feed(&s, period(ROUND, 5010, 10 * MS, 65)), 46); /* 45.09 */
	cr_assert_eq(number(&s, "probes"), 1);
	cr_assert_float_eq(number(&s, "settle"), 20 * MS, 1e-3);

	/* Samples are skipped for two latencies; the next round sets the lowest latency. */
	cr_assert_eq(feed(&s, period(19 * WEIR_MS, 1000, 90 * MS, 65)), 46);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
	cr_assert_eq(feed(&s, period(19 * WEIR_MS, 1000, 90 * MS, 65)), 46);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
	cr_assert_eq(number(&s, "countdown"), 2e9);
	feed(&s, period(ROUND, 5000, 12 * MS, 45));
	cr_assert_eq(number(&s, "rtt_noload"), 12 * MS);
	cr_assert_float_eq(s.limit, 78.15444, 1e-6);
}

Test(brpc, the_time_of_a_measurement_is_random)
{
	struct subject s;

	start_random(&s, &weir_brpc, "", 0.5);
	cr_assert_eq(number(&s, "countdown"), 37.5e9);
}

Test(brpc, failures_make_latency_appear_longer)
{
	struct subject s;
	struct weir_window w = period(ROUND, 200, 100 * MS, 40);

	start(&s, &weir_brpc, "");
	w.dropped = 40;
	w.timed_out = 60;
	feed(&s, w);
	cr_assert_eq(number(&s, "rtt_noload"), 200 * MS);
	cr_assert_float_eq(number(&s, "rate_max"), 100, 1e-9);

	start(&s, &weir_brpc, "punish=0.5");
	feed(&s, w);
	cr_assert_eq(number(&s, "rtt_noload"), 150 * MS);
}

Test(brpc, a_round_of_failures_alone_halves_the_limit)
{
	struct subject s;
	struct weir_window w = period(ROUND, 200, 100 * MS, 40);

	start(&s, &weir_brpc, "");
	w.dropped = 200;
	cr_assert_eq(feed(&s, w), 20);
	w.count = 0;
	cr_assert_eq(feed(&s, w), 10, "without a latency too");
	cr_assert_eq(feed(&s, w), 9);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
}

/* There is no concurrency to compute from. */
Test(brpc, a_round_without_latency_changes_nothing)
{
	struct subject s;

	start(&s, &weir_brpc, "");
	cr_assert_eq(feed(&s, period(ROUND, 5000, 0, 50)), 40);
	cr_assert_eq(number(&s, "rate_max"), 0);
}

Test(brpc, stays_within_its_bounds)
{
	struct subject s;

	start(&s, &weir_brpc, "max=100");
	cr_assert_eq(feed(&s, period(ROUND, 50000, 10 * MS, 50)), 100);
	start(&s, &weir_brpc, "");
	cr_assert_eq(feed(&s, period(ROUND, 40000, 25e3, 50)), 9, "25 us: one in flight");
	start(&s, &weir_brpc, "min=1");
	cr_assert_float_eq(feed(&s, period(ROUND, 40000, 25e3, 50)), 1.3, 1e-9);
}

Test(brpc, ignores_empty_windows)
{
	struct subject s;

	start_known(&s, "");
	feed(&s, period(ROUND, 0, 0, 50));
	feed(&s, period(ROUND, 5000, 0, 50));
	cr_assert_float_eq(s.limit, 65, 1e-9);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
}

Test(brpc, a_round_does_not_end_while_the_clock_stands_still)
{
	struct subject s;
	int i;

	start(&s, &weir_brpc, "");
	for (i = 0; i < 100; i++)
		cr_assert_eq(feed(&s, period(0, 1000, 10 * MS, 40)), 40);
}
