/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_means.c - what an epoch shows, and the evidence that it adds.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/constants.h"
#include "limits/elastic/means.h"

/* An epoch of samples that found 4 to 8 calls in flight, and took time by a power of that. */
static struct line line(double slope, double part)
{
	struct epoch e = {.limit = 8};

	for (int n = 4; n <= 8; n++) {
		const double y = cbrt(1000 * pow(n, slope));

		epoch_add(&e, 10, log(n), y);
		e.whole += (float)(10 * y);
		e.wholes += (float)(10 * y * y);
	}
	return epoch_line(&e, part);
}

static struct line at(double x, double y)
{
	return (struct line){.n = 100, .x = x, .y = y, .variance = 0.1, .part = 1};
}

static struct means means(double x, double y)
{
	const struct line l = at(x, y);
	struct means m = {.sigma2 = 0.1};

	means_set(&m, &l);
	return m;
}

Test(epoch, shows_how_latency_depends_on_n)
{
	const struct line flat = line(0, 1), queue = line(1, 1), part = line(1, 0.5);

	cr_expect_eq(flat.n, 50);
	cr_expect_float_eq(flat.y, log(1000), 1e-9);
	cr_expect_float_eq(flat.xy / flat.xx, 0, 1e-9);
	cr_expect_float_eq(queue.xy / queue.xx, 1, 0.02);
	cr_expect_float_eq(part.xy / part.xx, 0.5, 0.01, "half of all calls follow it");
	cr_expect_float_eq(queue.x, (log(4) + log(5) + log(6) + log(7) + log(8)) / 5, 1e-9);
	cr_expect_float_eq(queue.whole, queue.y, 1e-6);
	cr_expect_lt(flat.uncertain, 1e-6);
	cr_expect_lt(queue.variance, 1e-3);
}

Test(epoch, has_a_line_where_all_calls_found_the_same)
{
	struct epoch e = {.limit = 8};
	struct line l;
	struct evidence seen;

	epoch_add(&e, 10, log(8), cbrt(1000));
	e.whole = (float)(10 * cbrt(1000));
	e.wholes = (float)(10 * cbrt(1000) * cbrt(1000));
	l = epoch_line(&e, 1);
	seen = means_within(&l, 1);
	cr_expect_float_eq(l.xx, 0, 1e-9);
	cr_expect(isfinite(seen.change));
	cr_expect_gt(seen.variance, 1e6, "which shows nothing");
}

/* Eight calls, of which one takes a thousand times as long as the others. */
Test(epoch, does_not_know_a_mean_that_one_call_decides)
{
	struct epoch e = {.limit = 8, .whole = 17, .wholes = 107};
	struct line l;

	epoch_add(&e, 8, log(8), 1);
	l = epoch_line(&e, 1);
	cr_expect_float_eq(l.whole, 3 * log(17 / 8.0), 1e-6);
	cr_expect_float_eq(sqrt(l.uncertain), 1.59, 0.01, "of 2.26");
}

Test(means, are_those_of_the_first_epoch)
{
	const struct means m = means(1, 5);

	cr_expect_eq(m.x, 1);
	cr_expect_eq(m.y, 5);
	cr_expect_float_eq(m.usual, exp(5), 1e-9);
	cr_expect_eq(m.n, 100);
	cr_expect_eq(m.xx, 0);
}

Test(means, follow_sooner_where_n_is_far_away)
{
	struct means m = means(1, 5);
	struct line l = at(1.1, 6);

	means_follow(&m, &l);
	cr_expect_float_eq(m.y, 5 + SLOW + 0.01, 1e-9);
	cr_expect_gt(m.xx, 0);
	cr_expect_gt(m.n, 100, "they are known from more samples");
	m = means(1, 5);
	l = at(3, 6);
	means_follow(&m, &l);
	cr_expect_float_eq(m.y, 6, 1e-9);
	cr_expect_float_eq(m.n, 100, 1e-9);
}

Test(means, have_a_variance_that_falls_more_slowly_than_it_rises)
{
	struct means m = means(1, 5);
	struct line l = at(1, 5);

	l.variance = 1.1;
	means_vary(&m, &l);
	cr_expect_float_eq(m.sigma2, 0.1 + QUICK, 1e-9);
	m.sigma2 = 1.1;
	l.variance = 0.1;
	means_vary(&m, &l);
	cr_expect_float_eq(m.sigma2, 1.1 - SLOW, 1e-9);
}

Test(means, count_the_scatter_of_epochs_that_no_slope_explains)
{
	struct means m = means(1, 5);
	struct line l = at(1.1, 5.1);

	means_vary(&m, &l);
	cr_expect_eq(m.scatter, 0, "a slope of 1 explains it");
	l = at(1, 5.5);
	means_vary(&m, &l);
	cr_expect_float_eq(m.scatter, SLOW * 0.25, 1e-9);
	cr_expect_float_eq(means_variance(&m, 100), 100 * m.scatter, 1e-9);
	cr_expect_eq(means_variance(&m, 1), m.sigma2);
}

Test(means, show_a_slope_within_an_epoch_and_a_change_to_it)
{
	const struct line l = line(1, 1);
	const struct means m = means(l.x - 0.5, l.y - 0.25);
	const struct evidence within = means_within(&l, 1), between = means_between(&m, &l, 1);

	cr_expect_float_eq(within.to - within.from, POSTERIOR_STEP, 1e-9);
	cr_expect_float_eq(within.change, POSTERIOR_STEP, 0.01);
	cr_expect_float_eq(between.to - between.from, 0.5, 1e-9);
	cr_expect_float_eq(between.change, 0.25 * queueing_part(&m.queueing), 1e-9);
	cr_expect_float_eq(between.variance,
			   pow(queueing_part(&m.queueing), 2) * (1 / 50.0 + 1 / 100.0), 1e-9);
}

Test(means, show_what_a_probe_pair_changed)
{
	const struct means m = means(1, 5);
	const struct line l = at(1, 5);
	const struct contrast c = {.down = 0.9, .up = 1.1, .rise = 0.2, .n = 40};
	const struct evidence seen = means_probed(&m, &c, &l, 2);

	cr_expect_eq(seen.from, 0.9);
	cr_expect_eq(seen.to, 1.1);
	cr_expect_float_eq(seen.change, 0.2 * queueing_part(&m.queueing), 1e-9);
	cr_expect_float_eq(seen.variance, pow(queueing_part(&m.queueing), 2) * 2 / 40, 1e-9);
}
