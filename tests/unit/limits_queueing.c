/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_queueing.c - how much of a slope of the mean of cube roots is one of the mean latency: calls
 * of exponential work that all wait for the same time, or that all slow down by the same factor.
 */
#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "limits/elastic/queueing.h"

#define CALLS  50 /* samples of an epoch */
#define HEIGHT 0.1

struct service {
	double wait; /* of all calls alike, in units of the work; it grows by ten times as much as n */
	double factor; /* power of n by which all latency grows */
	double work;   /* 0: exponential; else constant */
	unsigned short seed[3];
};

struct means {
	double y, evenness;
};

static struct means epoch_of(struct service *s, double wait, double factor)
{
	double root = 0, square = 0;

	for (int i = 0; i < CALLS; i++) {
		const double work = s->work > 0 ? s->work : -log(1 - erand48(s->seed));
		const double r = cbrt(factor * (work + wait));

		root += r / CALLS;
		square += r * r / CALLS;
	}
	return (struct means){3 * log(root), queueing_evenness(root, square)};
}

/* The part after probes of HEIGHT up and down around a limit, between which the service changes. */
static double part_after(struct service s, int epochs)
{
	struct queueing q = {0};
	double mean = epoch_of(&s, s.wait, 1).y;

	for (int i = 0; i < epochs; i++) {
		const double x = i % 2 == 0 ? -HEIGHT : HEIGHT;
		const struct means is = epoch_of(&s, s.wait * (1 + 10 * x), exp(x * s.factor));
		const struct queueing_epoch e = {.limit = log(30) + x,
						 .evenness = is.evenness,
						 .above = is.y - mean,
						 .n = CALLS,
						 .variance = 1.2};

		if (i > 0)
			queueing_learn(&q, &e);
		queueing_follow(&q, &e, i > 0 ? 0.1 : 1);
		mean += 0.1 * (is.y - mean);
	}
	return queueing_part(&q);
}

/* Cube roots of exponential latencies have the mean gamma(4/3), and their squares gamma(5/3). */
Test(queueing, knows_how_even_latencies_are)
{
	cr_expect_eq(queueing_evenness(2, 4), 0);
	cr_expect_float_eq(queueing_evenness(tgamma(4 / 3.), tgamma(5 / 3.)), -0.1858, 1e-3);
	cr_expect_eq(queueing_evenness(2, 3.9), 0, "rounding may leave less than none");
}

Test(queueing, takes_all_of_a_slope_at_first)
{
	const struct queueing q = {0};

	cr_expect_eq(queueing_part(&q), 1);
}

/* In a short queue the mean of cube roots of exponential work rises three times as steeply. */
Test(queueing, takes_less_of_the_slope_in_a_queue)
{
	const double part = part_after((struct service){.wait = 0.2}, 1000);

	cr_expect_lt(part, 0.85, "%g", part);
	cr_expect_geq(part, 1 / 3., "%g", part);
}

/* In a queue that lasts far longer than a call, both means rise alike. */
Test(queueing, takes_all_of_the_slope_in_a_long_queue)
{
	const double part = part_after((struct service){.wait = 30}, 1000);

	cr_expect_gt(part, 0.95, "%g", part);
}

Test(queueing, takes_all_of_the_slope_where_a_server_divides_itself)
{
	const double part = part_after((struct service){.factor = 1}, 1000);

	cr_expect_gt(part, 0.9, "%g", part);
}

/* A wait is the same part of each call. */
Test(queueing, takes_all_of_the_slope_where_work_is_constant)
{
	const double part = part_after((struct service){.wait = 0.2, .work = 1}, 1000);

	cr_expect_float_eq(part, 1, 1e-6, "%g", part);
}

/* Whatever chance shows, no queue makes the two means differ by more than the spread allows. */
Test(queueing, takes_no_less_than_a_queue_explains)
{
	struct queueing q = {.evenness = -0.1F, .evened = 100, .risen = 1};

	cr_expect_float_eq(queueing_part(&q), exp(-0.2), 1e-6);
	q.risen = -5;
	cr_expect_float_eq(queueing_part(&q), exp(-0.2), 1e-6);
	q.evened = -100;
	cr_expect_eq(queueing_part(&q), 1);
}
