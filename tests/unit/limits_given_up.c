/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_given_up.c - which permits are held back for calls that were lost.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "limits/elastic/given_up.h"
#include "limits/elastic/constants.h"

#define MOST 20  /* permits that can be held back */
#define RTT  1e6 /* mean latency of samples */

/* All were admitted at the same time. */
static const struct weir_window served = {.end = 5000000, .count = 1, .rtt = 1e6};
static const struct weir_window timed_out = {
	.end = 5000000, .count = 1, .timed_out = 1, .rtt = 1e6};
static const struct weir_window dropped = {.dropped = 1};
static const struct weir_window ignored = {.others = 1, .others_time = 1e6};
static const struct weir_window cancelled = {.others = 1, .cancelled = 1, .others_time = 1e6};

static void feed(struct given_up *g, const struct weir_window *w, int times)
{
	for (int i = 0; i < times; i++)
		given_up_update(g, w, MOST, RTT);
}

Test(given_up, holds_a_permit_for_each_timeout_until_a_call_is_served)
{
	struct given_up g = {0};

	feed(&g, &timed_out, 5);
	cr_expect_eq(g.held, 5);
	feed(&g, &served, 2);
	cr_expect_eq(g.held, 3);
	feed(&g, &served, 9);
	cr_expect_eq(g.held, 0);
	feed(&g, &timed_out, 1);
	cr_expect_eq(g.held, 1, "calls that were served earlier do not count");
}

Test(given_up, holds_at_most_what_it_may)
{
	struct given_up g = {0};

	feed(&g, &timed_out, 1000);
	cr_expect_eq(g.held, MOST);
	given_up_update(&g, &timed_out, 0, RTT);
	cr_expect_eq(g.held, 0);
}

/* A sample of a served call stands for four: as many permits come back. */
Test(given_up, counts_the_calls_that_a_sample_stands_for)
{
	const struct weir_window of_four = {.count = 1, .calls = 4, .rtt = 1e6};
	struct given_up g = {0};

	feed(&g, &timed_out, 10);
	feed(&g, &of_four, 2);
	cr_expect_eq(g.held, 2);
}

Test(given_up, ignores_drops_beside_calls_that_are_served)
{
	struct given_up g = {0};

	for (int i = 0; i < 100; i++) {
		feed(&g, &dropped, MOST);
		cr_assert_eq(g.held, 0);
		feed(&g, &served, 1);
	}
}

Test(given_up, holds_permits_when_all_calls_are_dropped)
{
	struct given_up g = {0};

	feed(&g, &dropped, MOST);
	cr_expect_eq(g.held, 0);
	feed(&g, &dropped, MOST);
	cr_expect_eq(g.held, MOST);
}

/* They were in flight for as long as calls that are served: the server took them. */
Test(given_up, returns_permits_for_calls_that_are_no_samples)
{
	struct given_up g = {0};

	feed(&g, &timed_out, 5);
	feed(&g, &ignored, 3);
	cr_expect_eq(g.held, 2);
	cr_expect_eq(g.row, 2);
	feed(&g, &ignored, 9);
	cr_expect_eq(g.row, 0);
}

/* Bad requests do not show that the server takes calls: a row of lost ones goes on. */
Test(given_up, returns_few_permits_for_calls_that_end_at_once)
{
	const struct weir_window bad = {.others = 1, .others_time = RTT / 1000};
	struct given_up g = {0};

	feed(&g, &timed_out, 5);
	feed(&g, &bad, 100);
	cr_expect_float_eq(g.held, 4.9, 1e-9);
	cr_expect_float_eq(g.row, 4.9, 1e-9);
}

/* Nine of ten samples are timeouts, so a sample takes ten times as long as a call that is served. */
Test(given_up, compares_calls_that_are_no_samples_with_those_that_are_served)
{
	const struct weir_window quick = {.count = 1, .rtt = RTT / 10};
	const struct weir_window alike = {.others = 1, .others_time = RTT / 10};
	struct given_up g = {0};

	feed(&g, &quick, 1);
	for (int i = 0; i < 100; i++) {
		feed(&g, &timed_out, 9);
		feed(&g, &alike, 9);
		cr_assert_eq(g.held, 0);
		cr_assert_eq(g.row, 0);
	}
}

/* One of two calls times out. Sixteen in a row are no chance: the server serves none any more. */
Test(given_up, returns_no_permits_once_no_call_is_served)
{
	struct given_up g = {0};

	for (int i = 0; i < FEW; i++) {
		feed(&g, &timed_out, 1);
		feed(&g, &served, 1);
	}
	cr_expect_eq(g.usual, 1);
	for (int i = 1; i < 2 * FEW; i++) {
		feed(&g, &timed_out, 1);
		feed(&g, &ignored, 1);
		cr_assert_eq(g.held, 0, "%d in a row may be chance", i);
	}
	feed(&g, &timed_out, 3);
	feed(&g, &ignored, 100);
	cr_expect_eq(g.held, 3);
	cr_expect_eq(g.row, 3);
	feed(&g, &served, 1);
	feed(&g, &ignored, 1);
	cr_expect_eq(g.held, 1, "a call was served");
}

/* What is usual is not known yet, and timeouts may be most of it. */
Test(given_up, returns_permits_until_some_calls_were_served)
{
	struct given_up g = {0};

	feed(&g, &served, FEW - 1);
	for (int i = 0; i < 100; i++) {
		feed(&g, &timed_out, 1);
		feed(&g, &ignored, 1);
		cr_assert_eq(g.held, 0);
	}
}

#define ADMITTED 4900000 /* when the calls that are served quickly were admitted */

/* As many calls as are needed to know how long they take: a tenth of the timeout. */
static void serve_quickly(struct given_up *g, int calls)
{
	const struct weir_window quick = {.end = ADMITTED + 100000, .count = 1, .rtt = RTT / 10};

	feed(g, &quick, calls);
}

/* A call was admitted at that time and timed out. */
static struct weir_window late_since(weir_time admitted)
{
	return (struct weir_window){
		.end = admitted + 1000000, .count = 1, .timed_out = 1, .rtt = 1e6};
}

/* Where no more calls come, those that are left are the ones that take longest. */
Test(given_up, takes_no_call_for_lost_that_was_admitted_before_one_was_served)
{
	const struct weir_window before = late_since(ADMITTED - 1), same = late_since(ADMITTED);
	struct given_up g = {0};

	serve_quickly(&g, 50);
	feed(&g, &before, 9);
	cr_expect_eq(g.row, 0);
	cr_expect_eq(g.held, 9, "the server may still work on them");
	feed(&g, &same, 2);
	cr_expect_eq(g.row, 2);
	feed(&g, &before, 9);
	cr_expect_eq(g.row, 2, "nor does it end the row");
}

/* The latest that was admitted counts, not the last that ended. */
Test(given_up, knows_when_the_latest_of_the_calls_that_were_served_was_admitted)
{
	const struct weir_window before = late_since(ADMITTED - 1);
	struct weir_window slow = before;
	struct given_up g = {0};

	slow.timed_out = 0;
	serve_quickly(&g, 50);
	feed(&g, &slow, 1);
	feed(&g, &before, 1);
	cr_expect_eq(g.row, 0);
}

/* Calls that wait in one queue are not always served in order. */
Test(given_up, takes_calls_for_lost_where_others_take_nearly_as_long)
{
	const struct weir_window before = late_since(ADMITTED - 1000000);
	const struct weir_window often = {.end = 5000000, .count = 1, .rtt = RTT / 7};
	struct given_up g = {0};

	feed(&g, &often, 50);
	feed(&g, &before, 3);
	cr_expect_eq(g.row, 3);
}

/* Fewer may all have been short ones. */
Test(given_up, takes_calls_for_lost_while_it_has_seen_few)
{
	const struct weir_window before = late_since(ADMITTED - 1);
	struct given_up g = {0};

	serve_quickly(&g, 49);
	feed(&g, &before, 3);
	cr_expect_eq(g.row, 3);
}

/* A saved state may come from a machine whose clock was ahead. */
Test(given_up, takes_calls_for_lost_after_its_clock_went_back)
{
	const struct weir_window back = late_since(3000000 - 1);
	const struct weir_window quick = {.end = 4000000, .count = 1, .rtt = RTT / 10};
	const struct weir_window before = late_since(3900000 - 1);
	struct given_up g = {0};

	serve_quickly(&g, 50);
	feed(&g, &back, 2);
	cr_expect_eq(g.row, 2);
	feed(&g, &quick, 1);
	feed(&g, &before, 2);
	cr_expect_eq(g.row, 0, "the clock is the new one since a call was served");
}

/* Of many calls that time out, the latency of some is not known. */
Test(given_up, learns_when_calls_time_out)
{
	const struct weir_window unknown = {.timed_out = 1};
	const struct weir_window longer = {.count = 1, .timed_out = 1, .rtt = 2e6};
	struct given_up g = {0};

	feed(&g, &unknown, 1);
	cr_expect_eq(g.timeout, 0);
	feed(&g, &timed_out, 1);
	cr_expect_eq(g.timeout, 1e6F);
	feed(&g, &unknown, 100);
	cr_expect_eq(g.timeout, 1e6F);
	feed(&g, &longer, 100);
	cr_expect_float_eq(g.timeout, 2e6F, 1);
}

/* Their callers gave them up too. */
Test(given_up, returns_no_permits_for_cancelled_calls)
{
	const struct weir_window mixed = {.others = 4, .cancelled = 2, .others_time = 4 * RTT};
	struct given_up g = {0};

	feed(&g, &timed_out, 3);
	feed(&g, &cancelled, 2);
	cr_expect_eq(g.held, 3);
	feed(&g, &mixed, 1);
	cr_expect_eq(g.held, 1);
}

Test(given_up, holds_permits_when_calls_are_only_cancelled)
{
	struct given_up g = {0};

	feed(&g, &cancelled, FEW - 1);
	cr_expect_eq(g.held, 0);
	feed(&g, &cancelled, 3);
	cr_expect_eq(g.held, 3);
	cr_expect_eq(g.row, 3);
	feed(&g, &served, 2);
	cr_expect_eq(g.held, 1);
	feed(&g, &cancelled, FEW - 1);
	cr_expect_eq(g.held, 1, "those before one was served do not count");
}

/* The mean is known from the first call on. Nine of ten: eighty in a row are no chance. */
Test(given_up, learns_how_many_calls_are_usually_cancelled)
{
	struct given_up g = {0};

	feed(&g, &cancelled, 9);
	feed(&g, &served, 1);
	cr_expect_eq(g.usual, 9);
	g.held = 0;
	for (int i = 0; i < 100; i++) {
		feed(&g, &cancelled, 9);
		feed(&g, &served, 1);
		cr_assert_eq(g.held, 0);
	}
	feed(&g, &cancelled, FEW * 10 - 1);
	cr_expect_eq(g.held, 0);
	feed(&g, &cancelled, 1);
	cr_expect_eq(g.held, 1);
	feed(&g, &served, 400);
	cr_expect_lt(g.usual, 0.1);
}

/* It says nothing about how long the server takes. */
Test(given_up, begins_no_pause_when_a_call_is_cancelled)
{
	struct given_up g = {0};

	feed(&g, &cancelled, 1000);
	cr_expect_eq(g.held, MOST);
	cr_expect(!given_up_pause(&g, &cancelled, MOST, MOST, 2, RTT));
	cr_expect(given_up_pause(&g, &timed_out, MOST, MOST, 2, RTT));
}

#define LONGEST 4 /* pause, in times that a call took */
#define TIMEOUT 5e6

/* A call times out at that time, after TIMEOUT. Returns whether a pause begins. */
static bool time_out(struct given_up *g, double now, double limit)
{
	const struct weir_window w = {
		.end = (weir_time)now, .count = 1, .timed_out = 1, .rtt = TIMEOUT};

	given_up_update(g, &w, limit - 1, RTT);
	return given_up_pause(g, &w, limit, limit - 1, LONGEST, RTT);
}

Test(given_up, pauses_when_as_many_calls_as_the_limit_were_lost_in_a_row)
{
	struct given_up g = {0};

	for (int i = 1; i < 8; i++)
		cr_expect(!time_out(&g, 1e9, 8), "%d", i);
	cr_expect_eq(given_up_pause_left(&g, (weir_time)1e9), 0);
	cr_expect(time_out(&g, 1e9, 8));
	cr_expect_eq(given_up_pause_left(&g, (weir_time)1e9), TIMEOUT);
	cr_expect_eq(given_up_pause_left(&g, (weir_time)(1e9 + TIMEOUT - 1)), 1);
	cr_expect_eq(given_up_pause_left(&g, (weir_time)(1e9 + TIMEOUT)), 0);
}

/* A test that is cancelled has given the server one call more, and shown nothing. */
Test(given_up, begins_the_pause_anew_when_its_test_is_cancelled)
{
	struct weir_window test = cancelled;
	struct given_up g = {0};
	double now = 1e9;

	cr_assert(time_out(&g, now, 1));
	test.end = (weir_time)(now + TIMEOUT / 2);
	cr_expect(!given_up_pause(&g, &test, 1, 0, LONGEST, RTT));
	cr_expect_eq(given_up_pause_left(&g, test.end), TIMEOUT / 2, "it is no test");
	for (int i = 0; i < 5; i++) {
		now += TIMEOUT;
		test.end = (weir_time)now;
		given_up_update(&g, &test, 0, RTT);
		cr_expect(!given_up_pause(&g, &test, 1, 0, LONGEST, RTT));
		cr_expect_eq(given_up_pause_left(&g, test.end), TIMEOUT, "it is as long as before");
	}
	test = ignored;
	test.end = (weir_time)(now + TIMEOUT);
	cr_expect(!given_up_pause(&g, &test, 1, 0, LONGEST, RTT));
	cr_expect_eq(given_up_pause_left(&g, test.end), 0, "its caller waited for it");
}

/* Those that were in flight when it began prolong it, but do not make it longer. */
Test(given_up, doubles_the_pause_for_each_call_that_times_out_after_it)
{
	const double expected[] = {2, 4, LONGEST, LONGEST};
	struct given_up g = {0};
	double now = 1e9;

	cr_assert(time_out(&g, now, 1));
	now += TIMEOUT / 2;
	cr_expect(!time_out(&g, now, 1));
	cr_expect_eq(given_up_pause_left(&g, (weir_time)now), TIMEOUT);
	for (int i = 0; i < 4; i++) {
		now += given_up_pause_left(&g, (weir_time)now) + TIMEOUT;
		cr_expect(!time_out(&g, now, 1), "it is the same trouble");
		cr_expect_eq(given_up_pause_left(&g, (weir_time)now), expected[i] * TIMEOUT, "%d",
			     i);
	}
}

Test(given_up, ends_the_pause_when_a_call_is_served)
{
	struct given_up g = {0};

	cr_assert(time_out(&g, 1e9, 1));
	feed(&g, &ignored, 1);
	cr_expect_gt(given_up_pause_left(&g, (weir_time)1e9), 0);
	feed(&g, &served, 1);
	cr_expect_eq(given_up_pause_left(&g, (weir_time)1e9), 0);
	cr_expect(time_out(&g, 2e9, 1), "this is another one");
}

/* The latency of a timeout may not be known; a clock may go back. */
Test(given_up, pauses_sensibly_without_a_latency_or_with_another_clock)
{
	const struct weir_window w = {.end = (weir_time)1e9, .timed_out = 1};
	struct given_up g = {0};

	given_up_update(&g, &w, 0, RTT);
	cr_assert(given_up_pause(&g, &w, 1, 0, LONGEST, RTT));
	cr_expect_eq(given_up_pause_left(&g, w.end), RTT);
	cr_expect_eq(given_up_pause_left(&g, 5), 0, "no longer than the whole pause");
}

/* After three years, the time is known to sixteen nanoseconds. */
Test(given_up, pauses_whatever_the_time)
{
	for (int i = 0; i < 32; i++) {
		const struct weir_window w = {
			.end = (weir_time)1e17, .count = 1, .timed_out = 1, .rtt = TIMEOUT + i};
		struct given_up g = {0};

		given_up_update(&g, &w, 0, RTT);
		cr_assert(given_up_pause(&g, &w, 1, 0, LONGEST, RTT));
		cr_expect_float_eq(given_up_pause_left(&g, w.end), w.rtt, 16, "%d", i);
	}
}

/* State can come from a file, or from memory that other processes write. */
Test(given_up, recovers_from_a_corrupted_state)
{
	const double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct given_up g = {.held = bad[i],
				     .row = bad[i],
				     .unserved = bad[i],
				     .latest = bad[i],
				     .usual = (float)bad[i],
				     .seen = (float)bad[i],
				     .timeout = (float)bad[i],
				     .pause = (float)bad[i],
				     .resume = bad[i]};

		cr_expect(given_up_pause_left(&g, (weir_time)1e9) >= 0);
		(void)time_out(&g, 1e9, MOST);
		cr_expect(given_up_pause_left(&g, (weir_time)1e9) >= 0);
		for (int j = 0; j < 100; j++)
			(void)time_out(&g, 1e9, MOST);
		cr_expect(fabsf(g.timeout - (float)TIMEOUT) < 1, "%g: %g", bad[i],
			  (double)g.timeout);
		feed(&g, &served, MOST + 1);
		cr_expect_eq(g.held, 0, "%g: %g", bad[i], g.held);
		cr_expect_leq((double)g.usual, 0x1p32, "%g: %g", bad[i], (double)g.usual);
		feed(&g, &served, 400);
		cr_expect_lt(g.usual, 1e6, "%g: %g", bad[i], g.usual);
		cr_expect_eq(given_up_pause_left(&g, (weir_time)1e9), 0);
	}
}

/* Calls that end at once may not have reached the server: a hundred of them are worth one. */
Test(given_up, returns_permits_by_the_time_that_calls_were_in_flight)
{
	const struct weir_window brief = {.others = 1, .others_time = RTT / 100};
	struct given_up g = {0};

	feed(&g, &timed_out, 5);
	feed(&g, &brief, 200);
	cr_expect_float_eq(g.held, 3, 1e-9, "%g", g.held);
	feed(&g, &ignored, 2);
	cr_expect_float_eq(g.held, 1, 1e-9, "%g", g.held);
	given_up_update(&g, &ignored, MOST, 0);
	cr_expect_float_eq(g.held, 0, 1e-9, "without a latency, each counts: %g", g.held);
}
