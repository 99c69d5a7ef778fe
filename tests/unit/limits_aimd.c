/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_aimd.c - the response of aimd to single windows.
 */
#include "limits.h"

Test(aimd, defaults)
{
	struct weir_aimd_config c;

	cr_assert_eq(weir_limit_complete(&weir_aimd, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 20);
	cr_assert_eq(c.min, 20);
	cr_assert_eq(c.max, 200);
	cr_assert_eq(c.backoff, 0.9);
	cr_assert_eq(c.timeout, 5 * WEIR_S);
}

Test(aimd, refuses_min_above_max)
{
	assert_refused(&weir_aimd, "min=201", "min is above max");
	assert_refused(&weir_aimd, "max=19", "min is above max");
	assert_accepted(&weir_aimd, "min=200");
	assert_accepted(&weir_aimd, "max=20");
}

Test(aimd, grows_by_one_when_half_used)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=30,min=1");
	cr_assert_eq(feed(&s, sample(MS, 15)), 31);
	cr_assert_eq(feed(&s, sample(MS, 16)), 32);
}

Test(aimd, stays_when_less_than_half_used)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=30,min=1");
	cr_assert_eq(feed(&s, sample(MS, 14)), 30);
	cr_assert_eq(feed(&s, sample(MS, 0)), 30);
}

Test(aimd, a_drop_multiplies_and_truncates)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=35,min=1,backoff=0.9");
	cr_assert_eq(feed(&s, dropped(MS, 35)), 31);
	cr_assert_eq(feed(&s, dropped(MS, 31)), 27);
}

Test(aimd, a_drop_counts_even_if_little_is_used)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=100,min=1,backoff=0.5");
	cr_assert_eq(feed(&s, dropped(MS, 0)), 50);
	cr_assert_eq(feed(&s, only_dropped(0)), 25);
}

Test(aimd, many_drops_in_a_window_are_one_decrease)
{
	struct weir_window w = sample(MS, 100);
	struct subject s;

	w.count = 50;
	w.dropped = 40;
	start(&s, &weir_aimd, "initial=100,min=1,backoff=0.5");
	cr_assert_eq(feed(&s, w), 50);
}

Test(aimd, a_latency_above_the_timeout_is_overload)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=100,min=1,timeout=10ms,backoff=0.5");
	cr_assert_eq(feed(&s, sample(10 * MS, 100)), 101);
	cr_assert_eq(feed(&s, sample(10 * MS + 1, 101)), 50);
}

Test(aimd, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start(&s, &weir_aimd, "initial=9,min=5,max=10");
	for (i = 0; i < 3; i++)
		feed_busy(&s, MS);
	cr_assert_eq(s.limit, 10);
	for (i = 0; i < 30; i++)
		feed(&s, dropped(MS, 10));
	cr_assert_eq(s.limit, 5);
}

Test(aimd, an_initial_limit_outside_the_bounds_lasts_until_the_first_window)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=500,max=200");
	cr_assert_eq(s.limit, 500);
	cr_assert_eq(feed(&s, sample(MS, 0)), 200);
}

Test(aimd, an_empty_window_changes_nothing)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=30");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 30}), 30);
}
