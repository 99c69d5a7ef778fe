/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_gradient2.c - the response of gradient2 to single windows.
 */
#include "limits.h"

/* Start with enough unused windows of 10 ms for the long-term latency to be 10 ms. */
static void start_known(struct subject *s, const char *text)
{
	int i;

	start(s, &weir_gradient2, text);
	for (i = 0; i < 10; i++)
		feed(s, sample(10 * MS, 0));
}

Test(gradient2, defaults)
{
	struct weir_gradient2_config c;

	cr_assert_eq(weir_limit_complete(&weir_gradient2, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 20);
	cr_assert_eq(c.min, 20);
	cr_assert_eq(c.max, 200);
	cr_assert_eq(c.smoothing, 0.2);
	cr_assert(c.queue.kind == WEIR_SCALE_CONST && c.queue.k == 4);
	cr_assert_eq(c.long_window, 600);
	cr_assert_eq(c.tolerance, 1.5);
}

Test(gradient2, refuses_min_above_max)
{
	assert_refused(&weir_gradient2, "min=201", "min is above max");
	assert_accepted(&weir_gradient2, "min=200");
}

Test(gradient2, grows_by_the_queue_within_the_tolerance)
{
	struct subject s;

	start_known(&s, "initial=50,smoothing=1");
	cr_assert_eq(feed_busy(&s, 10 * MS), 54);
	cr_assert_eq(feed_busy(&s, 15 * MS), 58);
}

Test(gradient2, shrinks_beyond_the_tolerance)
{
	struct subject s;

	/* So long a window that the average hardly moves: 1.5 * 10/30 is a half. */
	start_known(&s, "initial=100,smoothing=1,long_window=1000000000");
	feed_busy(&s, 20 * MS);
	cr_assert_float_eq(s.limit, 79, 1e-3);
	feed_busy(&s, 300 * MS);
	cr_assert_float_eq(s.limit, 43.5, 1e-3);
}

Test(gradient2, smoothing_weights_the_new_value)
{
	struct subject s;

	start_known(&s, "initial=50,smoothing=0.5");
	cr_assert_eq(feed_busy(&s, 10 * MS), 52);
}

Test(gradient2, stays_when_less_than_half_used_but_learns)
{
	struct subject s;

	start(&s, &weir_gradient2, "initial=50");
	cr_assert_eq(feed(&s, sample(10 * MS, 24)), 50);
	cr_assert_eq(number(&s, "rtt_long"), 10 * MS);
	cr_assert_gt(feed(&s, sample(10 * MS, 25)), 50);
}

Test(gradient2, ignores_drops)
{
	struct subject a, b;
	int i;

	start(&a, &weir_gradient2, "initial=50");
	start(&b, &weir_gradient2, "initial=50");
	for (i = 0; i < 50; i++)
		cr_assert_eq(feed(&a, sample(i * MS, 100)), feed(&b, dropped(i * MS, 100)));
	cr_assert_eq(feed(&a, only_dropped(100)), b.limit);
}

Test(gradient2, the_long_term_latency_starts_as_a_mean)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient2, "");
	for (i = 1; i <= 10; i++)
		feed(&s, sample(i * MS, 0));
	cr_assert_eq(number(&s, "rtt_long"), 5.5 * MS);
}

Test(gradient2, the_long_term_latency_continues_as_an_average)
{
	struct subject s;

	start_known(&s, "long_window=9");
	feed(&s, sample(20 * MS, 0));
	cr_assert_float_eq(number(&s, "rtt_long"), 12 * MS, 1);
}

Test(gradient2, a_long_term_latency_far_too_high_is_reduced)
{
	struct subject s;

	start_known(&s, "long_window=1000000000");
	feed(&s, sample(4 * MS, 0));
	cr_assert_float_eq(number(&s, "rtt_long"), 9.5 * MS, 1);
	feed(&s, sample(5 * MS, 0));
	cr_assert_float_eq(number(&s, "rtt_long"), 9.5 * MS, 1,
			   "reduced at less than twice the latency");

	/* A mean of just twice the latency is not above that. */
	start(&s, &weir_gradient2, "");
	feed(&s, sample(15 * MS, 0));
	feed(&s, sample(5 * MS, 0));
	cr_assert_eq(number(&s, "rtt_long"), 10 * MS);
}

Test(gradient2, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start_known(&s, "initial=50,min=40,max=60,long_window=1000000000");
	for (i = 0; i < 100; i++)
		feed_busy(&s, 10 * MS);
	cr_assert_eq(s.limit, 60);
	for (i = 0; i < 100; i++)
		feed_busy(&s, 100 * MS);
	cr_assert_eq(s.limit, 40);
}

Test(gradient2, an_empty_window_changes_nothing)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 20}), 20);
	cr_assert_eq(number(&s, "rtt_long"), 10 * MS);
}
