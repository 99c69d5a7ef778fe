/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_level.c - whether latency has jumped in a way that no knee explains.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/constants.h"
#include "limits/elastic/level.h"

/* e calls in flight that took e^5 each, as known from many samples that are all alike. */
static struct level level(void)
{
	return (struct level){.x = 1, .y = 5, .n = 1000};
}

static struct level_epoch epoch(double x, double y)
{
	return (struct level_epoch){.x = x,
				    .y = y,
				    .whole = y,
				    .part = 1,
				    .n = 100,
				    .sigma2 = 0.1,
				    .used = true,
				    .reached = true};
}

Test(level, takes_a_rise_of_latency_alone_for_a_shift)
{
	const struct level v = level();
	struct level_epoch e = epoch(1, 6);

	cr_expect(level_shifted(&v, &e));
	e = epoch(1, 4);
	cr_expect(level_shifted(&v, &e), "faster work is one too");
	e = epoch(1, 5 + BOLD / 2);
	cr_expect(!level_shifted(&v, &e), "too little");
	e = epoch(1, 6);
	e.sigma2 = 10;
	cr_expect(!level_shifted(&v, &e), "that may be chance");
	e = epoch(1, 6);
	e.scatter = 0.1;
	cr_expect(!level_shifted(&v, &e), "epochs differ by as much");
	e = epoch(1, 6);
	e.part = 0.1;
	cr_expect(!level_shifted(&v, &e), "few of all calls follow it");
}

Test(level, takes_latency_that_rises_with_n_for_a_queue_where_the_limit_holds_n)
{
	const struct level v = level();
	struct level_epoch e = epoch(1.5, 9);

	cr_expect(!level_shifted(&v, &e));
	e.used = false;
	cr_expect(level_shifted(&v, &e), "n grew because calls take longer");
	e = epoch(1.5, 5.9);
	e.used = false;
	cr_expect(!level_shifted(&v, &e), "a slope below 2 explains it");
	e = epoch(0.5, 4.1);
	cr_expect(!level_shifted(&v, &e), "and so it does downwards");
}

Test(level, knows_of_no_jump_before_the_first_epoch)
{
	const struct level v = {0};
	const struct level_epoch e = epoch(1, 30);

	cr_expect(!level_shifted(&v, &e));
	cr_expect(!level_collapsed(&v, &e));
	cr_expect(!level_lost(&v, &e));
}

Test(level, sees_a_collapse_where_throughput_falls_while_n_grows)
{
	const struct level v = level();
	struct level_epoch e = epoch(1.1, 6.5);

	cr_expect(level_collapsed(&v, &e));
	e = epoch(1.1, 6);
	cr_expect(!level_collapsed(&v, &e), "less than a factor of e is lost");
	e = epoch(0.9, 6.5);
	cr_expect(!level_collapsed(&v, &e), "n has not grown");
	e = epoch(1.1, 6.5);
	e.reached = false;
	cr_expect(!level_collapsed(&v, &e), "nothing holds n");
	e = epoch(1.1, 6.5);
	e.sigma2 = 0.6;
	cr_expect(!level_collapsed(&v, &e), "four calls may differ by as much");
}

Test(level, counts_lost_throughput_by_latencies_as_they_are)
{
	struct level v = level();
	struct level_epoch e = epoch(1.1, 5);

	cr_expect(!level_lost(&v, &e));
	e.whole = 7;
	cr_expect(level_lost(&v, &e));
	cr_expect(!level_collapsed(&v, &e), "which are too few to show a collapse");
	e.uncertain = 0.3;
	cr_expect(!level_lost(&v, &e), "a few that took very long may be all of it");
	e.uncertain = 0;
	e.whole = 6.5;
	cr_expect(!level_lost(&v, &e), "room may have added as much");
	v.n = 1;
	e.whole = 7;
	e.sigma2 = 1;
	cr_expect(!level_lost(&v, &e), "one sample is no level");
}

Test(level, follows_the_last_ten_epochs_by_their_samples)
{
	struct level v = {0};
	struct level_epoch e = epoch(1, 5);

	level_follow(&v, &e);
	cr_expect_eq(v.x, 1);
	cr_expect_eq(v.y, 5);
	cr_expect_eq(v.n, 100);
	e = epoch(2, 6);
	level_follow(&v, &e);
	cr_expect_float_eq(v.x, 1.5, 1e-9);
	cr_expect_float_eq(v.y, 5.5, 1e-9);
	for (int i = 0; i < 100; i++)
		level_follow(&v, &e);
	cr_expect_float_eq(v.x, 2, 1e-3);
	cr_expect_float_eq(v.n, 1000, 1e-6, "as many as ten such epochs have");
}
