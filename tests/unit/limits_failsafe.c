/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_failsafe.c - the response of failsafe to single windows.
 */
#include "limits.h"

#include <math.h>

/* Start with enough equal windows to fill both averages; they grow the limit by ten. */
static void start_known(struct subject *s, const char *text)
{
	int i;

	start(s, &weir_failsafe, text);
	for (i = 0; i < 10; i++)
		feed(s, sample(10 * MS, 1000));
}

/* Recent latency is that of the median, and long-term latency does not move. */
#define STILL "recent=1,baseline=1000000000"

Test(failsafe, defaults)
{
	struct weir_failsafe_config c;

	cr_assert_eq(weir_limit_complete(&weir_failsafe, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 20);
	cr_assert_eq(c.min, 1);
	cr_assert_eq(c.max, 200);
	cr_assert_eq(c.factor, 5);
	cr_assert(c.alpha.kind == WEIR_SCALE_LOG10 && c.alpha.k == 3);
	cr_assert(c.beta.kind == WEIR_SCALE_LOG10 && c.beta.k == 6);
	cr_assert_eq(c.recent, 5);
	cr_assert_eq(c.baseline, 10);
	cr_assert_eq(c.history, 50);
}

Test(failsafe, windows)
{
	const struct weir_sampling *s = weir_failsafe.sampling;

	cr_assert(s->window_min == WEIR_S && s->window_max == 30 * WEIR_S);
	cr_assert_eq(s->window_samples, 50);
	cr_assert(s->rtt == WEIR_RTT_QUANTILE && s->quantile == 0.9);
}

Test(failsafe, refuses_bad_parameters)
{
	assert_refused(&weir_failsafe, "min=201", "min is above max");
	assert_refused(&weir_failsafe, "alpha=log10:7", "alpha is above beta");
	assert_refused(&weir_failsafe, "history=51", "history is 51");
	assert_accepted(&weir_failsafe, "min=200,alpha=log10:6");
}

Test(failsafe, grows_by_a_step_without_a_queue)
{
	struct subject s;

	start(&s, &weir_failsafe, "");
	cr_assert_eq(feed_busy(&s, 10 * MS), 21);
	cr_assert_eq(feed_busy(&s, 10 * MS), 22);
	start(&s, &weir_failsafe, "initial=100");
	cr_assert_eq(feed_busy(&s, 10 * MS), 102);
}

Test(failsafe, moves_by_its_queue_estimate)
{
	struct subject s;
	int i;

	/* 30 * (1 - 10 / rtt) is a queue of 2.7, 3, 5.6 and 6.4. */
	const struct {
		double rtt, limit;
	} cases[] = {{10.7, 31}, {11.2, 29.99}, {12.3, 29.99}, {12.6, 29}};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		start_known(&s, "alpha=const:4," STILL);
		cr_assert_eq(s.limit, 30);
		/* The median lags by two windows; these see no queue. */
		for (i = 0; i < 2; i++)
			feed(&s, sample(cases[k].rtt * MS, 6));
		s.limit = 30;
		memcpy(s.state, &s.limit, sizeof(double));
		feed(&s, sample(cases[k].rtt * MS, 29));
		cr_assert_float_eq(s.limit, round(cases[k].limit), 1e-9, "%g: %g, queue %g",
				   cases[k].rtt, s.limit, number(&s, "queue"));
	}
}

Test(failsafe, latency_goes_through_a_median_and_two_averages)
{
	struct subject s;

	start_known(&s, "");
	feed(&s, sample(90 * MS, 20));
	feed(&s, sample(10 * MS, 20));
	feed(&s, sample(90 * MS, 20));
	cr_assert_float_eq(number(&s, "rtt_recent"), 10 * MS, 1,
			   "two of five do not move the median");
	feed(&s, sample(90 * MS, 20));
	/* A third of 80 more, and two elevenths of that. */
	cr_assert_float_eq(number(&s, "rtt_recent"), (10 + 80 / 3.0) * MS, 1);
	cr_assert_float_eq(number(&s, "rtt_baseline"), (10 + 80 / 3.0 * 2 / 11) * MS, 1);

	start(&s, &weir_failsafe, "");
	feed(&s, sample(10 * MS, 20));
	feed(&s, sample(20 * MS, 20));
	cr_assert_eq(number(&s, "rtt_recent"), 15 * MS, "10 and 20, as the higher of two is taken");
	cr_assert_eq(number(&s, "rtt_baseline"), 12.5 * MS);
}

/* It adapts to a queue: this is how it drifts under lasting overload. */
Test(failsafe, adapts_to_lasting_latency)
{
	struct subject s;
	double lowest = 1000;
	int i;

	start_known(&s, "initial=40");
	for (i = 0; i < 60; i++)
		lowest = fmin(lowest, feed(&s, sample(40 * MS, 30)));
	cr_assert_lt(lowest, 45);
	cr_assert_gt(s.limit, lowest + 30);
}

/* With these parameters no queue shrinks the limit, and every queue lets it grow. */
#define GROWS "initial=1000,max=2000,alpha=const:100000,beta=const:100000,recent=1"

/* Feed windows with more in flight each time, and latency as a power of that number. */
static void climb(struct subject *s, double power, uint32_t windows)
{
	start(s, &weir_failsafe, GROWS);
	for (uint32_t i = 1; i <= windows; i++)
		feed(s, sample(pow(300 + 20 * i, power) * MS, 300 + 20 * i));
}

static double change(struct subject *s, uint32_t inflight)
{
	const double before = s->limit;
	const double rtt = number(s, "rtt_recent");

	return feed(s, sample(rtt, inflight)) - before;
}

Test(failsafe, shrinks_where_more_in_flight_gets_less_done)
{
	struct subject s;

	climb(&s, 1.5, 60);
	cr_assert_lt(number(&s, "with_throughput"), -0.9);
	cr_assert_eq(change(&s, (uint32_t)s.limit), -3);
	cr_assert_eq(change(&s, (uint32_t)s.limit - 1), 3, "but only if it was reached");
}

Test(failsafe, shrinks_where_less_gets_done_though_latency_hardly_follows)
{
	struct subject s;
	double before = 0;

	start(&s, &weir_failsafe, GROWS);
	for (int i = 1; i <= 60; i++) {
		before = s.limit;
		feed(&s, sample((1 + 0.3 * sin(i * 0.3 + 1.87)) * MS,
				(uint32_t)(2000 + 80 * sin(i * 0.3))));
	}
	cr_assert_lt(number(&s, "with_throughput"), -0.1);
	cr_assert_lt(number(&s, "with_latency"), 0.45);
	cr_assert_lt(s.limit, before);
}

Test(failsafe, shrinks_where_throughput_does_not_follow_and_latency_does)
{
	struct subject s;
	double throughput;

	/* More in flight each time; throughput varies by itself, with a slight upward trend. */
	start(&s, &weir_failsafe, GROWS);
	for (int i = 1; i <= 60; i++) {
		throughput = (1 + 0.5 * sin(i * 0.3)) * (1 + i / 200.0);
		feed(&s, sample(20 * i / throughput * MS, 20 * (uint32_t)i));
	}
	cr_assert(number(&s, "with_throughput") > 0 && number(&s, "with_throughput") < 0.3, "%g",
		  number(&s, "with_throughput"));
	cr_assert_gt(number(&s, "with_latency"), 0.5);
	cr_assert_gt(number(&s, "throughput_varies"), 0.2);
	cr_assert_eq(change(&s, (uint32_t)s.limit), -3);
	cr_assert_eq(change(&s, (uint32_t)s.limit - 1), 3);
}

Test(failsafe, shrinks_where_throughput_hardly_varies_and_latency_follows)
{
	struct subject s;

	climb(&s, 0.8, 60);
	cr_assert_gt(number(&s, "with_throughput"), 0.9);
	cr_assert_gt(number(&s, "with_latency"), 0.9);
	cr_assert_lt(number(&s, "throughput_varies"), 0.2);
	cr_assert_eq(change(&s, (uint32_t)s.limit), -3);
	cr_assert_eq(change(&s, (uint32_t)s.limit - 1), 3);
}

Test(failsafe, grows_where_more_in_flight_gets_more_done)
{
	struct subject s;

	climb(&s, 0.2, 60);
	cr_assert_gt(number(&s, "with_throughput"), 0.9);
	cr_assert_gt(number(&s, "throughput_varies"), 0.2);
	cr_assert_eq(change(&s, (uint32_t)s.limit), 3);

	/* The same while latency does not vary at all. */
	climb(&s, 0, 60);
	cr_assert_eq(number(&s, "with_latency"), 0);
	cr_assert_gt(number(&s, "with_throughput"), 0.9);
	cr_assert_eq(change(&s, (uint32_t)s.limit), 3);
}

Test(failsafe, needs_ten_windows_for_a_correlation)
{
	struct subject s;

	climb(&s, 1.5, 9);
	cr_assert_eq(number(&s, "with_throughput"), 0);
	cr_assert_eq(number(&s, "with_latency"), 0);
	climb(&s, 1.5, 10);
	cr_assert_neq(number(&s, "with_throughput"), 0);
	cr_assert_gt(number(&s, "with_latency"), 0.9);
}

Test(failsafe, is_led_back_to_what_is_in_flight)
{
	struct subject s;

	start(&s, &weir_failsafe, "initial=100");
	cr_assert_eq(feed(&s, sample(10 * MS, 4)), 98);
	cr_assert_eq(feed(&s, sample(10 * MS, 4)), 97);
	start(&s, &weir_failsafe, "initial=19");
	cr_assert_eq(feed(&s, sample(10 * MS, 4)), 20);
	cr_assert_eq(feed(&s, sample(10 * MS, 4)), 20);
	start(&s, &weir_failsafe, "initial=20,factor=2");
	cr_assert_eq(feed(&s, sample(10 * MS, 4)), 19);
}

Test(failsafe, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start(&s, &weir_failsafe, "initial=5,min=3,max=7");
	for (i = 0; i < 20; i++)
		feed(&s, sample(10 * MS, 100));
	cr_assert_eq(s.limit, 7);
	for (i = 0; i < 20; i++)
		feed(&s, sample(10 * MS, 0));
	cr_assert_eq(s.limit, 3);
}

Test(failsafe, ignores_drops)
{
	struct subject a, b;
	int i;

	start(&a, &weir_failsafe, "");
	start(&b, &weir_failsafe, "");
	for (i = 1; i < 90; i++)
		cr_assert_eq(feed(&a, sample(i * MS, 100)), feed(&b, dropped(i * MS, 100)));
	cr_assert_eq(feed(&a, only_dropped(100)), b.limit);
}

Test(failsafe, an_empty_window_changes_nothing)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 20}), 30);
	cr_assert_eq(feed(&s, sample(0, 20)), 30);
	cr_assert_eq(number(&s, "rtt_recent"), 10 * MS);
}
