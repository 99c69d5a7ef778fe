/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_gradient.c - the response of gradient to single windows.
 */
#include "limits.h"

Test(gradient, defaults)
{
	struct weir_gradient_config c;

	cr_assert_eq(weir_limit_complete(&weir_gradient, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 50);
	cr_assert_eq(c.min, 1);
	cr_assert_eq(c.max, 1000);
	cr_assert_eq(c.smoothing, 0.2);
	cr_assert(c.queue.kind == WEIR_SCALE_SQRT && c.queue.k == 4);
	cr_assert_eq(c.tolerance, 2);
	cr_assert_eq(c.probe, 1000);
	cr_assert_eq(c.backoff, 0.9);
}

Test(gradient, refuses_min_above_max)
{
	assert_refused(&weir_gradient, "min=1001", "min is above max");
	assert_accepted(&weir_gradient, "min=1000");
}

Test(gradient, grows_by_the_queue_within_the_tolerance)
{
	struct subject s;

	start(&s, &weir_gradient, "queue=const:5");
	cr_assert_eq(feed_busy(&s, 10 * MS), 55);
	cr_assert_eq(feed_busy(&s, 20 * MS), 60);
}

Test(gradient, shrinks_smoothly_beyond_the_tolerance)
{
	struct subject s;

	start(&s, &weir_gradient, "initial=100,queue=const:4,smoothing=0.5");
	feed(&s, sample(10 * MS, 0));
	/* 2 * 10/25 = 0.8; 0.8 * 100 + 4 = 84; half of the way there. */
	feed_busy(&s, 25 * MS);
	cr_assert_float_eq(s.limit, 92, 1e-9);
}

Test(gradient, latency_at_most_halves_it)
{
	struct subject s;

	start(&s, &weir_gradient, "initial=100,queue=const:0,smoothing=1");
	feed(&s, sample(10 * MS, 0));
	cr_assert_eq(feed_busy(&s, 1e4 * MS), 50);
}

Test(gradient, stays_when_less_than_half_used_but_learns_the_lowest_latency)
{
	struct subject s;

	start(&s, &weir_gradient, "");
	cr_assert_eq(feed(&s, sample(10 * MS, 24)), 50);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
	cr_assert_gt(feed(&s, sample(10 * MS, 25)), 50);
}

Test(gradient, a_drop_backs_off_even_if_little_is_used)
{
	struct subject s;

	start(&s, &weir_gradient, "initial=100,smoothing=1,backoff=0.5");
	cr_assert_eq(feed(&s, dropped(10 * MS, 0)), 50);
	cr_assert_eq(feed(&s, only_dropped(0)), 25);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
}

Test(gradient, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient, "initial=50,min=40,max=60,probe=never");
	for (i = 0; i < 10; i++)
		feed_busy(&s, 10 * MS);
	cr_assert_eq(s.limit, 60);
	for (i = 0; i < 50; i++)
		feed(&s, only_dropped(0));
	cr_assert_eq(s.limit, 40);
}

Test(gradient, a_probe_drops_to_the_queue_and_discards_the_lowest_latency)
{
	struct weir_window w = sample(30 * MS, 100);
	struct subject s;
	int i;

	/* A random number of 0.5 gives three windows; the next is the probe. */
	start_random(&s, &weir_gradient, "initial=100,probe=2,queue=const:4", 0.5);
	cr_assert_eq(number(&s, "countdown"), 3);
	for (i = 0; i < 3; i++)
		feed(&s, sample(10 * MS, 0));
	cr_assert_eq(number(&s, "probes"), 0);

	cr_assert_eq(feed(&s, w), 4);
	cr_assert_eq(number(&s, "probes"), 1);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
	cr_assert_eq(number(&s, "countdown"), 2);
	feed_busy(&s, 30 * MS);
	cr_assert_eq(number(&s, "rtt_noload"), 30 * MS);
}

Test(gradient, a_probe_does_not_go_below_min)
{
	struct subject s;

	start(&s, &weir_gradient, "initial=100,min=30,probe=1,queue=const:4");
	feed_busy(&s, 10 * MS);
	cr_assert_eq(feed_busy(&s, 10 * MS), 30);
}

Test(gradient, never_means_no_probe)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient, "probe=never");
	for (i = 0; i < 5000; i++)
		feed_busy(&s, 10 * MS);
	cr_assert_eq(number(&s, "probes"), 0);
	cr_assert_eq(s.limit, 1000);
}

Test(gradient, an_empty_window_changes_nothing)
{
	struct subject s;

	start(&s, &weir_gradient, "probe=1");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 50}), 50);
	cr_assert_eq(number(&s, "countdown"), 1);
}
