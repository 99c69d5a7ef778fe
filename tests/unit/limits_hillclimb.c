/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_hillclimb.c - the response of hillclimb to windows, each a sample unless stated otherwise.
 */
#include "limits.h"

#include <math.h>

/* A window of 10 ms, the shortest sample, in which `calls` calls were done. */
static struct weir_window done(uint32_t calls)
{
	struct weir_window w = sample(MS, 1);

	w.start = WEIR_S;
	w.end = WEIR_S + 10 * WEIR_MS;
	w.count = calls;
	return w;
}

/* Feed samples whose throughput is proportional to the limit. */
static void feed_proportional(struct subject *s, int samples)
{
	for (int i = 0; i < samples; i++)
		feed(s, done(10 * (uint32_t)s->limit));
}

/* Feed samples with a constant throughput. */
static void feed_constant(struct subject *s, int samples)
{
	for (int i = 0; i < samples; i++)
		feed(s, done(200));
}

Test(hillclimb, defaults)
{
	struct weir_hillclimb_config c;

	cr_assert_eq(weir_limit_complete(&weir_hillclimb, NULL, 0, &c, NULL, 0), 0);
	cr_assert(c.initial == 20 && c.min == 1 && c.max == 1000);
	cr_assert(c.period == 4 && c.history == 8 && c.wave_max == 20 && c.magnitude == 1);
	cr_assert(c.bias == 0.15 && c.snr == 3 && c.gain_exponent == 2);
	cr_assert(c.change_per_second == 4 && c.change_per_sample == 20);
	cr_assert(c.sample_min == 10 * WEIR_MS && c.sample_max == 200 * WEIR_MS);
	cr_assert(c.sample_error == 0.15 && c.error_smoothing == 0.01 && c.cpu == 0.95);
	cr_assert_eq(weir_hillclimb.flags, WEIR_LIMIT_CPU);
}

Test(hillclimb, refuses_bad_parameters)
{
	assert_refused(&weir_hillclimb, "min=3,max=2", "min is above max");
	assert_refused(&weir_hillclimb, "sample_min=201ms", "sample_min is above sample_max");
	assert_refused(&weir_hillclimb, "period=5", "period is odd");
	assert_refused(&weir_hillclimb, "period=10,history=7", "period times history is above 64");
	assert_accepted(&weir_hillclimb, "period=2,history=32");
	assert_accepted(&weir_hillclimb, "period=32,history=2");
}

Test(hillclimb, rises_by_one_for_half_of_each_period)
{
	static const double limits[] = {20, 21, 21, 20, 20, 21, 21, 20};
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		cr_assert_eq(feed(&s, done(200)), limits[i], "%zu", i);
	cr_assert_eq(number(&s, "ratio"), 0, "two periods are not complete");
}

Test(hillclimb, climbs_where_throughput_follows)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	feed_proportional(&s, 9);
	cr_assert_float_eq(number(&s, "ratio"), 1 - 0.15, 1e-9);
	cr_assert_geq(number(&s, "confidence"), 1);
	/* 0.85 squared of 4 a second, in 10 ms. */
	cr_assert_float_eq(number(&s, "estimate"), 20 + 0.0289, 1e-9);
	cr_assert_eq(s.limit, 20);
}

Test(hillclimb, sinks_where_it_does_not)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	feed_constant(&s, 9);
	cr_assert_float_eq(number(&s, "ratio"), -0.15, 1e-9);
	cr_assert_float_eq(number(&s, "estimate"), 20 - 0.0009, 1e-9);
	cr_assert_eq(s.limit, 19);
}

Test(hillclimb, moves_within_its_bounds)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20,change_per_sample=0.02");
	feed_proportional(&s, 9);
	cr_assert_float_eq(number(&s, "estimate"), 20.02, 1e-9);

	/* A sample of an hour. */
	start(&s, &weir_hillclimb, "initial=20");
	feed_proportional(&s, 8);
	w = done(1440000 * (uint32_t)s.limit);
	w.end = w.start + 3600 * WEIR_S;
	feed(&s, w);
	cr_assert(fabs(number(&s, "estimate") - 20) <= 20);
}

Test(hillclimb, does_not_grow_while_processors_are_busy)
{
	struct weir_window w;
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	feed_proportional(&s, 8);
	w = done(10 * (uint32_t)s.limit);
	w.cpu = 0.96;
	feed(&s, w);
	cr_assert_eq(number(&s, "estimate"), 20);

	start(&s, &weir_hillclimb, "initial=20");
	feed_constant(&s, 8);
	w = done(200);
	w.cpu = 0.96;
	feed(&s, w);
	cr_assert_float_eq(number(&s, "estimate"), 20 - 0.0009, 1e-9);
}

/* A fifth at half the frequency is noise; the wave is a fortieth. */
Test(hillclimb, a_wave_below_the_noise_counts_little)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20,wave_max=1");
	for (int i = 0; i < 9; i++)
		feed(&s, done((uint32_t)(10 * s.limit + 40 * sin(i * 3.14159265 / 4))));
	cr_assert_lt(number(&s, "confidence"), 0.2);
	cr_assert_gt(number(&s, "confidence"), 0);
	cr_assert_float_eq(number(&s, "estimate"), 20, 0.002);
	cr_assert_gt(number(&s, "noise"), 0.05);
}

Test(hillclimb, noise_makes_the_wave_higher)
{
	double low = INFINITY, high = 0;
	struct subject s;

	start(&s, &weir_hillclimb, "initial=100,wave_max=7,sample_error=10");
	for (int i = 0; i < 100; i++) {
		feed(&s, done((uint32_t)(1000 + 500 * sin(i * 3.14159265 / 4))));
		low = fmin(low, i > 50 ? s.limit : low);
		high = fmax(high, i > 50 ? s.limit : high);
	}
	cr_assert(high - low >= 7 && high - low <= 8, "%f to %f", low, high);
}

Test(hillclimb, a_sample_lasts_until_it_has_enough_calls)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	cr_assert_eq(feed(&s, done(10)), 20, "the first sample needs no minimum of calls");
	for (int i = 0; i < 12; i++)
		cr_assert_eq(feed(&s, done(10)), 20, "19 / 120 is too much");
	cr_assert_eq(feed(&s, done(10)), 21, "19 / 130 is not");
}

Test(hillclimb, a_sample_lasts_as_drawn)
{
	struct weir_window w = done(1000);
	struct subject s;

	start_random(&s, &weir_hillclimb, "initial=20", 0.5); /* 105 ms */
	w.random = 0;
	for (int i = 0; i < 21; i++)
		cr_assert_eq(feed(&s, w), 20, "%d", i); /* one sample, and 100 ms */
	cr_assert_eq(feed(&s, w), 21);
	/* Drawn again at each change of the limit: 10 ms. */
	cr_assert_eq(feed(&s, w), 21);
	cr_assert_eq(feed(&s, w), 20);
}

Test(hillclimb, stays_longer_at_the_minimum)
{
	struct subject s;

	/* max leaves no room for a wave. */
	start(&s, &weir_hillclimb, "initial=20,min=20,max=21");
	feed_constant(&s, 8);
	cr_assert_eq(s.limit, 20);
	feed_constant(&s, 1); /* at the minimum, where more is worse: 10 * 0.15 as long */
	cr_assert_eq(s.limit, 20);
	feed_constant(&s, 1);
	cr_assert_eq(s.limit, 20, "15 ms have not passed");
	feed_constant(&s, 1);
	cr_assert_eq(s.limit, 21);
}

Test(hillclimb, a_window_without_calls_is_no_sample)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=1");
	for (int i = 0; i < 100; i++)
		cr_assert_eq(feed(&s, done(0)), 1);
	cr_assert_eq(feed(&s, done(1)), 1);
	cr_assert_eq(feed(&s, done(1)), 2);
}

Test(hillclimb, the_setting_follows_the_bounds_of_the_limiter)
{
	struct weir_window w = done(200);
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	w.limit = 12;
	s.limit = s.ops->update(s.state, &w);
	cr_assert_eq(number(&s, "estimate"), 12);
	cr_assert_eq(s.limit, 12);
}

/* Throughput follows the limit up to fifty, and no further. */
Test(hillclimb, finds_the_knee)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20");
	for (int i = 0; i < 4000; i++)
		feed(&s, done((uint32_t)(10 * fmin(50, s.limit))));
	cr_assert(number(&s, "estimate") > 45 && number(&s, "estimate") < 52, "%f",
		  number(&s, "estimate"));
}

Test(hillclimb, stays_within_its_bounds)
{
	struct subject s;

	start(&s, &weir_hillclimb, "initial=20,min=18,max=23");
	for (int i = 0; i < 3000; i++) {
		feed_proportional(&s, 1);
		cr_assert(s.limit >= 18 && s.limit <= 23);
	}
	start(&s, &weir_hillclimb, "initial=1,max=1");
	feed_proportional(&s, 100);
	cr_assert_eq(s.limit, 1);
	start(&s, &weir_hillclimb, "initial=2,change_per_second=1000,sample_error=100");
	for (int i = 0; i < 3000; i++) {
		feed(&s, done(1 + (uint32_t)(i * 7919) % 1000));
		cr_assert(s.limit >= 1 && s.limit <= 1000);
	}
}
