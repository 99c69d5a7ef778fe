/*
 * limits_belief.c - what slopes make of a belief about the knee, and when limits swing.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/posterior.h"
#include "limits/elastic/dither.h"

#define CLEAR 0.05

static struct posterior fresh(void)
{
	struct posterior b;

	posterior_init(&b, 0, log(1000), log(4), 0.7);
	return b;
}

static void see(struct posterior *b, double n, double slope, double variance)
{
	posterior_judge(b, &(struct evidence){.x = log(n), .slope = slope, .variance = variance});
}

static double sum(const struct posterior *b)
{
	double all = 0;

	for (int i = 0; i < BELIEF_STEPS; i++)
		all += (double)b->of[i];
	return all;
}

Test(belief, a_flat_latency_says_above_and_a_queue_below)
{
	struct posterior b = fresh();
	double before = posterior_quantile(&b, 0.5);

	for (int i = 0; i < 10; i++)
		see(&b, 30, 0, CLEAR);
	cr_assert_gt(posterior_quantile(&b, 0.02), log(29));
	cr_assert_gt(posterior_quantile(&b, 0.5), before);
	for (int i = 0; i < 20; i++)
		see(&b, 60, 1, CLEAR);
	cr_assert_lt(posterior_quantile(&b, 0.98), log(61));
	cr_assert_gt(posterior_quantile(&b, 0.02), log(25));
	cr_assert_float_eq(sum(&b), 1, 1e-4);
}

Test(belief, noise_says_little)
{
	struct posterior clear = fresh(), noisy = fresh();

	see(&clear, 100, 1, CLEAR);
	see(&noisy, 100, 1, 100);
	cr_assert_lt(posterior_quantile(&clear, 0.5), posterior_quantile(&noisy, 0.5));
}

Test(belief, learns_anew_when_the_knee_has_moved)
{
	struct posterior b = fresh();

	for (int i = 0; i < 1000; i++) {
		posterior_loosen(&b, log(20), 0.0003);
		see(&b, 20, i % 2 ? 0.5 : 0.9, CLEAR);
	}
	cr_assert(posterior_quantile(&b, 0.5) > log(15) && posterior_quantile(&b, 0.5) < log(27));
	for (int i = 0; i < 20; i++) {
		posterior_loosen(&b, log(20), 0.0003);
		see(&b, 20, 0, CLEAR);
	}
	cr_assert_gt(posterior_quantile(&b, 0.2), log(20));
}

Test(belief, stays_between_its_bounds)
{
	struct posterior b;

	posterior_init(&b, log(10), log(50), log(10), 0.7);
	for (int i = 0; i < 50; i++)
		see(&b, 1000, 1, CLEAR);
	cr_assert_geq(posterior_quantile(&b, 0.01), log(10) - BELIEF_STEP);
	for (int i = 0; i < 50; i++)
		see(&b, 1000, 0, CLEAR);
	cr_assert_leq(posterior_quantile(&b, 0.99), log(50) + BELIEF_STEP);
}

Test(belief, a_forged_one_is_none)
{
	struct posterior b = fresh();

	b.of[3] = NAN;
	see(&b, 10, 0.5, CLEAR);
	cr_assert_float_eq(sum(&b), 1, 1e-4);
	b.of[3] = -1;
	b.least = b.most = UINT32_MAX;
	posterior_loosen(&b, 1, 0.1);
	cr_assert_float_eq(sum(&b), 1, 1e-4);
}

Test(swings, the_time_alone_says_which_way)
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

Test(swings, a_pair_with_both_arms_shows_the_slope_between_them)
{
	struct arms a = {.pair = 0};
	struct contrast c;
	struct dither s = {.pair = 1, .direction = 1};

	cr_assert_not(arms_add(&a, &s, 10, 2, 7, &c));
	cr_assert_not(arms_add(&a, &s, 10, 4, 7, &c));
	s.direction = -1;
	cr_assert_not(arms_add(&a, &s, 20, 1, 5, &c));
	s.pair = 2;
	cr_assert(arms_add(&a, &s, 20, 1, 5, &c));
	cr_assert_float_eq(c.x, 2, 1e-9);
	cr_assert_float_eq(c.xy / c.xx, 1, 1e-9);
	cr_assert_float_eq(c.xx, 4 * 10, 1e-9);
	s.pair = 3;
	cr_assert_not(arms_add(&a, &s, 20, 1, 5, &c), "one arm only");
}
