/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_ceiling.c - how far room reaches after throughput was lost.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/ceiling.h"
#include "limits/elastic/constants.h"

#define TOP   10 /* the highest knee, in ln n */
#define LEAST 0.001

static struct ceiling ceiling(void)
{
	struct ceiling c;

	ceiling_init(&c, TOP);
	return c;
}

/* Room reaches the ceiling, and the server collapses above that. */
static void collapse(struct ceiling *c, double most)
{
	(void)ceiling_bound(c, 0, TOP);
	ceiling_remember(c, most, LEAST);
}

Test(ceiling, bounds_room_only_where_throughput_was_lost)
{
	struct ceiling c = ceiling();

	cr_expect_eq(ceiling_bound(&c, 2, 5), 5);
	cr_expect(ceiling_lower(&c, 6));
	cr_expect_eq(ceiling_bound(&c, 2, 5), 4);
	cr_expect_eq(ceiling_bound(&c, 2, 3), 3);
	cr_expect_lt(ceiling_bound(&c, 7, 5), 0, "the knee is above it");
}

Test(ceiling, is_lowered_and_never_raised_by_a_loss)
{
	struct ceiling c = ceiling();

	cr_expect(ceiling_lower(&c, 6));
	cr_expect(!ceiling_lower(&c, 6));
	cr_expect(!ceiling_lower(&c, 7));
	cr_expect_eq(c.most, 6);
}

Test(ceiling, rises_in_each_epoch_up_to_the_top)
{
	struct ceiling c = ceiling();

	ceiling_lower(&c, 6);
	ceiling_raise(&c, 2, TOP);
	cr_expect_float_eq(c.most, 6 + LASTING, 1e-5);
	ceiling_raise(&c, 8, TOP);
	cr_expect_float_eq(c.most, 8 + LASTING, 1e-5, "it is above the knee");
	for (int i = 0; i < 1000; i++)
		ceiling_raise(&c, 2, TOP);
	cr_expect_eq(c.most, TOP);
}

Test(ceiling, rises_half_as_fast_each_time_that_room_brings_the_server_down)
{
	struct ceiling c = ceiling();

	collapse(&c, 6);
	cr_expect_eq(c.step, (float)LASTING / 2);
	ceiling_remember(&c, 5, LEAST);
	cr_expect_eq(c.step, (float)LASTING / 2, "room had not reached it again");
	collapse(&c, 4);
	cr_expect_eq(c.step, (float)LASTING / 4);
	for (int i = 1; i < 100; i++)
		collapse(&c, 4 - i / 100.0);
	cr_expect_eq(c.step, (float)LEAST);
	for (int i = 0; i < 10000; i++)
		ceiling_raise(&c, 2, TOP);
	cr_expect_eq(c.step, (float)LASTING, "nothing was lost on the way to the top");
}

/* State can come from a file, or from memory that other processes write. */
Test(ceiling, survives_a_corrupted_state)
{
	const float bad[] = {NAN, INFINITY, -INFINITY};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ceiling c = {.most = bad[i], .step = bad[i], .met = UINT32_MAX};

		(void)ceiling_bound(&c, 2, 5);
		ceiling_remember(&c, 4, LEAST);
		ceiling_raise(&c, 2, TOP);
		cr_expect_leq(c.most, TOP, "%g", (double)bad[i]);
	}
}
