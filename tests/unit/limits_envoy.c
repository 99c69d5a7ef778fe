/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_envoy.c - the response of envoy to single windows.
 */
#include "limits.h"

#include <math.h>

#define TENTH (100 * WEIR_MS)

/* Start after a probe that measured 10 ms. */
static void start_known(struct subject *s, const char *text)
{
	start(s, &weir_envoy, text);
	feed(s, period(TENTH, 50, 10 * MS, 3));
	cr_assert_eq(number(s, "rtt_noload"), 10 * MS);
}

Test(envoy, defaults)
{
	struct weir_envoy_config c;

	cr_assert_eq(weir_limit_complete(&weir_envoy, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 3);
	cr_assert_eq(c.min, 3);
	cr_assert_eq(c.max, 1000);
	cr_assert_eq(c.buffer, 0.25);
	cr_assert_eq(c.probe_samples, 50);
	cr_assert_eq(c.probe_interval, 60 * WEIR_S);
	cr_assert_eq(c.probe_jitter, 0.15);
	cr_assert_eq(c.probe_timeout, 1000000000 * WEIR_S);
	cr_assert_eq(c.rtt_noload, 0);
}

Test(envoy, windows)
{
	const struct weir_sampling *s = weir_envoy.sampling;

	cr_assert(s->window_min == TENTH && s->window_max == TENTH && s->window_samples == 1);
	cr_assert(s->rtt == WEIR_RTT_QUANTILE && s->quantile == 0.5);
}

Test(envoy, refuses_min_above_max)
{
	assert_refused(&weir_envoy, "min=1001", "min is above max");
	assert_accepted(&weir_envoy, "min=1000");
}

Test(envoy, begins_with_a_probe_at_min)
{
	struct subject s;
	int i;

	start(&s, &weir_envoy, "initial=40,min=5");
	cr_assert_eq(s.limit, 5);
	for (i = 0; i < 4; i++)
		cr_assert_eq(feed(&s, period(TENTH, 10, 10 * MS, 5)), 5);
	cr_assert_eq(number(&s, "probing"), 1);
	cr_assert_eq(feed(&s, period(TENTH, 10, 10 * MS, 5)), 40);
	cr_assert_eq(number(&s, "probing"), 0);
	cr_assert_eq(number(&s, "probes"), 1);
}

/* 17 windows of 100 ms from 3 to 1000, used or not. */
Test(envoy, grows_by_the_buffer_and_the_root)
{
	const double expected[] = {5,   8,   13,  20,  30,  43,  61,  84,  115,
				   155, 207, 274, 361, 472, 614, 795, 1000};
	struct subject s;
	size_t i;

	start_known(&s, "");
	cr_assert_eq(s.limit, 3);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		cr_assert_eq(feed(&s, period(TENTH, 1, 10 * MS, 1)), expected[i], "%zu", i);
}

Test(envoy, the_gradient_has_bounds)
{
	struct subject s;

	start_known(&s, "initial=100");
	cr_assert_eq(feed_busy(&s, 1 * MS), 214); /* 200 + 14.1 */
	cr_assert_eq(number(&s, "gradient"), 2);
	cr_assert_eq(feed_busy(&s, 1000 * MS), 117); /* 107 + 10.3 */
	cr_assert_eq(number(&s, "gradient"), 0.5);
}

/* 0.9 * 90 = 81, and 9 is the root of that. */
Test(envoy, rests_where_the_root_adds_what_the_gradient_takes)
{
	struct subject s;
	int i;

	start_known(&s, "initial=200");
	for (i = 0; i < 100; i++)
		feed_busy(&s, 12.5 * MS / 0.9);
	cr_assert_eq(s.limit, 90);

	/* With almost no buffer, it rests where r0 / r is about 1 - 1/root(L). */
	start_known(&s, "initial=500,buffer=0.000000001");
	for (i = 0; i < 100; i++)
		feed_busy(&s, 10 * MS / 0.95);
	cr_assert_float_eq(1 - 1 / sqrt(s.limit), 0.95, 0.002, "%g", s.limit);
}

Test(envoy, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start_known(&s, "initial=50,min=40,max=60");
	for (i = 0; i < 10; i++)
		feed_busy(&s, 10 * MS);
	cr_assert_eq(s.limit, 60);
	for (i = 0; i < 10; i++)
		feed_busy(&s, 100 * MS);
	cr_assert_eq(s.limit, 40);
}

Test(envoy, a_probe_comes_after_its_interval)
{
	struct subject s;
	struct weir_window w = period(TENTH, 50, 10 * MS, 3);
	int i;

	start(&s, &weir_envoy, "initial=20,probe_interval=1s,probe_jitter=0.2");
	w.random = 0.5;
	feed(&s, w);
	cr_assert_float_eq(number(&s, "countdown"), 1.1e9, 1);
	for (i = 0; i < 10; i++)
		cr_assert_gt(feed(&s, period(TENTH, 10, 20 * MS, 20)), 3);
	cr_assert_eq(feed(&s, period(TENTH, 10, 20 * MS, 20)), 3);
	cr_assert_eq(number(&s, "probing"), 1);
}

Test(envoy, a_probe_restores_the_limit)
{
	struct subject s;
	double before;

	start_known(&s, "initial=100,probe_interval=100ms");
	feed(&s, period(50 * WEIR_MS, 10, 10 * MS, 100));
	before = s.limit; /* the next window is the last before the probe */
	cr_assert_eq(before, 136);
	cr_assert_eq(feed(&s, period(50 * WEIR_MS, 10, 12.5 * MS, 100)), 3);
	cr_assert_eq(feed(&s, period(TENTH, 50, 8 * MS, 3)), 147);
	cr_assert_eq(number(&s, "rtt_noload"), 8 * MS);
	cr_assert_eq(number(&s, "probes"), 2);
}

Test(envoy, five_windows_at_min_start_a_probe)
{
	struct subject s;
	int i;

	start_known(&s, "");
	for (i = 0; i < 4; i++)
		feed_busy(&s, 100 * MS);
	cr_assert_eq(feed_busy(&s, 10 * MS), 5, "not in a row");
	cr_assert_eq(feed_busy(&s, 100 * MS), 4);
	for (i = 0; i < 5; i++) {
		cr_assert_eq(number(&s, "probing"), 0);
		cr_assert_eq(feed_busy(&s, 100 * MS), 3);
	}
	cr_assert_eq(number(&s, "probing"), 1);

	/* So it recovers where the latency without load has risen. */
	feed(&s, period(TENTH, 50, 100 * MS, 3));
	cr_assert_eq(feed_busy(&s, 100 * MS), 5);
}

Test(envoy, calls_from_before_the_probe_do_not_count)
{
	struct subject s;

	start(&s, &weir_envoy, "");
	feed(&s, period(TENTH, 50, 150 * MS, 20));
	feed(&s, period(TENTH, 50, 150 * MS, 20));
	cr_assert_eq(number(&s, "probing"), 1);
	/* Calls of 150 ms began in a probe that was 200 ms old when the window opened. */
	feed(&s, period(TENTH, 50, 150 * MS, 20));
	cr_assert_eq(number(&s, "probing"), 0);
	cr_assert_eq(number(&s, "rtt_noload"), 150 * MS);
}

/* weir_config.limit_min may be above min: then a probe allows as much as that. */
Test(envoy, a_probe_accepts_a_limit_above_its_own)
{
	struct subject s;
	struct weir_window w = period(TENTH, 50, 150 * MS, 20);

	start(&s, &weir_envoy, "");
	w.limit = 20;
	s.ops->update(s.state, &w);
	cr_assert_eq(number(&s, "probing"), 0);
}

Test(envoy, the_median_of_single_samples_is_exact)
{
	const double rtt[] = {50, 10, 90, 20, 30};
	struct subject s;
	size_t i;

	start(&s, &weir_envoy, "probe_samples=5");
	for (i = 0; i < 5; i++)
		feed(&s, sample(rtt[i] * MS, 3));
	cr_assert_eq(number(&s, "rtt_noload"), 30 * MS);

	start(&s, &weir_envoy, "probe_samples=4");
	for (i = 0; i < 4; i++)
		feed(&s, sample(rtt[i] * MS, 3));
	cr_assert_eq(number(&s, "rtt_noload"), 35 * MS);
}

Test(envoy, the_median_of_windows_is_weighted)
{
	struct subject s;

	start(&s, &weir_envoy, "probe_samples=40");
	feed(&s, period(TENTH, 10, 20 * MS, 3));
	feed(&s, period(TENTH, 30, 10 * MS, 3));
	cr_assert_float_eq(number(&s, "rtt_noload"), 12.5 * MS, 1);
}

Test(envoy, a_probe_keeps_its_last_windows)
{
	struct subject s;
	int i;

	start(&s, &weir_envoy, "");
	for (i = 1; i <= 50; i++)
		feed(&s, sample(i * MS, 3));
	cr_assert_eq(number(&s, "rtt_noload"), 25.5 * MS, "all windows of a probe by default");

	start(&s, &weir_envoy, "probe_samples=100");
	for (i = 0; i < 100; i++)
		feed(&s, sample(i < 50 ? 100 * MS : 10 * MS, 3));
	cr_assert_eq(number(&s, "probing"), 0);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
}

/* As in the original, only its samples end a probe. */
Test(envoy, only_its_samples_end_a_probe)
{
	struct subject s;
	int i;

	start(&s, &weir_envoy, "initial=100");
	for (i = 0; i < 49; i++)
		cr_assert_eq(feed(&s, period(60 * WEIR_S, 1, 10 * MS, 3)), 3);
	cr_assert_eq(feed(&s, period(60 * WEIR_S, 1, 10 * MS, 3)), 100);
}

Test(envoy, a_probe_can_have_a_timeout)
{
	struct subject s;

	start(&s, &weir_envoy, "initial=100,probe_timeout=200ms,probe_interval=100ms");
	feed(&s, period(TENTH, 0, 0, 3));
	feed(&s, period(TENTH, 0, 0, 3));
	cr_assert_eq(number(&s, "probing"), 1, "no latency is known");
	cr_assert_eq(feed(&s, period(TENTH, 1, 10 * MS, 3)), 100);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);

	cr_assert_eq(feed(&s, period(TENTH, 1, 10 * MS, 3)), 3);
	feed(&s, period(TENTH, 0, 0, 3));
	cr_assert_eq(feed(&s, period(TENTH, 0, 0, 3)), 136);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS, "the known latency is kept");
}

Test(envoy, a_configured_latency_needs_no_probe)
{
	struct subject s;
	int i;

	start(&s, &weir_envoy, "initial=100,rtt_noload=10ms,probe_interval=1ms");
	cr_assert_eq(s.limit, 100);
	cr_assert_eq(feed(&s, period(TENTH, 1, 20 * MS, 1)), 70); /* 62.5 + 7.9 */
	for (i = 0; i < 100; i++)
		feed(&s, period(TENTH, 1, 1000 * MS, 1));
	cr_assert_eq(s.limit, 3);
	cr_assert_eq(number(&s, "probes"), 0);
	cr_assert_eq(number(&s, "probing"), 0);
}

Test(envoy, ignores_drops)
{
	struct subject a, b;
	int i;

	start_known(&a, "initial=50");
	start_known(&b, "initial=50");
	for (i = 1; i < 50; i++)
		cr_assert_eq(feed(&a, sample(i * MS, 100)), feed(&b, dropped(i * MS, 100)));
	cr_assert_eq(feed(&a, only_dropped(100)), b.limit);
}

Test(envoy, an_empty_window_only_takes_time)
{
	struct subject s;

	start_known(&s, "initial=50,probe_interval=1s");
	cr_assert_eq(feed(&s, period(TENTH, 0, 0, 50)), 50);
	cr_assert_eq(feed(&s, period(TENTH, 1, 0, 50)), 50, "no clock measures zero");
	cr_assert_float_eq(number(&s, "countdown"), 0.8e9, 1);
	cr_assert_eq(feed(&s, (struct weir_window){.start = WEIR_S, .count = 0}), 50);
	cr_assert_float_eq(number(&s, "countdown"), 0.8e9, 1,
			   "a clock that goes back takes no time");
}
