/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_others.c - how far all calls follow the latency of samples.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/others.h"

#define MS 1e6

/* What is known after windows of one sample of 10 ms, each with others that took `time` ms. */
static struct others after(int windows, uint32_t others, double time)
{
	const struct weir_window w = {
		.count = 1, .rtt = 10 * MS, .others = others, .others_time = others * time * MS};
	struct others o = {0};

	for (int i = 0; i < windows; i++)
		others_update(&o, &w);
	return o;
}

static double part_after(int windows, uint32_t others, double time)
{
	const struct others o = after(windows, others, time);

	return others_part(&o);
}

static double ending_after(uint32_t others, double time)
{
	const struct others o = after(1000, others, time);

	return others_ending(&o);
}

Test(others, scales_nothing_where_all_calls_are_samples)
{
	cr_expect_eq(part_after(1000, 0, 0), 1);
}

/* Half of the calls take ten times as long: the mean of 1 / R is 0.55 of that of samples. */
Test(others, scales_by_the_mean_of_the_inverse_latency)
{
	cr_expect_float_eq(part_after(1000, 1, 100), 0.55, 1e-4);
	cr_expect_float_eq(part_after(1000, 9, 100), 0.19, 1e-4);
}

Test(others, scales_nothing_where_the_others_are_shorter)
{
	cr_expect_eq(part_after(1000, 9, 1), 1);
	cr_expect_eq(part_after(1000, 9, 10), 1);
}

/* The first mean is not pulled towards zero. */
Test(others, knows_the_part_from_the_first_window_on)
{
	cr_expect_float_eq(part_after(1, 9, 100), 0.19, 1e-4);
	cr_expect_float_eq(part_after(20, 9, 100), 0.19, 1e-4);
}

/* Nine of ten calls take ten times as long: the mean latency is 9.1 times that of samples. */
Test(others, knows_how_many_calls_end_in_the_time_of_a_sample)
{
	cr_expect_float_eq(ending_after(9, 100), 1 / 9.1, 1e-4);
	cr_expect_float_eq(ending_after(1, 100), 1 / 5.5, 1e-4);
	cr_expect_eq(ending_after(9, 10), 1);
	cr_expect_eq(ending_after(9, 1), 1);
	cr_expect_eq(ending_after(0, 0), 1);
}

/* Callers of nine calls cancel after that time, beside each sample of 10 ms: ln of all over those in flight. */
static double abandoned_after(double time, double rtt)
{
	const struct weir_window w = {.count = 1,
				      .rtt = 10 * MS,
				      .cancelled = 9,
				      .others = 9,
				      .others_time = 9 * time * MS};
	struct others o = {0};

	for (int i = 0; i < 1000; i++)
		others_update(&o, &w);
	return others_abandoned(&o, rtt * MS);
}

/* By Little's law: the nine are at the server for 10 / e ms, and in flight for one. */
Test(others, counts_cancelled_calls_that_a_server_may_go_on_with)
{
	cr_expect_float_eq(abandoned_after(1, 10), log((10 + 9 * 10 / exp(1)) / (10 + 9)), 1e-4);
	cr_expect_float_eq(abandoned_after(1, 1e6), log(1 + 9 / exp(1)), 1e-4);
}

Test(others, counts_none_that_are_cancelled_late)
{
	const struct others uncancelled = after(1000, 9, 1);

	cr_expect_eq(abandoned_after(4, 10), 0);
	cr_expect_gt(abandoned_after(4, 20), 0);
	cr_expect_eq(others_abandoned(&uncancelled, 10 * MS), 0);
}

/* Of twelve calls, three are samples and six are cancelled. */
Test(others, knows_how_many_calls_are_cancelled)
{
	const struct weir_window w = {
		.count = 1, .rtt = 10 * MS, .cancelled = 2, .others = 3, .others_time = 3 * MS};
	struct others o = {0};

	cr_expect_eq(others_cancelled(&o), 0);
	for (int i = 0; i < 1000; i++)
		others_update(&o, &w);
	cr_expect_float_eq(others_cancelled(&o), 0.5, 1e-6);
}

Test(others, learns_nothing_without_a_sample)
{
	const struct weir_window w = {.others = 3, .others_time = 30 * MS};
	struct others o = {0};

	for (int i = 0; i < 100; i++)
		others_update(&o, &w);
	cr_expect_eq(others_part(&o), 1);
	cr_expect_eq(o.seen, 0);
}

/* Cancelled calls may come in windows of their own. */
Test(others, counts_calls_between_two_samples)
{
	const struct weir_window sample = {.count = 1, .rtt = 10 * MS};
	const struct weir_window other = {.others = 1, .others_time = 100 * MS};
	struct others o = {0};

	for (int i = 0; i < 30; i++) {
		for (int j = 0; j < 9; j++)
			others_update(&o, &other);
		others_update(&o, &sample);
	}
	cr_expect_float_eq(o.number, 9, 1e-4);
	cr_expect_float_eq(others_part(&o), 0.19, 1e-4);
}

/* Fifty windows: after as many again, two thirds of a change are in. */
Test(others, follows_a_change)
{
	const struct weir_window before = {.count = 1, .rtt = 10 * MS};
	const struct weir_window after = {
		.count = 1, .rtt = 10 * MS, .others = 1, .others_time = 100 * MS};
	struct others o = {0};

	for (int i = 0; i < 1000; i++)
		others_update(&o, &before);
	for (int i = 0; i < 50; i++)
		others_update(&o, &after);
	cr_expect_float_eq((double)o.number, 1 - exp(-1), 0.01);
}
