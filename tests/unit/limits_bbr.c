/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_bbr.c - the response of bbr to single windows.
 */
#include "limits.h"

#define NONE 8388607 /* no limit */

/* A window of `ms` milliseconds at CPU use `cpu`. */
static struct weir_window lasting(unsigned ms, uint32_t calls, double rtt, double cpu)
{
	struct weir_window w = sample(rtt, 0);

	w.start = WEIR_S;
	w.end = WEIR_S + ms * WEIR_MS;
	w.count = calls;
	w.cpu = cpu;
	return w;
}

#define BUSY 0.8
#define CALM 0.79

Test(bbr, defaults)
{
	struct weir_bbr_config c;

	cr_assert_eq(weir_limit_complete(&weir_bbr, NULL, 0, &c, NULL, 0), 0);
	cr_assert(c.max == NONE && c.threshold == 0.8 && c.window == 10 * WEIR_S);
	cr_assert(c.hold == WEIR_S && c.resolution == WEIR_MS);
	cr_assert_eq(weir_bbr.flags, WEIR_LIMIT_CPU);
	cr_assert_eq(weir_bbr.sampling->window_min, 100 * WEIR_MS);
	cr_assert_leq(weir_bbr.state_size, WEIR_LIMIT_STATE_MAX);
}

Test(bbr, refuses_bad_parameters)
{
	assert_refused(&weir_bbr, "threshold=1.1", "threshold");
	assert_refused(&weir_bbr, "window=999us", "window");
	assert_refused(&weir_bbr, "max=0", "max is 0");
	assert_accepted(&weir_bbr, "window=1ms,threshold=1");
}

Test(bbr, limits_only_while_the_processors_are_busy)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	cr_assert_eq(s.limit, NONE);
	cr_assert_eq(feed(&s, lasting(100, 100, 20 * MS, CALM)), NONE);
	cr_assert_eq(number(&s, "estimate"), 20);
	cr_assert_eq(feed(&s, lasting(100, 100, 20 * MS, BUSY)), 21,
		     "a call that finds 20 is admitted");
	cr_assert_eq(number(&s, "limiting"), 1);
	cr_assert_eq(feed(&s, lasting(100, 100, 20 * MS, CALM)), NONE);
	cr_assert_eq(feed(&s, lasting(100, 100, 20 * MS, 0)), NONE, "not known");
}

Test(bbr, goes_on_for_a_second_if_the_limit_was_reached)
{
	struct weir_window w = lasting(100, 100, 20 * MS, BUSY);
	struct subject s;

	start(&s, &weir_bbr, "");
	feed(&s, w);
	w.inflight_max = 21;
	cr_assert_eq(feed(&s, w), 21);
	w.cpu = CALM;
	for (int i = 0; i < 9; i++)
		cr_assert_eq(feed(&s, w), 21, "%d", i);
	cr_assert_eq(feed(&s, w), NONE);
	cr_assert_eq(feed(&s, w), NONE);
}

Test(bbr, stops_at_once_if_the_limit_was_not_reached)
{
	struct weir_window w = lasting(100, 100, 20 * MS, BUSY);
	struct subject s;

	start(&s, &weir_bbr, "");
	feed(&s, w);
	w.inflight_max = 20;
	cr_assert_eq(feed(&s, w), 21);
	w.cpu = CALM;
	cr_assert_eq(feed(&s, w), NONE);
}

Test(bbr, takes_most_calls_and_lowest_latency_from_different_buckets)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	feed(&s, lasting(100, 200, 50 * MS, BUSY));
	cr_assert_eq(feed(&s, lasting(100, 10, 20 * MS, BUSY)), 41);
	cr_assert_eq(number(&s, "pass_max"), 200);
	cr_assert_eq(number(&s, "rtt_min"), 20 * MS);
}

Test(bbr, forgets_after_its_window)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	feed(&s, lasting(100, 200, 20 * MS, BUSY));
	/* A hundred buckets, one of them open. */
	for (int i = 0; i < 98; i++)
		cr_assert_eq(feed(&s, lasting(100, 10, 100 * MS, BUSY)), 41, "%d", i);
	cr_assert_eq(feed(&s, lasting(100, 10, 100 * MS, BUSY)), 11);
}

Test(bbr, rounds_the_lowest_latency_up_to_milliseconds)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(100, 1000, 0.2 * MS, BUSY)), 11);
	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(100, 1000, 1 * MS, BUSY)), 11);
	start(&s, &weir_bbr, "resolution=1ns");
	cr_assert_eq(feed(&s, lasting(100, 1000, 0.2 * MS, BUSY)), 3);
}

Test(bbr, the_product_is_rounded)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(100, 49, 5 * MS, BUSY)), 3); /* 2.45 */
	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(100, 50, 5 * MS, BUSY)), 4); /* 2.5 */
}

Test(bbr, two_are_always_admitted)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(100, 1, 1 * MS, BUSY)), 2);
	cr_assert_eq(number(&s, "estimate"), 0);
	start(&s, &weir_bbr, "max=1");
	cr_assert_eq(feed(&s, lasting(100, 1, 1 * MS, BUSY)), 1, "except above the maximum");
}

Test(bbr, the_open_bucket_does_not_count)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	cr_assert_eq(feed(&s, lasting(50, 100, 20 * MS, BUSY)), NONE, "no bucket is complete yet");
	cr_assert_eq(feed(&s, lasting(50, 200, 50 * MS, BUSY)), 121); /* 300 of 40 ms */
}

Test(bbr, a_long_window_is_spread)
{
	struct subject s;

	start(&s, &weir_bbr, "");
	feed(&s, lasting(150, 150, 20 * MS, BUSY));
	cr_assert_eq(s.limit, 21, "100 in the first bucket");
	feed(&s, lasting(1050, 2100, 20 * MS, BUSY));
	cr_assert_eq(s.limit, 41, "200 in each");
	feed(&s, lasting(3600000, 36000, 100 * MS, BUSY));
	cr_assert_eq(s.limit, 2, "one in each, and nothing else is left");
	cr_assert_float_eq(number(&s, "pass_max"), 1, 1e-9);
}

Test(bbr, survives_odd_windows)
{
	struct weir_window back = lasting(100, 10, 20 * MS, BUSY), empty = {.cpu = BUSY};
	struct subject s;

	back.end = back.start - 1;
	start(&s, &weir_bbr, "");
	for (int i = 0; i < 300; i++) {
		cr_assert_eq(feed(&s, back), NONE);
		cr_assert_eq(feed(&s, empty), NONE);
	}
	empty.dropped = 7;
	empty.end = UINT64_MAX / 2;
	cr_assert_eq(feed(&s, empty), NONE, "all buckets are too old");
}
