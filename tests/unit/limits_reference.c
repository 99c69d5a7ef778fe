/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_reference.c - whether throughput has grown with n since the reference point.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/reference.h"

#define TARGET 0.25

/* An epoch with n calls in flight that take so long. Latencies hardly vary, and the limit is reached. */
static struct reference_epoch epoch(double n, double latency)
{
	return (struct reference_epoch){
		.x = log(n),
		.y = log(latency),
		.part = 1,
		.n = 1000,
		.sigma2 = 1e-3,
		.target = TARGET,
		.stride = 1,
		.used = true,
	};
}

/* The point at which 100 calls take 1 second. */
static struct reference reference(void)
{
	return (struct reference){.x = log(100), .y = 0, .n = 1000};
}

static struct growth check(struct reference *r, double n, double latency)
{
	const struct reference_epoch e = epoch(n, latency);

	return reference_check(r, &e);
}

Test(reference, follows_growth_of_throughput_at_once)
{
	struct reference r = reference();
	const struct growth g = check(&r, 200, 1);

	cr_expect_float_eq(g.x, log(2), 1e-9);
	cr_expect_float_eq(g.y, 0, 1e-9);
	cr_expect_eq(g.lacks, 0);
	cr_expect_float_eq(r.x, log(200), 1e-9);
}

/* Twice as many calls take twice as long: throughput lacks the target's part of the growth. */
Test(reference, stays_where_throughput_last_grew)
{
	struct reference r = reference();

	for (int i = 0; i < 100; i++)
		cr_assert_float_eq(check(&r, 200, 2).lacks, TARGET * log(2), 0.01);
	cr_expect_eq(r.x, log(100));
}

Test(reference, takes_chance_for_no_loss)
{
	struct reference r = reference();
	struct reference_epoch e = epoch(130, 1.3);

	e.sigma2 = 10;
	cr_expect_eq(reference_check(&r, &e).lacks, 0);
	cr_expect_eq(check(&r, 101, 1.01).lacks, 0, "the growth is smaller than a step");
}

/* Calls take twice as long without more of them: the work has become longer, or others have come. */
Test(reference, does_not_blame_growth_that_is_none)
{
	struct reference r = reference();

	cr_expect_eq(check(&r, 100, 2).lacks, 0);
	cr_expect_eq(check(&r, 50, 2).lacks, 0);
}

/* Epochs until the point has followed half of the way, in ln n. */
static int epochs_to_follow(double n, double latency)
{
	struct reference r = reference();
	int epochs = 0;

	while (fabs(r.x - log(100)) < fabs(log(n) - log(100)) / 2) {
		cr_assert_lt(epochs, 1000);
		check(&r, n, latency);
		epochs++;
	}
	return epochs;
}

/* n has halved. Latency has too, as in a queue of the limiter alone, or has not. */
Test(reference, follows_n_down_slowly)
{
	cr_expect_eq(epochs_to_follow(50, 0.5), 7);
	cr_expect_eq(epochs_to_follow(50, 1), 35, "others may have built the queue");
	cr_expect_eq(epochs_to_follow(50, 10), 7, "more than others add at once");
}

Test(reference, follows_at_once_where_the_limit_is_not_used)
{
	struct reference r = reference();
	struct reference_epoch e = epoch(200, 2);

	e.used = false;
	e.unused = true;
	(void)reference_check(&r, &e);
	cr_expect_float_eq(r.x, log(200), 1e-9);
	cr_expect_float_eq(r.y, log(2), 1e-9);
}
