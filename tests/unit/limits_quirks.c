/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_quirks.c - defects of the reference implementation that weir does not have.
 *
 * The conformance set has traces that record a defect of the reference. Each has a test or two
 * here, under the trace's name, with the input of its rows.
 */
#include "limits.h"

#include <math.h>

Test(quirks, aimd_11_min_above_max)
{
	assert_refused(&weir_aimd, "min=50,max=10", "min is above max");
}

Test(quirks, aimd_12_inflight_overflow)
{
	struct subject s;

	start(&s, &weir_aimd, "initial=100,min=20,max=1000");
	cr_assert_eq(feed(&s, sample(MS, 1073741831)), 101);
	cr_assert_eq(feed(&s, sample(MS, INT32_MAX)), 102);
	cr_assert_eq(feed(&s, sample(MS, UINT32_MAX)), 103);
}

Test(quirks, gradient2_25_zero_rtt_nan)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient2, "initial=20");
	cr_assert_eq(feed(&s, sample(0, 40)), 20);
	cr_assert_eq(number(&s, "rtt_long"), 0);
	for (i = 0; i < 500; i++)
		cr_assert(feed(&s, sample(10 * MS, 200)) >= 20);
	cr_assert_eq(number(&s, "rtt_long"), 10 * MS);
	cr_assert_gt(s.limit, 100);
}

Test(quirks, gradient2_26_long_window_0)
{
	assert_refused(&weir_gradient2, "long_window=0", "long_window is 0");
}

Test(quirks, gradient_21_initial_zero)
{
	assert_refused(&weir_gradient, "initial=0", "initial is 0");
	assert_refused(&weir_gradient, "min=0", "min is 0");
}

Test(quirks, gradient_22_queue_above_max)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient, "initial=10,min=1,max=12,queue=const:30,probe=100");
	for (i = 0; i < 600; i++)
		cr_assert_leq(feed_busy(&s, 10 * MS), 12);
	cr_assert_gt(number(&s, "probes"), 2);
}

Test(quirks, gradient_23_zero_rtt_nan)
{
	struct subject s;
	int i;

	start(&s, &weir_gradient, "initial=50,probe=200");
	cr_assert_eq(feed(&s, sample(0, 385)), 50);
	cr_assert_eq(number(&s, "rtt_noload"), 0);
	feed(&s, sample(11 * MS, 111));
	cr_assert_eq(number(&s, "rtt_noload"), 11 * MS);
	cr_assert_gt(s.limit, 50);

	cr_assert_eq(feed(&s, sample(0, 385)), s.limit);
	cr_assert_eq(number(&s, "rtt_noload"), 11 * MS, "the lowest latency was lost");
	for (i = 0; i < 900; i++)
		cr_assert(feed(&s, sample(11 * MS, 400)) >= 1);
}

Test(quirks, vegas_38_nonpositive_rtt)
{
	struct subject s;

	start(&s, &weir_vegas, "");
	feed_busy(&s, 10 * MS);
	cr_assert_eq(feed_busy(&s, 0), 20);
	cr_assert_eq(feed_busy(&s, -2), 20);
	cr_assert_eq(number(&s, "rtt_noload"), 10 * MS);
	cr_assert_eq(feed_busy(&s, 10 * MS), 26);
}

/* Calls that begin and end at the same time, as on a clock that stands still. */
static void use_frozen_clock(const struct weir_limit_ops *ops, enum weir_outcome outcome)
{
	struct weir_limiter *l = make_limiter(ops);
	struct weir_token token;
	uint32_t before = weir_limit(l);
	int i;

	for (i = 0; i < 100; i++) {
		cr_assert_eq(weir_try_acquire_at(l, 1000, &token), 0, "%s refuses", ops->name);
		weir_release_at(l, 1000, &token, outcome);
	}
	cr_assert_eq(weir_inflight(l), 0, "%s loses permits", ops->name);
	cr_assert_geq(weir_limit(l), 1, "%s", ops->name);
	if (outcome == WEIR_SUCCESS && ops != &weir_aimd)
		cr_assert_eq(weir_limit(l), before, "%s learns from nothing", ops->name);
	weir_limiter_destroy(l);
}

Test(quirks, vegas_38_and_all_others_return_the_permit)
{
	const struct weir_limit_ops *ops;
	unsigned i;

	for (i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		use_frozen_clock(ops, WEIR_SUCCESS);
		use_frozen_clock(ops, WEIR_DROPPED);
		use_frozen_clock(ops, WEIR_IGNORE);
	}
}

Test(quirks, vegas_39_inflight_overflow)
{
	struct subject s;

	start(&s, &weir_vegas, "initial=100");
	feed(&s, sample(10 * MS, 100));
	cr_assert_eq(feed(&s, sample(10 * MS, 1073741877)), 112);
	cr_assert_eq(feed(&s, sample(10 * MS, UINT32_MAX)), 124);
}

Test(quirks, vegas_40_probe_always)
{
	struct subject s;
	int i;

	assert_refused(&weir_vegas, "probe=0", "probe is 0");

	/* Even with the most frequent probes, the limit moves. */
	start(&s, &weir_vegas, "probe=1");
	for (i = 0; i < 50; i++)
		feed_busy(&s, 10 * MS);
	cr_assert_gt(s.limit, 50);
}

static struct weir_limiter *make_windowed(const char *text, struct weir_config *config)
{
	struct weir_aimd_config aimd = {0};
	struct weir_limiter *limiter;

	cr_assert_eq(weir_limit_parse(&weir_aimd, &aimd, text, NULL, 0), 0);
	config->limit = &weir_aimd;
	config->limit_config = &aimd;
	config->limit_config_size = sizeof(aimd);
	config->sparse = WEIR_SPARSE_DISCARD;
	config->rtt_threshold = 100 * WEIR_US;
	config->stripes = 1;
	cr_assert_eq(weir_limiter_create(config, &limiter), 0);
	return limiter;
}

Test(quirks, windowed_aimd_03_negative_clock)
{
	const weir_time origins[] = {
		1000 * WEIR_MS, UINT64_MAX - 5 * WEIR_S, /* below zero, and through it */
		((uint64_t)1 << 63) - WEIR_S,            /* where a signed clock overflows */
	};
	struct weir_limiter *l[3];
	struct weir_config config;
	weir_time start;
	uint64_t step, i;

	for (i = 0; i < 3; i++) {
		weir_config_init(&config);
		config.window_min = config.window_max = 100 * WEIR_MS;
		l[i] = make_windowed("initial=100,min=1,backoff=0.5", &config);
	}
	for (step = 0; step < 2000; step++) {
		for (i = 0; i < 3; i++) {
			start = origins[i] + step * 4 * WEIR_MS;
			weir_sample_at(l[i], start, start + 10 * WEIR_MS, 100,
				       step % 97 == 60 ? WEIR_DROPPED : WEIR_SUCCESS);
		}
		cr_assert_eq(weir_limit(l[0]), weir_limit(l[1]), "step %d", (int)step);
		cr_assert_eq(weir_limit(l[0]), weir_limit(l[2]), "step %d", (int)step);
	}
	cr_assert_lt(weir_limit(l[0]), 50);
	for (i = 0; i < 3; i++)
		weir_limiter_destroy(l[i]);
}

Test(quirks, windowed_aimd_04_full_percentile_window_hides_drops)
{
	struct weir_limiter *l;
	struct weir_config config;
	weir_time start;
	uint64_t i;

	weir_config_init(&config);
	config.window_min = config.window_max = WEIR_S;
	config.rtt = WEIR_RTT_QUANTILE;
	l = make_windowed("initial=100,min=1", &config);
	/* A hundred samples a window; the last five are dropped. */
	for (i = 0; i < 1000; i++) {
		start = WEIR_S + i * 10 * WEIR_MS;
		weir_sample_at(l, start, start + 10 * WEIR_MS, 100,
			       i % 100 >= 95 ? WEIR_DROPPED : WEIR_SUCCESS);
	}
	cr_assert_lt(weir_limit(l), 50);
	weir_limiter_destroy(l);
}

Test(quirks, windowed_aimd_05_percentile_capacity_below_window_size)
{
	struct weir_limiter *l;
	struct weir_config config;
	weir_time start;
	uint64_t i;

	weir_config_init(&config);
	config.window_min = config.window_max = 100 * WEIR_MS;
	config.rtt = WEIR_RTT_QUANTILE;
	config.window_samples = 50;
	l = make_windowed("initial=100,min=1", &config);
	/* weir has no capacity: a window gets all of its samples. */
	for (i = 0; i < 1000; i++) {
		start = WEIR_S + i * 2 * WEIR_MS;
		weir_sample_at(l, start, start + 10 * WEIR_MS, 200, WEIR_SUCCESS);
	}
	cr_assert_gt(weir_limit(l), 110);
	weir_limiter_destroy(l);
}

Test(quirks, windowed_vegas_10_window_min_above_max)
{
	struct weir_config config;
	char why[200] = "";

	weir_config_init(&config);
	config.window_min = 800 * WEIR_MS;
	config.window_max = 100 * WEIR_MS;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_gt(strlen(why), 0);
	cr_assert_eq(weir_limiter_size(&config), 0);
}
