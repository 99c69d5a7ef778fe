/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_use.c - how much of the limit is in use, and how many calls end.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/constants.h"
#include "limits/elastic/use.h"

#define LIMIT 10

/* A call has ended at `end` that took rtt, and leaves as many in flight. */
static struct weir_window ended(weir_time end, double rtt, uint32_t inflight)
{
	return (struct weir_window){
		.end = end, .count = 1, .calls = 1, .rtt = rtt, .inflight_now = inflight};
}

static void add(struct use *u, weir_time end, double rtt, uint32_t inflight)
{
	const struct weir_window w = ended(end, rtt, inflight);

	use_add(u, &w, LIMIT);
}

Test(use, has_the_load_by_the_time_that_calls_were_in_flight)
{
	struct use u = {0};
	double inflight;

	for (int i = 1; i <= 100; i++)
		add(&u, 10 * (weir_time)i, 50, 5);
	inflight = use_begin(&u, LIMIT, 1000);
	cr_expect_float_eq(inflight, 5, 1e-9, "100 calls of 50 in 1000");
	cr_expect_float_eq(u.load, RECENT * 0.5, 1e-6);
	inflight = use_begin(&u, LIMIT, 2000);
	cr_expect_float_eq(inflight, 0, 1e-9, "none has ended since");
	cr_expect_float_eq(u.load, RECENT * (1 - RECENT) * 0.5, 1e-6);
}

Test(use, counts_calls_that_are_no_samples)
{
	struct use u = {0};
	const struct weir_window w = {.end = 500, .others = 4, .others_time = 2000};
	double inflight;

	use_add(&u, &w, LIMIT);
	cr_expect_float_eq(u.ended, 4, 1e-6);
	inflight = use_begin(&u, LIMIT, 1000);
	cr_expect_float_eq(inflight, 2, 1e-9);
}

Test(use, is_full_at_most)
{
	struct use u = {0};

	add(&u, 10, 1e9, LIMIT);
	use_begin(&u, LIMIT, 100);
	cr_expect_float_eq(u.load, RECENT, 1e-6);
}

Test(use, knows_nothing_where_no_time_has_passed)
{
	struct use u = {0};
	double change, inflight;

	add(&u, 0, 10, 1);
	change = use_change(&u, 0);
	inflight = use_begin(&u, LIMIT, 0);
	cr_expect_eq(change, 0);
	cr_expect_lt(inflight, 0);
	cr_expect_eq(u.load, 0);
}

/* An epoch of n calls that end evenly over 1000 ns from `start`, with as many in flight. */
static double epoch(struct use *u, weir_time start, int n, uint32_t inflight)
{
	double change;

	for (int i = 1; i <= n; i++)
		add(u, start + (weir_time)(1000 * i / n), 100, inflight);
	change = use_change(u, (double)start + 1000);
	use_begin(u, LIMIT, (double)start + 1000);
	return change;
}

Test(use, shows_that_fewer_calls_end)
{
	struct use u = {0};
	const double first = epoch(&u, 0, 100, LIMIT), same = epoch(&u, 1000, 100, LIMIT);
	const double fewer = epoch(&u, 2000, 20, LIMIT), more = epoch(&u, 3000, 100, LIMIT);

	cr_expect_eq(first, 0, "nothing to compare with");
	cr_expect_float_eq(same, 0, 0.05);
	cr_expect_float_eq(fewer, log(0.2) + 2 * sqrt(1.0 / 100 + 1.0 / 20), 0.05);
	cr_expect_float_eq(more, log(5), 0.05);
}

/* Two calls after eight may be chance; eight after eight hundred are not. */
Test(use, shows_nothing_where_fewer_calls_may_end_by_chance)
{
	struct use u = {0};
	double change;

	epoch(&u, 0, 8, LIMIT);
	change = epoch(&u, 1000, 2, LIMIT);
	cr_expect_eq(change, 0, "%g", change);
	change = epoch(&u, 2000, 800, LIMIT);
	cr_expect_gt(change, 5, "%g", change);
	change = epoch(&u, 3000, 8, LIMIT);
	cr_expect_lt(change, -3, "%g", change);
}

/* An epoch in which no call ends shows no rate, and the one before it is the one to compare with. */
Test(use, keeps_what_it_compares_with_where_no_call_ends)
{
	struct use u = {0};
	double change;

	epoch(&u, 0, 100, LIMIT);
	change = use_change(&u, 2000);
	use_begin(&u, LIMIT, 2000);
	cr_expect_eq(change, 0);
	change = epoch(&u, 2000, 20, LIMIT);
	cr_expect_float_eq(change, log(0.2) + 2 * sqrt(1.0 / 100 + 1.0 / 20), 0.05);
}

Test(use, counts_only_the_time_in_use_between_two_bunches)
{
	struct use u = {0};
	double change;

	epoch(&u, 0, 100, LIMIT);
	epoch(&u, 1000, 100, LIMIT);
	change = epoch(&u, 2000, 20, LIMIT / 5);
	cr_expect_float_eq(change, 0, 0.2, "few calls end, as few are there: %g", change);
}
