/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_codel.c - the response of codel to reported queue delays.
 */
#include "limits.h"

#include <math.h>

/* A window of 100 ms with this shortest delay, in which the whole limit was used. */
static struct weir_window delayed(uint32_t reports, double delay)
{
	struct weir_window w = sample(10 * MS, 1000);

	w.start = WEIR_S;
	w.end = WEIR_S + 100 * WEIR_MS;
	w.queued = reports;
	w.queue_min = delay;
	return w;
}

Test(codel, defaults)
{
	struct weir_codel_config c;

	cr_assert_eq(weir_limit_complete(&weir_codel, NULL, 0, &c, NULL, 0), 0);
	cr_assert(c.initial == 20 && c.min == 1 && c.max == 1000);
	cr_assert(c.interval == 100 * WEIR_MS && c.target == 5 * WEIR_MS);
	cr_assert(c.increase == 1 && c.decrease == 0.02);
	cr_assert_eq(weir_codel.flags, WEIR_LIMIT_QUEUE);
	cr_assert_eq(weir_codel.sampling->window_max, c.interval);
}

Test(codel, refuses_bad_parameters)
{
	assert_refused(&weir_codel, "min=3,max=2", "min is above max");
	assert_refused(&weir_codel, "target=2m", "target");
	assert_refused(&weir_codel, "decrease=1.5", "decrease");
	assert_accepted(&weir_codel, "min=3,max=3,initial=3");
}

Test(codel, grows_by_one_while_below_target)
{
	struct subject s;

	start(&s, &weir_codel, "initial=20,increase=1.5");
	cr_assert_eq(feed(&s, delayed(3, 0)), 21.5, "no standing queue");
	cr_assert_eq(feed(&s, delayed(1, 5 * MS)), 23, "at the target is not above it");
	cr_assert_eq(number(&s, "delay"), 5 * MS);
}

Test(codel, grows_only_if_half_is_used)
{
	struct weir_window w = delayed(3, 0);
	struct subject s;

	start(&s, &weir_codel, "initial=20");
	w.inflight_max = 9;
	cr_assert_eq(feed(&s, w), 20);
	w.inflight_max = 10;
	cr_assert_eq(feed(&s, w), 21);
}

Test(codel, shrinks_in_proportion_to_the_excess)
{
	struct subject s;

	start(&s, &weir_codel, "initial=100");
	feed(&s, delayed(9, 10 * MS));
	cr_assert_float_eq(s.limit, 98, 1e-9); /* one target of excess */
	feed(&s, delayed(9, 55 * MS));
	cr_assert_float_eq(s.limit, 98 * 0.8, 1e-9);
	feed(&s, delayed(9, 1e12));
	cr_assert_float_eq(s.limit, 98 * 0.8 / 2, 1e-9, "half stays");
}

Test(codel, shrinks_even_if_little_is_used)
{
	struct weir_window w = delayed(9, 10 * MS);
	struct subject s;

	w.inflight_max = 0;
	start(&s, &weir_codel, "initial=100");
	feed(&s, w);
	cr_assert_float_eq(s.limit, 98, 1e-9);
}

Test(codel, uses_the_shortest_delay_of_the_interval)
{
	struct weir_window w = delayed(5, 80 * MS);
	struct subject s;

	start(&s, &weir_codel, "initial=100,interval=300ms");
	cr_assert_eq(feed(&s, w), 100);
	cr_assert_eq(feed(&s, delayed(1, 10 * MS)), 100);
	cr_assert_eq(number(&s, "delay"), 0, "the interval is not over");
	feed(&s, w);
	cr_assert_float_eq(s.limit, 98, 1e-9);
	/* The next interval begins without it. */
	feed(&s, w);
	feed(&s, w);
	feed(&s, w);
	cr_assert_float_eq(s.limit, 98 * 0.7, 1e-9);
}

Test(codel, is_used_if_any_window_of_the_interval_was)
{
	struct weir_window idle = delayed(5, 0);
	struct subject s;

	idle.inflight_max = 0;
	start(&s, &weir_codel, "initial=100,interval=200ms");
	feed(&s, delayed(5, 0));
	cr_assert_eq(feed(&s, idle), 101);
	feed(&s, idle);
	cr_assert_eq(feed(&s, idle), 101);
}

Test(codel, stays_without_reports)
{
	struct subject s;

	start(&s, &weir_codel, "initial=20");
	for (int i = 0; i < 100; i++)
		cr_assert_eq(feed(&s, delayed(0, 0)), 20);
	feed(&s, delayed(1, 10 * MS));
	feed(&s, delayed(0, 0));
	cr_assert_float_eq(s.limit, 19.6, 1e-9, "a window without reports does not mean no queue");
}

Test(codel, ignores_drops_and_latencies)
{
	struct weir_window w = delayed(1, 0);
	struct subject s;

	w.dropped = w.timed_out = 100;
	w.rtt = 1e12;
	start(&s, &weir_codel, "initial=20");
	cr_assert_eq(feed(&s, w), 21);
}

Test(codel, stays_within_its_bounds)
{
	struct subject s;

	start(&s, &weir_codel, "initial=9,min=5,max=10");
	for (int i = 0; i < 5; i++)
		feed(&s, delayed(1, 0));
	cr_assert_eq(s.limit, 10);
	for (int i = 0; i < 5; i++)
		feed(&s, delayed(1, 1e12));
	cr_assert_eq(s.limit, 5);
	start(&s, &weir_codel, "initial=1");
	cr_assert_eq(feed(&s, delayed(1, 1e12)), 1);
}

/* 16 workers of 10 ms each, and as many callers as the limit admits: the others queue. */
Test(codel, finds_the_limit_that_keeps_the_delay_at_the_target)
{
	struct subject s;

	start(&s, &weir_codel, "initial=500");
	for (int i = 0; i < 400; i++)
		feed(&s, delayed(1, fmax(0, trunc(s.limit) - 16) * 10 * MS / 16));
	cr_assert(s.limit >= 22 && s.limit <= 27, "%f", s.limit); /* 16, and 8 in 5 ms */
}
