/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to a rate between a call's reading of the clock and what follows from it. Here it
 * happens in the clock, so each time in the same way.
 */
#include <errno.h>

#include "rate_rig.h"

#define TENTH (100 * WEIR_MS)

static struct weir_rate *crossed;

/* 10 in each slot. */
static struct weir_rate *crossed_rate(void)
{
	struct weir_rate_config config = plan(100, WEIR_S, TENTH);

	config.quotas[1] = config.quotas[0];
	config.quota_count = 2;
	config.queue = 1;
	return crossed = make(&config);
}

static weir_time a_slot_begins(void)
{
	const weir_time read = clock_time;

	clock_time += TENTH;
	cr_assert_eq(weir_rate_try_for(crossed, &(struct weir_cost){.units = {1, 1}}), 0);
	return read;
}

/* The same while a call waits: a call that takes anything now must have begun before. */
static weir_time a_slot_is_charged(void)
{
	const weir_time read = clock_time;

	clock_time += TENTH;
	cr_assert_eq(weir_rate_settle(crossed, 0, 0, 1), 0);
	return read;
}

static unsigned slots_to_begin;

static weir_time slot_after_slot_begins(void)
{
	const weir_time read = a_slot_begins();

	meanwhile = --slots_to_begin > 0 ? slot_after_slot_begins : NULL;
	return read;
}

Test(rate_races, a_slot_that_begins_meanwhile_causes_no_refusal)
{
	struct weir_rate *rate = crossed_rate();
	const struct weir_cost both = {.units = {1, 1}};
	struct weir_wait wait;

	meanwhile = a_slot_begins;
	cr_assert_eq(weir_rate_try(rate, 1), 0);
	meanwhile = a_slot_begins;
	cr_assert_eq(weir_rate_try_for(rate, &both), 0);
	meanwhile = a_slot_is_charged;
	cr_assert_eq(weir_rate_enqueue(rate, &both, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_rate_poll(rate, &wait), 0);
	slots_to_begin = 5;
	meanwhile = slot_after_slot_begins;
	cr_assert_eq(weir_rate_try(rate, 1), 0, "nor do several");
	cr_assert_eq(look(rate).quotas[0].available, 8, "and it counts in the last of them");
	cr_assert_eq(look(rate).quotas[1].available, 9);
	cr_assert_eq(look(rate).refused, 0);
	weir_rate_destroy(rate);
}

static weir_time a_slot_is_used_up(void)
{
	const weir_time read = clock_time;

	clock_time += TENTH;
	cr_assert_eq(drain(crossed, 1), 10);
	return read;
}

Test(rate_races, a_slot_that_is_used_up_meanwhile_refuses)
{
	struct weir_rate *rate = crossed_rate();

	meanwhile = a_slot_is_used_up;
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN);
	clock_time += TENTH;
	cr_assert_eq(drain(rate, 1), 10);
	weir_rate_destroy(rate);
}

static weir_time backend_throttles(void)
{
	const weir_time read = clock_time++;

	weir_rate_throttled(crossed, 0);
	return read;
}

Test(rate_races, concurrent_throttling_lowers_the_pace_once)
{
	struct weir_rate *rate = crossed_rate();

	meanwhile = backend_throttles;
	weir_rate_throttled(rate, 0);
	cr_assert_eq(look(rate).throttled, 2);
	cr_assert_eq(look(rate).percent, 70);
	weir_rate_destroy(rate);
}

/* A call counts slots by the old terms that a late change does not include. */
static weir_time many_slots_begin(void)
{
	const weir_time read = clock_time;

	clock_time += 50 * TENTH;
	cr_assert_eq(weir_rate_try(crossed, 1), 0);
	return read;
}

Test(rate_races, a_late_change_leaves_no_debt)
{
	struct weir_rate *rate = crossed_rate();
	const struct weir_quota lower = {.units = 20};

	meanwhile = many_slots_begin;
	cr_assert_eq(weir_rate_set(rate, 0, &lower), 0);
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	cr_assert_eq(drain(rate, 1), 2);
	clock_time += TENTH;
	cr_assert_eq(drain(rate, 1), 2);
	cr_assert_eq(look(rate).quotas[1].available, 10);
	weir_rate_destroy(rate);
}

Test(rate_races, a_late_throttling_leaves_no_debt)
{
	struct weir_rate *rate = crossed_rate();

	meanwhile = many_slots_begin;
	weir_rate_throttled(rate, WEIR_S);
	cr_assert_eq(look(rate).percent, 0);
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	cr_assert_eq(look(rate).next, clock_time + WEIR_S);
	clock_time += WEIR_S;
	cr_assert_eq(drain(rate, 1), 7);
	weir_rate_destroy(rate);
}

static weir_time the_quota_falls_and_time_passes(void)
{
	const struct weir_quota lower = {.units = 10};

	cr_assert_eq(weir_rate_set(crossed, 0, &lower), 0);
	return clock_time += 50 * TENTH;
}

Test(rate_races, a_charge_uses_the_terms_of_its_time)
{
	struct weir_rate *rate = crossed_rate();

	meanwhile = the_quota_falls_and_time_passes;
	cr_assert_eq(weir_rate_settle(rate, 0, 0, 1), 0);
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	clock_time += TENTH;
	cr_assert_eq(drain(rate, 1), 1);
	weir_rate_destroy(rate);
}

Test(rate_races, refusals_for_years_come_to_an_end)
{
	struct weir_rate *rate = crossed_rate();

	weir_rate_throttled(rate, 5 * 365 * DAY);
	for (unsigned week = 0; week < 5 * 52; week++) {
		cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN, "week %u", week);
		clock_time += 7 * DAY;
	}
	clock_time += 6 * DAY;
	cr_assert_eq(weir_rate_try(rate, 1), 0);
	weir_rate_destroy(rate);
}

Test(rate_races, a_turn_beyond_the_countable_slots)
{
	struct weir_rate_config config = plan(1, 52 * DAY, 1);
	struct weir_rate *rate;
	struct weir_wait wait;

	config.queue = 1;
	rate = make(&config);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, WEIR_UNITS_MAX), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), 0);
	cr_assert_gt((int64_t)(weir_rate_serve(rate) - clock_time), (int64_t)(365 * DAY));
	cr_assert_eq(weir_rate_cancel(rate, &wait), 0);
	weir_rate_destroy(rate);
}
