/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_vector.c - the response of vector to single windows.
 */
#include "limits.h"

#define TRIP (20 * WEIR_MS)

/* Start with a mean of 10 ms that has not varied. */
static void start_known(struct subject *s, const char *text)
{
	start(s, &weir_vector, text);
	feed(s, period(0, 1, 10 * MS, 0));
	cr_assert_eq(number(s, "rtt_mean"), 10 * MS);
}

static double feed_trip(struct subject *s, double rtt)
{
	return feed(s, period(TRIP, 1, rtt, (uint32_t)s->limit));
}

Test(vector, defaults)
{
	struct weir_vector_config c;

	cr_assert_eq(weir_limit_complete(&weir_vector, NULL, 0, &c, NULL, 0), 0);
	cr_assert_eq(c.initial, 1);
	cr_assert_eq(c.max, 200);
	cr_assert_eq(c.backoff, 0.9);
	cr_assert_eq(c.smoothing, 0.4);
	cr_assert_eq(c.deviations, 2.5);
}

Test(vector, windows)
{
	const struct weir_sampling *s = weir_vector.sampling;

	cr_assert(s->window_min == WEIR_MS && s->window_max == WEIR_MS && s->window_samples == 1);
	cr_assert_eq(s->rtt, WEIR_RTT_MEAN);
}

Test(vector, grows_by_one_when_reached_and_latency_has_not_risen)
{
	struct subject s;

	start_known(&s, "");
	cr_assert_eq(s.limit, 1, "the first round trip only sets the mean");
	cr_assert_eq(feed_trip(&s, 10 * MS), 2);
	cr_assert_eq(feed_trip(&s, 10 * MS), 3);
	cr_assert_eq(feed_trip(&s, 9 * MS), 4);
}

Test(vector, stays_when_it_was_not_reached)
{
	struct subject s;

	start_known(&s, "initial=20");
	cr_assert_eq(feed(&s, period(TRIP, 1, 9 * MS, 19)), 20);
	cr_assert_eq(feed(&s, period(TRIP, 1, 9 * MS, 20)), 21);
}

Test(vector, averages_exponentially)
{
	struct subject s;

	start_known(&s, "");
	feed_trip(&s, 12 * MS);
	cr_assert_float_eq(number(&s, "rtt_mean"), 10.8 * MS, 1e-3);
	cr_assert_float_eq(number(&s, "rtt_deviation"), 0.9797958971 * MS, 1e-3); /* root(0.96) */
	feed_trip(&s, 8 * MS);
	cr_assert_float_eq(number(&s, "rtt_mean"), 9.68 * MS, 1e-3);
	cr_assert_float_eq(number(&s, "rtt_deviation"), 1.5676734354 * MS, 1e-3); /* 2.4576 */
}

Test(vector, shrinks_well_above_the_mean)
{
	struct subject s;

	/* With 10.8 and 0.98, overload begins at 13.2495. */
	start_known(&s, "initial=20");
	cr_assert_eq(feed(&s, period(TRIP, 1, 12 * MS, 20)), 18, "the deviation was 0");
	cr_assert_eq(feed_trip(&s, 13.24 * MS), 18);

	start_known(&s, "initial=20");
	feed(&s, period(TRIP, 1, 12 * MS, 20));
	cr_assert_eq(feed(&s, period(TRIP, 1, 13.26 * MS, 1)), 16, "used or not");
}

Test(vector, a_drop_shrinks_it_even_if_latency_is_good)
{
	struct subject s;
	struct weir_window w = period(TRIP, 10, 9 * MS, 20);

	start_known(&s, "initial=20");
	w.timed_out = 1;
	cr_assert_eq(feed(&s, w), 18);
	w = only_dropped(1);
	w.end = TRIP;
	cr_assert_eq(feed(&s, w), 16, "without a latency");
	cr_assert_float_eq(number(&s, "rtt_mean"), 9.6 * MS, 1e-3);

	start(&s, &weir_vector, "initial=20");
	cr_assert_eq(feed(&s, only_dropped(1)), 18, "before any latency");
}

Test(vector, decides_once_a_round_trip)
{
	struct subject s;
	struct weir_window w = dropped(10 * MS, 3);
	int i;

	start_known(&s, "initial=20");
	w.end = WEIR_MS;
	for (i = 0; i < 9; i++)
		cr_assert_eq(feed(&s, w), 20);
	cr_assert_eq(feed(&s, w), 18);
	/* Latencies are weighted by samples; of calls in flight the maximum counts. */
	feed(&s, period(5 * WEIR_MS, 3, 8 * MS, 18));
	cr_assert_eq(feed(&s, period(5 * WEIR_MS, 1, 12 * MS, 2)), 19);
	cr_assert_float_eq(number(&s, "rtt_mean"), 9.6 * MS, 1e-3);
}

Test(vector, stays_within_its_bounds)
{
	struct subject s;
	int i;

	start_known(&s, "max=5");
	for (i = 0; i < 20; i++)
		feed_trip(&s, 10 * MS);
	cr_assert_eq(s.limit, 5);
	for (i = 0; i < 20; i++)
		feed(&s, period(TRIP, 1, (20 << i) * MS, 5));
	cr_assert_eq(s.limit, 1);
	cr_assert_eq(feed(&s, only_dropped(1)), 1);
}

Test(vector, an_empty_window_changes_nothing)
{
	struct subject s;

	start_known(&s, "initial=20");
	cr_assert_eq(feed(&s, period(TRIP, 0, 0, 20)), 20);
	cr_assert_eq(feed(&s, period(TRIP, 1, 0, 20)), 20);
	cr_assert_eq(number(&s, "rtt_mean"), 10 * MS);
}
