/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_vegas.c - the response of vegas to single windows. With the defaults and a
 * limit below 100, alpha is 3, beta is 6, threshold is 1, and a step is 1.
 */
#include "limits.h"

/* Start with a limit of 20 and a lowest latency of 10 ms, and no probe soon. */
static void start_known(struct subject *s, const char *text)
{
	start(s, &weir_vegas, text);
	feed_busy(s, 10 * MS);
}

/* The latency at which the estimated queue is `queue` calls. */
static double rtt_of_queue(const struct subject *s, double queue)
{
	/* The estimate is rounded up, so aim at half a call less. */
	return 10 * MS / (1 - (queue - 0.5) / s->limit);
}

Test(vegas, defaults)
{
	struct weir_vegas_config c;

	cr_assert_eq(weir_limit_complete(&weir_vegas, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 20);
	cr_assert_eq(c.max, 1000);
	cr_assert_eq(c.smoothing, 1);
	cr_assert(c.alpha.kind == WEIR_SCALE_LOG10 && c.alpha.k == 3);
	cr_assert(c.beta.kind == WEIR_SCALE_LOG10 && c.beta.k == 6);
	cr_assert(c.threshold.kind == WEIR_SCALE_LOG10 && c.threshold.k == 1);
	cr_assert(c.increase.kind == WEIR_STEP_ADD_LOG10 && c.increase.by == 1);
	cr_assert(c.decrease.kind == WEIR_STEP_ADD_LOG10 && c.decrease.by == -1);
	cr_assert_eq(c.probe, 30);
}

Test(vegas, refuses_contradicting_parameters)
{
	assert_refused(&weir_vegas, "alpha=const:7,beta=const:6", "alpha is above beta");
	assert_refused(&weir_vegas, "alpha=log10:7", "alpha is above beta");
	assert_refused(&weir_vegas, "decrease=add:1", "decrease does not decrease");
	assert_refused(&weir_vegas, "decrease=mul:1.1", "decrease does not decrease");
	assert_refused(&weir_vegas, "increase=sub:1", "increase does not increase");
	assert_refused(&weir_vegas, "increase=mul:0.9", "increase does not increase");
	assert_accepted(&weir_vegas, "alpha=const:6,beta=const:6");
	assert_accepted(&weir_vegas, "increase=mul:1.02,decrease=mul:0.97");
}

Test(vegas, the_first_window_only_sets_the_lowest_latency)
{
	struct subject s;

	start(&s, &weir_vegas, "");
	cr_assert_eq(feed(&s, dropped(10 * MS, 20)), 20);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
}

Test(vegas, a_lower_latency_only_sets_the_lowest)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed_busy(&s, 8 * MS), 20);
	cr_assert_eq(number(&s, "rtt_noload"), 8 * MS);
}

Test(vegas, grows_by_beta_without_a_queue)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed_busy(&s, 10 * MS), 26);
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 1)), 32);
}

Test(vegas, grows_by_a_step_with_a_queue_below_alpha)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 2)), 21);
}

Test(vegas, stays_with_a_queue_between_alpha_and_beta)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 3)), 20);
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 6)), 20);
}

Test(vegas, shrinks_by_a_step_with_a_queue_above_beta)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 7)), 19);
}

Test(vegas, a_large_limit_takes_larger_steps)
{
	struct subject s;

	start_known(&s, "initial=200");
	cr_assert_eq(feed_busy(&s, 10 * MS), 212);
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 5)), 214);
	cr_assert_eq(feed_busy(&s, rtt_of_queue(&s, 13)), 212);
}

Test(vegas, stays_when_less_than_half_used)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed(&s, sample(10 * MS, 9)), 20);
	cr_assert_eq(feed(&s, sample(100 * MS, 9)), 20);
	cr_assert_eq(feed(&s, sample(10 * MS, 10)), 26);
}

Test(vegas, a_drop_shrinks_it_even_if_little_is_used)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed(&s, dropped(10 * MS, 0)), 19);
	cr_assert_eq(feed(&s, only_dropped(0)), 18);
}

Test(vegas, a_drop_without_a_latency_is_no_probe_and_sets_no_minimum)
{
	struct subject s;

	start(&s, &weir_vegas, "probe=1");
	cr_assert_eq(feed(&s, only_dropped(20)), 19);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
	cr_assert_eq(number(&s, "probes"), 0);
}

Test(vegas, stays_within_one_and_max)
{
	struct subject s;
	int i;

	start_known(&s, "initial=95,max=100");
	cr_assert_eq(feed_busy(&s, 10 * MS), 100);
	for (i = 0; i < 200; i++)
		feed(&s, only_dropped(0));
	cr_assert_eq(s.limit, 1);
}

Test(vegas, smoothing_weights_the_new_value)
{
	struct subject s;

	start_known(&s, "smoothing=0.5");
	cr_assert_eq(feed_busy(&s, 10 * MS), 23);
}

Test(vegas, a_probe_learns_a_higher_latency)
{
	struct weir_window w;
	struct subject s;
	int i;

	/* A random number of 0: the probe is after half of probe * limit windows, the tenth. */
	start(&s, &weir_vegas, "probe=1,initial=20");
	for (i = 0; i < 9; i++)
		feed(&s, sample(10 * MS, 0));
	cr_assert_eq(number(&s, "probes"), 0);

	w = dropped(15 * MS, 20);
	w.random = 0.5;
	cr_assert_eq(feed(&s, w), 20, "a probe reacted to a drop");
	cr_assert_eq(number(&s, "probes"), 1);
	cr_assert_eq(number(&s, "rtt_noload"), 15 * MS);
	cr_assert_eq(number(&s, "jitter"), 0.75);
}

Test(vegas, an_empty_window_changes_nothing)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 20}), 20);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
}
