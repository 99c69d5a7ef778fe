/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_cautious.c - the response of cautious to single samples, and to windows of several.
 */
#include "limits.h"

#include <math.h>

Test(cautious, defaults)
{
	struct weir_cautious_config c;

	cr_assert_eq(weir_limit_complete(&weir_cautious, NULL, 0, &c, NULL, 0), 0);
	cr_assert(c.initial == 20 && c.min == 1 && c.max == 1000000);
	cr_assert(c.backoff == 0.9 && c.usage == 0.9);
	cr_assert_eq(weir_cautious.sampling->windowing, WEIR_WINDOW_SAMPLE);
}

Test(cautious, refuses_bad_parameters)
{
	assert_refused(&weir_cautious, "min=3,max=2", "min is above max");
	assert_refused(&weir_cautious, "backoff=1", "backoff");
	assert_refused(&weir_cautious, "usage=1.1", "usage");
	assert_accepted(&weir_cautious, "min=3,max=3");
}

Test(cautious, a_success_adds_the_inverse)
{
	struct subject s;

	start(&s, &weir_cautious, "initial=20");
	cr_assert_eq(feed(&s, sample(MS, 18)), 20.05);
	cr_assert_eq(feed(&s, sample(MS, 18)), 20.05 + 1 / 20.05);
}

Test(cautious, grows_only_if_nine_tenths_are_in_flight)
{
	struct subject s;

	start(&s, &weir_cautious, "initial=20");
	cr_assert_eq(feed(&s, sample(MS, 17)), 20);
	start(&s, &weir_cautious, "initial=19");
	cr_assert_eq(feed(&s, sample(MS, 17)), 19 + 1.0 / 19, "17.1, rounded down");
}

Test(cautious, a_drop_takes_a_tenth_and_rounds_down)
{
	struct subject s;

	start(&s, &weir_cautious, "initial=25");
	cr_assert_eq(feed(&s, dropped(MS, 1)), 22);
	cr_assert_eq(feed(&s, only_dropped(0)), 19);
	cr_assert_eq(feed(&s, (struct weir_window){.timed_out = 1}), 17);
}

Test(cautious, a_window_of_several_samples_is_like_several_windows)
{
	struct weir_window several = sample(MS, 1000);
	struct subject one, all;

	several.count = 500;
	start(&one, &weir_cautious, "initial=10");
	start(&all, &weir_cautious, "initial=10");
	for (int i = 0; i < 500; i++)
		feed(&one, sample(MS, 1000));
	feed(&all, several);
	cr_assert_float_eq(all.limit, one.limit, 0.02);
	cr_assert(one.limit > 33 && one.limit < 34); /* root of 100 + 1000 */

	several.count = 8;
	several.dropped = 5; /* 3 successes, then 5 drops */
	start(&all, &weir_cautious, "initial=100");
	cr_assert_eq(feed(&all, several), 57); /* 100.03: 90 81 72 64 57 */
}

Test(cautious, drops_without_latency_are_no_successes)
{
	struct weir_window w = {.count = 0, .dropped = 2, .inflight_max = 100};
	struct subject s;

	start(&s, &weir_cautious, "initial=100");
	cr_assert_eq(feed(&s, w), 81);
}

Test(cautious, stays_within_its_bounds)
{
	struct weir_window w = sample(MS, 1000);
	struct subject s;

	start(&s, &weir_cautious, "initial=5,min=4,max=6");
	w.count = UINT32_MAX;
	cr_assert_eq(feed(&s, w), 6);
	w.dropped = w.timed_out = UINT32_MAX;
	cr_assert_eq(feed(&s, w), 4);
	start(&s, &weir_cautious, "initial=1");
	cr_assert_eq(feed(&s, w), 1);
}

Test(cautious, an_empty_window_changes_nothing)
{
	struct subject s;

	start(&s, &weir_cautious, "initial=30,max=20");
	cr_assert_eq(feed(&s, (struct weir_window){.inflight_max = 30}), 30);
}
