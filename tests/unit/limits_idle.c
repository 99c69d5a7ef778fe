/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_idle.c - how much of its knee a limit leaves idle, for a worker to which calls come at
 * twice the rate that it can serve. The probability of each number in flight is then twice that of
 * the one below (M/M/1/K), and latency is in proportion to what a call finds.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/idle.h"
#include "limits/elastic/posterior.h"

#define EPOCH  1000 /* samples */
#define EPOCHS 400

static struct posterior ramp(void)
{
	struct posterior p;

	posterior_init(&p, 0, log(1000), 0.7);
	return p;
}

/* The sums of an epoch with this limit; share: the part of the queue that is the limiter's own. */
static struct idle_sums sums_of(unsigned limit, double share, double samples, double *y)
{
	const struct posterior p = ramp();
	struct idle_sums sums = {0};
	double all = 0;

	*y = 0;
	for (unsigned n = 1; n <= limit; n++)
		all += exp2(n);
	for (unsigned n = 1; n <= limit; n++) {
		const double weight = samples * exp2(n) / all;
		const double latency = 1e6 * (share * n + (1 - share) * 20);

		*y += weight * cbrt(latency);
		idle_add(&sums, weight, n, cbrt(latency), 1, posterior_rise(&p, 0, log(n)));
	}
	return sums;
}

/* The mean number in flight, with those that find the limit reached. */
static double inflight_of(unsigned limit)
{
	double all = 0, sum = 0;

	for (unsigned n = 0; n <= limit; n++) {
		all += exp2(n);
		sum += n * exp2(n);
	}
	return sum / all;
}

static void run(struct idle *i, unsigned limit, double share, bool bound, int epochs)
{
	struct idle_epoch e = {
		.n = EPOCH, .limit = limit, .sigma2 = 1, .part = 1, .noise = 1, .bound = bound};
	struct idle_sums sums = sums_of(limit, share, EPOCH, &e.y);

	for (int k = 0; k < epochs; k++) {
		idle_inflight(i, inflight_of(limit));
		idle_update(i, &sums, &e);
	}
}

Test(idle, is_the_time_in_which_the_server_has_nothing_to_do)
{
	for (unsigned limit = 1; limit < 8; limit++) {
		struct idle i = {0};
		const double expected = 1 / (exp2(limit + 1) - 1);

		run(&i, limit, 1, true, EPOCHS);
		cr_assert_float_eq((double)i.fraction, expected, expected / 50, "%u: %g, %g", limit,
				   (double)i.fraction, expected);
	}
}

/*
 * Small epochs, whose limit is 1 and 3 in turns: 0.2. What was in flight is a mean over some epochs; were
 * it compared with the limit of the last one alone, it would be 0.06.
 */
Test(idle, is_that_of_the_limits_in_turn)
{
	struct idle i = {0};
	double sum = 0;

	for (int k = 0; k < EPOCHS; k++) {
		const unsigned limit = k % 2 == 0 ? 1 : 3;
		struct idle_epoch e = {
			.n = 8, .limit = limit, .sigma2 = 1, .part = 1, .noise = 1, .bound = true};
		struct idle_sums sums = sums_of(limit, 1, e.n, &e.y);

		idle_inflight(&i, inflight_of(limit));
		idle_update(&i, &sums, &e);
		sum += k < EPOCHS / 2 ? 0 : (double)i.fraction / (EPOCHS / 2);
	}
	cr_assert_float_eq(sum, (1.0 / 3 + 1.0 / 15) / 2, 0.04, "%g", sum);
}

Test(idle, does_not_count_while_the_limit_is_not_reached)
{
	struct idle i = {0};

	run(&i, 2, 1, true, EPOCHS);
	run(&i, 2, 1, false, EPOCHS);
	cr_assert(i.fraction < 1e-6F);
	/* An epoch counts once the next one has reached the limit as well. */
	for (int k = 0; k < EPOCHS; k++) {
		run(&i, 2, 1, true, 2);
		run(&i, 2, 1, false, 1);
	}
	cr_assert(i.fraction < 1e-6F);
	run(&i, 2, 1, true, 3);
	cr_assert(i.fraction > 0.05F);
}

Test(idle, does_not_count_in_company)
{
	struct idle i = {0};

	run(&i, 4, 1, true, EPOCHS);
	cr_assert(i.fraction > 0.03F);
	run(&i, 4, 0.2, true, EPOCHS);
	cr_assert(i.fraction < 1e-6F, "%g", (double)i.fraction);
}

/*
 * A server that divides itself: latency hardly depends on what calls find. The limit is 1 and 2 in
 * turns, and this part of the rise that the knee predicts is in the latency of epochs. Returns the
 * fraction of idle time.
 */
static double idle_with(double part)
{
	struct idle i = {0};
	struct idle_epoch e = {
		.n = EPOCH, .limit = 2, .sigma2 = 1, .part = 1, .noise = 0.01, .bound = true};
	struct idle_sums sums = sums_of(2, 0.2, EPOCH, &e.y);

	for (int k = 0; k < EPOCHS; k++) {
		idle_inflight(&i, inflight_of(2));
		e.rounding = k % 2 == 0 ? -0.4 : 0.3;
		e.rise = k % 2 == 0 ? -0.2 : 0.2;
		e.above = part * e.rise;
		idle_update(&i, &sums, &e);
	}
	return (double)i.fraction;
}

Test(idle, counts_where_latency_follows_the_rounding_of_the_limit)
{
	cr_assert_gt(idle_with(1), 0.1);
	cr_assert_eq(idle_with(0.33), 0);
	cr_assert_eq(idle_with(0), 0);
}

/* Epochs that were not rounded show nothing of company, however long they last. */
Test(idle, remembers_what_the_rounding_showed_while_there_is_none)
{
	struct idle i = {0};
	struct idle_epoch e = {
		.n = EPOCH, .limit = 2, .sigma2 = 1, .part = 1, .noise = 0.01, .bound = true};
	struct idle_sums sums = sums_of(2, 0.2, EPOCH, &e.y);

	for (int k = 0; k < 2 * EPOCHS; k++) {
		const double turn = k % 2 == 0 ? -1 : 1;

		idle_inflight(&i, inflight_of(2));
		e.rounding = k < EPOCHS ? 0.3 * turn : 0;
		e.rise = e.above = 0.2 * turn;
		idle_update(&i, &sums, &e);
	}
	cr_assert_gt((double)i.fraction, 0.1);
}

Test(idle, rises_as_the_slopes_of_a_knee_do)
{
	const struct posterior p = ramp();

	for (double x = -1; x < 3; x += 0.01) {
		const double slope = (posterior_rise(&p, 1, x + 1e-6) - posterior_rise(&p, 1, x)) /
				     1e-6;

		cr_assert_float_eq(slope, fmin(fmax((double)p.slope + (x - 1) * 1.5, 0), 1), 1e-4);
	}
}
