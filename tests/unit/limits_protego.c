/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_protego.c - the response of protego to windows. Unless stated otherwise, calls take 1 ms
 * and a window 10 ms, so that calls settle in one window and are measured in the next.
 */
#include "limits.h"

/* A window of 10 ms with `calls` calls, one of which found the whole limit in flight. */
static struct weir_window done(const struct subject *s, uint32_t calls)
{
	struct weir_window w = sample(MS, (uint32_t)s->limit);

	w.start = WEIR_S;
	w.end = WEIR_S + 10 * WEIR_MS;
	w.count = calls;
	return w;
}

/* Settle, and then measure `w`: the limit after the step. */
static double measure(struct subject *s, struct weir_window w)
{
	const double before = s->limit;

	cr_assert_eq(feed(s, done(s, 1)), before, "it settles");
	w.inflight_max = w.inflight_max == 0 ? (uint32_t)s->limit : w.inflight_max;
	return feed(s, w);
}

static double measure_calls(struct subject *s, uint32_t calls)
{
	return measure(s, done(s, calls));
}

Test(protego, defaults)
{
	struct weir_protego_config c;

	cr_assert_eq(weir_limit_complete(&weir_protego, NULL, 0, &c, NULL, 0), 0);
	cr_assert(c.initial == 20 && c.min == 1 && c.max == 1000);
	cr_assert(c.efficiency == 0.1 && c.drops == 0.1 && c.calls == 50);
	cr_assert(c.settle == 5 && c.measure == 5);
	cr_assert(c.increase.kind == WEIR_STEP_ADD && c.increase.by == 1);
	cr_assert(c.decrease.kind == WEIR_STEP_ADD && c.decrease.by == -1);
	cr_assert(c.unused.kind == WEIR_STEP_ADD && c.unused.by == -1);
	cr_assert_eq(weir_protego.flags, 0);
	cr_assert_leq(weir_protego.state_size, WEIR_LIMIT_STATE_MAX);
}

Test(protego, refuses_bad_parameters)
{
	assert_refused(&weir_protego, "min=3,max=2", "min is above max");
	assert_refused(&weir_protego, "decrease=add:1", "decrease does not decrease");
	assert_refused(&weir_protego, "decrease=mul:1.1", "decrease does not decrease");
	assert_refused(&weir_protego, "increase=sub:1", "increase does not increase");
	assert_refused(&weir_protego, "increase=mul:0.9", "increase does not increase");
	assert_refused(&weir_protego, "efficiency=1.1", "efficiency");
	assert_refused(&weir_protego, "drops=0", "drops");
	assert_refused(&weir_protego, "calls=0", "calls");
	assert_accepted(&weir_protego, "increase=mul:1.02,decrease=mul:0.98,efficiency=1");
}

Test(protego, a_bad_configuration_makes_no_limiter)
{
	const struct weir_protego_config bad = {.min = 3, .max = 2};
	struct weir_limiter *limiter = NULL;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_protego;
	config.limit_config = &bad;
	cr_assert_eq(weir_limiter_create(&config, &limiter), -EINVAL);
	cr_assert_null(limiter);
}

Test(protego, grows_while_throughput_follows_the_limit)
{
	struct subject s;

	start(&s, &weir_protego, "");
	for (uint32_t n = 20; n < 50; n++)
		cr_assert_eq(measure_calls(&s, 50 * n), n + 1);
	cr_assert_float_eq(number(&s, "gain"), 1, 1e-9);
	cr_assert_eq(number(&s, "throughput"), 245000);
}

/* 100,000 calls a second at 20, so that a tenth of the twentieth that came on top is 500. */
Test(protego, grows_from_exactly_the_efficiency_on)
{
	struct subject s;

	start(&s, &weir_protego, "");
	cr_assert_eq(measure_calls(&s, 1000), 21, "any throughput is more than none");
	cr_assert_eq(measure_calls(&s, 1005), 22);
	cr_assert_float_eq(number(&s, "gain"), 0.1, 1e-9);

	start(&s, &weir_protego, "");
	measure_calls(&s, 1000);
	cr_assert_eq(measure_calls(&s, 1004), 20);
	cr_assert_float_eq(number(&s, "gain"), 0.08, 1e-9);

	start(&s, &weir_protego, "efficiency=0.08");
	measure_calls(&s, 1000);
	cr_assert_eq(measure_calls(&s, 1004), 22);
}

/* 100,400 at 21: a tenth of the twenty-first that was taken away is 478. */
Test(protego, grows_again_if_shrinking_lost_more_than_the_efficiency)
{
	struct subject s;

	start(&s, &weir_protego, "");
	measure_calls(&s, 1000);
	measure_calls(&s, 1004);
	cr_assert_eq(measure_calls(&s, 1000), 19, "400 lost");

	start(&s, &weir_protego, "");
	measure_calls(&s, 1000);
	measure_calls(&s, 1004);
	cr_assert_eq(measure_calls(&s, 999), 21, "500 lost");
}

Test(protego, shrinks_where_throughput_stays_the_same)
{
	struct subject s;

	start(&s, &weir_protego, "");
	cr_assert_eq(measure_calls(&s, 1000), 21);
	for (int n = 20; n > 0; n--)
		cr_assert_eq(measure_calls(&s, 1000), n);
	cr_assert_eq(measure_calls(&s, 1000), 1, "not below the minimum");
}

/* Throughput follows the limit up to fifty, and no further. */
Test(protego, stays_at_the_knee)
{
	struct subject s;

	start(&s, &weir_protego, "");
	for (int i = 0; i < 1000; i++) {
		measure_calls(&s, 50 * (uint32_t)(s.limit < 50 ? s.limit : 50));
		cr_assert(i < 30 || (s.limit >= 49 && s.limit <= 51), "%d: %g", i, s.limit);
	}
}

Test(protego, shrinks_if_the_limit_was_not_reached)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	w = done(&s, 1000);
	w.inflight_max = 19;
	cr_assert_eq(measure(&s, w), 19);
	w.count = 2000;
	w.inflight_max = 18;
	cr_assert_eq(measure(&s, w), 18, "though twice as many were served");

	start(&s, &weir_protego, "unused=add:0");
	cr_assert_eq(measure(&s, w), 20);
	w.dropped = 201;
	cr_assert_eq(measure(&s, w), 19, "drops count all the same");
}

/* What was in flight before the step has no part in the measurement. */
Test(protego, calls_that_settle_are_not_measured)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	feed(&s, done(&s, 1000000));
	w = done(&s, 1000);
	w.inflight_max = 19;
	cr_assert_eq(feed(&s, w), 19);
	cr_assert_eq(number(&s, "throughput"), 100000);
}

Test(protego, waits_and_measures_in_latencies)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "settle=3,measure=6");
	w = done(&s, 1000);
	w.rtt = 10 * MS;
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(number(&s, "settling"), i < 3);
		cr_assert_eq(feed(&s, w), 20, "%d", i);
	}
	cr_assert_eq(feed(&s, w), 21);
	cr_assert_eq(number(&s, "settling"), 1);
}

Test(protego, a_measurement_has_enough_calls)
{
	struct subject s;

	start(&s, &weir_protego, "");
	feed(&s, done(&s, 10));
	for (int i = 0; i < 4; i++)
		cr_assert_eq(feed(&s, done(&s, 10)), 20);
	cr_assert_eq(feed(&s, done(&s, 10)), 21);
	cr_assert_eq(number(&s, "throughput"), 1000);
}

Test(protego, samples_stand_for_calls)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	w = done(&s, 10);
	w.calls = 1000;
	measure(&s, w);
	cr_assert_eq(number(&s, "throughput"), 100000);
}

Test(protego, shrinks_if_more_than_a_tenth_is_lost)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	w = done(&s, 1000);
	w.dropped = 60;
	w.timed_out = 40;
	cr_assert_eq(measure(&s, w), 21);
	cr_assert_eq(number(&s, "throughput"), 90000, "what is lost is no throughput");

	start(&s, &weir_protego, "");
	w.timed_out = 41;
	cr_assert_eq(measure(&s, w), 19);

	start(&s, &weir_protego, "drops=0.2");
	cr_assert_eq(measure(&s, w), 21);
}

/* Refusals without a latency, as of a backend that closes connections. */
Test(protego, shrinks_where_there_are_only_drops)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	w = only_dropped(20);
	w.end = 10 * WEIR_MS;
	w.dropped = 100;
	cr_assert_eq(feed(&s, w), 20);
	cr_assert_eq(feed(&s, w), 19);
	cr_assert_eq(number(&s, "throughput"), 0);
	cr_assert_eq(measure_calls(&s, 1000), 18, "more was served, with a lower limit");
	cr_assert_eq(number(&s, "gain"), 0);
}

Test(protego, waits_for_calls)
{
	struct weir_window w = {.end = WEIR_S};
	struct subject s;

	start(&s, &weir_protego, "");
	for (int i = 0; i < 100; i++)
		cr_assert_eq(feed(&s, w), 20);
	cr_assert_eq(number(&s, "settling"), 1);
	feed(&s, done(&s, 1));
	for (int i = 0; i < 100; i++)
		cr_assert_eq(feed(&s, w), 20);
	cr_assert_eq(number(&s, "settling"), 0);
}

Test(protego, keeps_the_fraction_of_a_step)
{
	static const double limits[] = {20.5, 20.09, 19.6882, 19.294436};
	struct subject s;

	start(&s, &weir_protego, "decrease=mul:0.98,increase=add:0.5");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		measure_calls(&s, 1000);
		cr_assert_float_eq(s.limit, limits[i], 1e-9, "%zu", i);
	}
}

/* At a bound the limit is the same twice: then any gain counts. */
Test(protego, stays_within_its_bounds)
{
	struct subject s;

	start(&s, &weir_protego, "max=20,min=19");
	cr_assert_eq(measure_calls(&s, 1000), 20);
	cr_assert_eq(measure_calls(&s, 1001), 20);
	cr_assert_eq(number(&s, "gain"), 0);
	cr_assert_eq(measure_calls(&s, 1001), 19);
	cr_assert_eq(measure_calls(&s, 1001), 19);
}

Test(protego, follows_the_bounds_of_the_limiter)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_protego, "");
	w = done(&s, 1000);
	w.limit = 12;
	s.limit = s.ops->update(s.state, &w);
	cr_assert_eq(s.limit, 12);
	cr_assert_eq(feed(&s, done(&s, 1000)), 13);
}
