/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_posterior.c - updates of the posterior over the knee, and the dither of limits.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/posterior.h"
#include "limits/elastic/dither.h"

#define CLEAR 0.05

static struct posterior fresh(void)
{
	struct posterior p;

	posterior_init(&p, 0, log(1000), 0.7);
	return p;
}

static void see(struct posterior *p, double n, double slope, double variance)
{
	const double step = POSTERIOR_STEP;

	posterior_update(p, &(struct evidence){
				    .from = log(n) - step / 2,
				    .to = log(n) + step / 2,
				    .change = step * slope,
				    .variance = step * step * variance,
			    });
}

static double sum(const struct posterior *p)
{
	double all = 0;

	for (int i = 0; i < POSTERIOR_STEPS; i++)
		all += (double)p->of[i];
	return all;
}

Test(posterior, flat_latency_moves_it_up_and_a_queue_moves_it_down)
{
	struct posterior p = fresh();
	double before = posterior_quantile(&p, 0.5);

	for (int i = 0; i < 10; i++)
		see(&p, 30, 0, CLEAR);
	cr_assert_gt(posterior_quantile(&p, 0.02), log(29));
	cr_assert_gt(posterior_quantile(&p, 0.5), before);
	for (int i = 0; i < 20; i++)
		see(&p, 60, 1, CLEAR);
	cr_assert_lt(posterior_quantile(&p, 0.98), log(61));
	cr_assert_gt(posterior_quantile(&p, 0.02), log(25));
	cr_assert_float_eq(sum(&p), 1, 1e-4);
}

Test(posterior, noisy_evidence_moves_it_less)
{
	struct posterior clear = fresh(), noisy = fresh();

	see(&clear, 100, 1, CLEAR);
	see(&noisy, 100, 1, 100);
	cr_assert_lt(posterior_quantile(&clear, 0.5), posterior_quantile(&noisy, 0.5));
}

/* A server of 100 workers that was seen with 80, 100 and 400 calls, and now with 100. */
Test(posterior, takes_a_mean_over_several_n_for_what_it_is)
{
	struct posterior p = fresh();
	const double seen[] = {log(80), log(100), log(400)};
	double x = 0, xx = 0, y = 0;

	for (int i = 0; i < 3; i++) {
		x += seen[i] / 3;
		y += fmax(0, seen[i] - log(100)) / 3;
	}
	for (int i = 0; i < 3; i++)
		xx += (seen[i] - x) * (seen[i] - x) / 3;
	for (int i = 0; i < 10; i++)
		posterior_update(&p, &(struct evidence){
					     .from = x,
					     .spread = sqrt(xx),
					     .to = log(100),
					     .change = -y,
					     .variance = 0.001,
				     });
	cr_assert_gt(posterior_quantile(&p, 0.5), log(80));
	cr_assert_lt(posterior_quantile(&p, 0.5), log(130));
}

Test(posterior, has_no_information_in_a_change_of_nothing)
{
	struct posterior p = fresh();

	cr_assert_not(posterior_update(&p, &(struct evidence){.from = 2, .to = 2, .variance = 1}));
	cr_assert_not(posterior_update(&p, &(struct evidence){.variance = 0}));
	cr_assert_float_eq(sum(&p), 1, 1e-4);
}

Test(posterior, learns_again_after_the_knee_has_moved)
{
	struct posterior p = fresh();

	for (int i = 0; i < 1000; i++) {
		posterior_loosen(&p, log(20), 0.0003, INFINITY);
		see(&p, 20, i % 2 ? 0.5 : 0.9, CLEAR);
	}
	cr_assert(posterior_quantile(&p, 0.5) > log(15) && posterior_quantile(&p, 0.5) < log(27));
	for (int i = 0; i < 20; i++) {
		posterior_loosen(&p, log(20), 0.0003, INFINITY);
		see(&p, 20, 0, CLEAR);
	}
	cr_assert_gt(posterior_quantile(&p, 0.2), log(20));
}

Test(posterior, is_loosened_up_to_a_bound)
{
	struct posterior p = fresh(), below;

	for (int i = 0; i < 100; i++)
		see(&p, 20, i % 2 ? 0.5 : 0.9, CLEAR);
	below = p;
	posterior_loosen(&p, log(20), 0.05, INFINITY);
	posterior_loosen(&below, log(20), 0.05, log(20));
	cr_assert_gt(posterior_quantile(&p, 0.95), log(40));
	cr_assert_lt(posterior_quantile(&below, 0.95), log(27));
	cr_assert_lt(posterior_quantile(&below, 0.05), log(10));
	cr_assert_float_eq(sum(&below), 1, 1e-4);
}

Test(posterior, stays_between_its_bounds)
{
	struct posterior p;

	posterior_init(&p, log(10), log(50), 0.7);
	for (int i = 0; i < 50; i++)
		see(&p, 1000, 1, CLEAR);
	cr_assert_geq(posterior_quantile(&p, 0.01), log(10) - POSTERIOR_STEP);
	for (int i = 0; i < 50; i++)
		see(&p, 1000, 0, CLEAR);
	cr_assert_leq(posterior_quantile(&p, 0.99), log(50) + POSTERIOR_STEP);
}

Test(posterior, recovers_from_a_corrupted_state)
{
	struct posterior p = fresh();

	p.of[3] = NAN;
	see(&p, 10, 0.5, CLEAR);
	cr_assert_float_eq(sum(&p), 1, 1e-4);
	p.of[3] = -1;
	p.least = p.most = UINT32_MAX;
	posterior_loosen(&p, 1, 0.1, INFINITY);
	cr_assert_float_eq(sum(&p), 1, 1e-4);
}

Test(dither, direction_depends_on_the_time_alone)
{
	int same = 0, up = 0;

	for (weir_time now = 1; now < 1000000000000; now += 100000007) {
		struct dither one = dither_at(now, log(1e7)), other = dither_at(now, log(1.02e7));

		same += one.pair == other.pair && one.direction == other.direction;
		up += one.direction > 0;
		cr_assert(one.pair != 0 && one.chance >= 0 && one.chance < 1);
	}
	cr_assert_gt(same, 9400);
	cr_assert(up > 4500 && up < 5500, "%d", up);
}

Test(dither, a_complete_probe_pair_shows_the_rise_between_its_slots)
{
	struct probe_pair p = {.pair = 0};
	struct contrast c;
	struct dither s = {.pair = 1, .direction = 1};

	cr_assert_not(probe_pair_add(&p, &s, 10, 2, 7, &c));
	cr_assert_not(probe_pair_add(&p, &s, 10, 4, 7, &c));
	s.direction = -1;
	cr_assert_not(probe_pair_add(&p, &s, 20, 1, 5, &c));
	s.pair = 2;
	cr_assert(probe_pair_add(&p, &s, 20, 1, 5, &c));
	cr_assert_float_eq(c.down, 1, 1e-9);
	cr_assert_float_eq(c.up, 3, 1e-9);
	cr_assert_float_eq(c.rise, 2, 1e-9);
	cr_assert_float_eq(c.n, 10, 1e-9);
	s.pair = 3;
	cr_assert_not(probe_pair_add(&p, &s, 20, 1, 5, &c), "samples in one slot only");
}
