/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate's numbers, at given times. Cases with an id (AZ, BT, PR) are rows of tables of what other
 * systems release and of what is exact.
 */
#include <errno.h>

#include "rate_rig.h"

/* PR: what is released in each slot. */
struct schedule {
	const char *id;
	uint64_t units;
	weir_dur period, slot;
	uint64_t first[10]; /* of the first slots */
	unsigned known;
	uint64_t most;
};

static const struct schedule schedules[] = {
	{"AZ2, PR1", 100, WEIR_S, 200 * WEIR_MS, {20, 20, 20, 20, 20}, 5, 20},
	{"PR2", 75, WEIR_S, 20 * WEIR_MS, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, 10, 2},
	{"PR3", 1, WEIR_S, 200 * WEIR_MS, {0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 10, 1},
	{"PR4", 9, WEIR_S, 100 * WEIR_MS, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 1},
	{"PR5", 51, WEIR_S, 20 * WEIR_MS, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 2},
	{"PR6", 999, WEIR_S, WEIR_MS, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 1},
	{"PR7", 20000, WEIR_S, 100 * WEIR_MS, {2000, 2000, 2000, 2000, 2000}, 5, 2000},
	{"PR8",
	 UINT64_C(1) << 31,
	 60 * WEIR_S,
	 200 * WEIR_MS,
	 {7158278, 7158279, 7158279, 7158279, 7158279, 7158278},
	 4,
	 7158279},
	{"PR9", 300, 60 * WEIR_S, 200 * WEIR_MS, {1, 1, 1, 1, 1, 1}, 6, 1},
	{"1 a day", 1, DAY, 0, {0, 0, 0, 0, 0, 0}, 6, 1},
	{"a default slot", 100, WEIR_S, 0, {20, 20, 20, 20, 20}, 5, 20},
};

/* Two periods, slot by slot: how they begin, the most in a slot, and the sum of each period. */
Test(rate, adds_exact_units_in_each_slot)
{
	for (size_t i = 0; i < sizeof(schedules) / sizeof(schedules[0]); i++) {
		const struct schedule *s = &schedules[i];
		struct weir_rate *rate = rate_of(s->units, s->period, s->slot);
		const uint64_t slots = s->period / look(rate).slot;
		uint64_t most = 0;

		for (unsigned period = 0; period < 2; period++) {
			uint64_t sum = 0;

			for (uint64_t k = 0; k < slots; k++) {
				const uint64_t released = drain_whole(rate);

				if (period == 0 && k < s->known)
					cr_assert_eq(released, s->first[k],
						     "%s: slot %lu releases %lu", s->id,
						     (unsigned long)k, (unsigned long)released);
				most = released > most ? released : most;
				sum += released;
				clock_time += look(rate).slot;
			}
			cr_assert_eq(sum, s->units, "%s: period %u releases %lu", s->id, period,
				     (unsigned long)sum);
		}
		cr_assert_eq(most, s->most, "%s: %lu in a slot", s->id, (unsigned long)most);
		weir_rate_destroy(rate);
	}
}

/* A flush in each slot releases while anything is left, for ten seconds. */
struct flush {
	const char *id;
	uint64_t capacity;
	weir_dur slot;
	uint64_t cost;
	uint64_t released; /* in ten seconds, in units of cost */
};

static const struct flush flushes[] = {
	{"BT14.1", 9, 100 * WEIR_MS, 1, 90},      {"BT14.2", 19, 100 * WEIR_MS, 1, 190},
	{"BT14.3", 99, 100 * WEIR_MS, 1, 990},    {"BT14.4", 100, 100 * WEIR_MS, 1, 1000},
	{"BT14.5", 100, 200 * WEIR_MS, 1, 1000},  {"BT14.6", 333, 100 * WEIR_MS, 1, 3330},
	{"BT14.7", 999, WEIR_MS, 1, 9990},        {"BT14.8", 100, 100 * WEIR_MS, 100, 1000},
	{"BT14.9", 100, 100 * WEIR_MS, 30, 1020}, {"BT14.10", 20000, 100 * WEIR_MS, 15000, 210000},
};

Test(rate, carries_fractions_of_units_and_debt)
{
	for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
		const struct flush *f = &flushes[i];
		struct weir_rate *rate = rate_of(f->capacity, WEIR_S, f->slot);
		uint64_t released = 0;

		for (weir_dur t = 0; t < 10 * WEIR_S; t += f->slot) {
			released += drain(rate, f->cost) * f->cost;
			clock_time += f->slot;
		}
		cr_assert_eq(released, f->released, "%s: %lu", f->id, (unsigned long)released);
		weir_rate_destroy(rate);
	}
}

/* The result of the same arithmetic without carried fractions and debt, as in go-batcher. */
static const uint64_t truncated[] = {0, 10, 90, 100, 100, 330, 0, 1000, 300, 150000};

Test(rate, BT13_truncation_is_what_these_rows_differ_from)
{
	for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
		const struct flush *f = &flushes[i];
		const uint64_t a_flush = f->capacity * (f->slot / WEIR_MS) / 1000;
		const uint64_t calls = (a_flush + f->cost - 1) / f->cost;

		cr_assert_eq(calls * f->cost * (WEIR_S / f->slot), truncated[i], "BT13, %s", f->id);
	}
}

Test(rate, a_cost_above_a_slot_leaves_debt)
{
	struct weir_rate *rate = rate_of(100, WEIR_S, 100 * WEIR_MS);

	cr_assert_eq(weir_rate_try(rate, 100), 0, "BT4: the first of them");
	cr_assert_eq(look(rate).quotas[0].debt, 90);
	cr_assert_eq(look(rate).quotas[0].available, 0);
	clock_time += 900 * WEIR_MS;
	cr_assert_eq(weir_rate_try(rate, 100), -EAGAIN, "BT4: one in 250 ms, and in 900 too");
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_try(rate, 100), 0);
	weir_rate_destroy(rate);
}

/* Once a second for a day; each unit stays until it is taken. */
Test(rate, one_unit_a_day_stays_available_all_day)
{
	struct weir_rate *rate = rate_of(1, DAY, 0);

	clock_time += 3 * DAY;
	cr_assert_eq(drain(rate, 1), 1, "and no more than one is saved up");
	clock_time += DAY - WEIR_S;
	cr_assert_eq(drain(rate, 1), 0);
	clock_time += WEIR_S;
	cr_assert_eq(drain(rate, 1), 1);
	weir_rate_destroy(rate);
}

Test(rate, savings_are_bounded_by_the_burst)
{
	struct weir_rate_config config = plan(100, WEIR_S, 200 * WEIR_MS);
	struct weir_rate *rate;

	config.quotas[0].burst = 30;
	rate = make(&config);
	cr_assert_eq(drain(rate, 1), 20);
	clock_time += 400 * WEIR_MS;
	cr_assert_eq(drain(rate, 1), 40);
	clock_time += 10 * WEIR_S;
	cr_assert_eq(look(rate).quotas[0].available, 50);
	cr_assert_eq(drain(rate, 1), 50);
	weir_rate_destroy(rate);
}

/*
 * Slots stay where they are: neither now nor at the next slot are more units left than without
 * setting.
 */
Test(rate, setting_a_quota_gains_no_units)
{
	struct weir_rate *rate = rate_of(75, WEIR_S, 20 * WEIR_MS);
	const struct weir_quota same = {.units = 75, .period = WEIR_S};
	const struct weir_quota other = {.units = 4500, .period = 60 * WEIR_S};
	uint64_t released = 0;

	for (unsigned ms = 0; ms < 10000; ms++) {
		cr_assert_eq(weir_rate_set(rate, 0, ms % 3 == 0 ? &same : &other), 0);
		released += drain(rate, 1);
		clock_time += WEIR_MS;
	}
	cr_assert_eq(released, 750);
	weir_rate_destroy(rate);
}

Test(rate, a_higher_quota_counts_from_the_next_slot)
{
	struct weir_rate *rate = rate_of(100, WEIR_S, 200 * WEIR_MS);
	const struct weir_quota higher = {.units = 1000};

	cr_assert_eq(drain(rate, 1), 20);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_set(rate, 0, &higher), 0);
	cr_assert_eq(drain(rate, 1), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(drain(rate, 1), 200);
	weir_rate_destroy(rate);
}

Test(rate, a_lower_quota_holds_at_once)
{
	struct weir_rate *rate = rate_of(1000, WEIR_S, 200 * WEIR_MS);
	const struct weir_quota lower = {.units = 10}, nothing = {.units = 0};

	cr_assert_eq(look(rate).quotas[0].available, 200);
	cr_assert_eq(weir_rate_set(rate, 0, &lower), 0);
	cr_assert_eq(drain(rate, 1), 2);
	clock_time += 200 * WEIR_MS;
	cr_assert_eq(weir_rate_set(rate, 0, &nothing), 0);
	cr_assert_eq(drain(rate, 1), 0, "none of the units left remain");
	clock_time += DAY;
	cr_assert_eq(drain(rate, 1), 0);
	cr_assert_eq(look(rate).next, WEIR_FOREVER);
	cr_assert_eq(weir_rate_set(rate, 0, &lower), 0);
	cr_assert_eq(drain(rate, 1), 0, "units that were not added are not made up for");
	clock_time += 200 * WEIR_MS;
	cr_assert_eq(drain(rate, 1), 2);
	weir_rate_destroy(rate);
}

Test(rate, debt_outlives_a_change)
{
	struct weir_rate *rate = rate_of(100, WEIR_S, 200 * WEIR_MS);
	const struct weir_quota lower = {.units = 10};

	cr_assert_eq(weir_rate_try(rate, 120), 0);
	cr_assert_eq(weir_rate_set(rate, 0, &lower), 0);
	cr_assert_eq(look(rate).quotas[0].debt, 100);
	clock_time += 10 * WEIR_S;
	cr_assert_eq(drain(rate, 1), 0);
	clock_time += 200 * WEIR_MS;
	cr_assert_eq(drain(rate, 1), 2);
	weir_rate_destroy(rate);
}

Test(rate, an_unlimited_quota_only_counts)
{
	struct weir_rate_config config = plan(5, WEIR_S, 0);
	const struct weir_quota limited = {.units = 5};
	struct weir_rate *rate;

	config.quotas[0].flags = WEIR_QUOTA_UNLIMITED;
	rate = make(&config);
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(weir_rate_try(rate, WEIR_UNITS_MAX), 0);
	cr_assert_eq(look(rate).admitted, 1000);
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	cr_assert_eq(weir_rate_settle(rate, 0, 1, WEIR_UNITS_MAX), 0);
	cr_assert_eq(weir_rate_set(rate, 0, &limited), 0);
	cr_assert_eq(drain(rate, 1), 0, "the new quota counts from the next slot on");
	clock_time += WEIR_S;
	cr_assert_eq(drain(rate, 1), 1);
	weir_rate_destroy(rate);
}

/* Operations and bytes: of both, or of none. */
Test(rate, several_quotas_are_taken_together)
{
	struct weir_rate_config config = plan(10, WEIR_S, WEIR_S);
	const struct weir_cost small = {.units = {1, 100}}, big = {.units = {1, 900}};
	struct weir_rate *rate;

	config.quotas[1] = (struct weir_quota){.units = 1000};
	config.quota_count = 2;
	rate = make(&config);
	cr_assert_eq(weir_rate_try_for(rate, &big), 0);
	cr_assert_eq(weir_rate_try_for(rate, &small), 0);
	cr_assert_eq(weir_rate_try_for(rate, &small), -EAGAIN);
	cr_assert_eq(look(rate).quotas[0].available, 8, "a refusal by bytes costs no operation");
	cr_assert_eq(weir_rate_try(rate, 8), 0, "a call without bytes is not limited by bytes");
	clock_time += WEIR_S;
	cr_assert_eq(weir_rate_try(rate, 10), 0);
	cr_assert_eq(weir_rate_try_for(rate, &small), -EAGAIN);
	cr_assert_eq(look(rate).quotas[1].available, 1000);
	cr_assert_eq(look(rate).quotas[1].taken, 1000);
	weir_rate_destroy(rate);
}

Test(rate, cost_is_settled_afterwards)
{
	struct weir_rate *rate = rate_of(100, WEIR_S, WEIR_S);

	cr_assert_eq(weir_rate_try(rate, 10), 0);
	cr_assert_eq(weir_rate_settle(rate, 0, 10, 150), 0);
	cr_assert_eq(look(rate).quotas[0].debt, 50);
	cr_assert_eq(weir_rate_settle(rate, 0, 150, 0), 0);
	cr_assert_eq(look(rate).quotas[0].available, 100);
	cr_assert_eq(weir_rate_settle(rate, 0, 1000, 0), 0, "more units than were taken");
	cr_assert_eq(drain(rate, 1), 100, "returns no more than the depth");
	cr_assert_eq(weir_rate_settle(rate, 1, 0, 0), -EINVAL);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, WEIR_UNITS_MAX + 1), -EINVAL);
	for (unsigned i = 0; i < 2000; i++)
		cr_assert_eq(weir_rate_settle(rate, 0, 0, WEIR_UNITS_MAX), 0);
	cr_assert_leq(look(rate).quotas[0].debt, UINT64_C(1) << 61);
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN);
	weir_rate_destroy(rate);
}

/* 100 a second in slots of 100 ms: what each second releases, beginning with this one. */
static void expect_seconds(struct weir_rate *rate, const unsigned *seconds, unsigned count)
{
	for (unsigned s = 0; s < count; s++) {
		uint64_t released = 0;

		for (unsigned k = 0; k < 10; k++) {
			released += drain(rate, 1);
			clock_time += 100 * WEIR_MS;
		}
		cr_assert_eq(released, seconds[s], "second %u: %lu", s, (unsigned long)released);
	}
}

/* The pace rises with each slot, so at once. */
Test(rate, a_recovery_shorter_than_a_slot_is_one_slot_long)
{
	struct weir_rate_config config = plan(1000, WEIR_S, 100 * WEIR_MS);
	struct weir_rate *rate;

	config.recovery = WEIR_MS;
	rate = make(&config);
	weir_rate_throttled(rate, 0);
	cr_assert_lt(look(rate).percent, 100);
	clock_time += WEIR_S;
	cr_assert_eq(weir_rate_try(rate, 0), 0);
	cr_assert_eq(look(rate).percent, 100);
	weir_rate_destroy(rate);
}

Test(rate, throttling_lowers_the_pace_for_a_while)
{
	static const unsigned back[] = {70, 75, 80, 85, 90, 95, 100, 100};
	static const unsigned retry[] = {0, 0, 70, 75, 80};
	struct weir_rate_config config = plan(100, WEIR_S, 100 * WEIR_MS);
	struct weir_rate *rate;

	config.recovery = WEIR_S;
	rate = make(&config);
	cr_assert_eq(look(rate).percent, 100);
	weir_rate_throttled(rate, 0);
	weir_rate_throttled(rate, 0);
	cr_assert_eq(look(rate).percent, 70, "twice in a moment counts once");
	cr_assert_eq(drain(rate, 1), 0, "what was left has lapsed");
	clock_time += 100 * WEIR_MS;
	expect_seconds(rate, back, 8);
	weir_rate_throttled(rate, 2 * WEIR_S);
	cr_assert_eq(look(rate).percent, 0);
	cr_assert_eq(look(rate).next, clock_time + 2 * WEIR_S);
	expect_seconds(rate, retry, 5);
	cr_assert_eq(look(rate).throttled, 3);
	for (unsigned i = 0; i < 20; i++) {
		weir_rate_throttled(rate, WEIR_S);
		clock_time += WEIR_S;
	}
	cr_assert_eq(look(rate).percent, 10);
	weir_rate_throttled(rate, WEIR_FOREVER);
	clock_time += 365 * DAY;
	cr_assert_eq(drain(rate, 1), 0);
	weir_rate_destroy(rate);
}

/* The origin moves in the middle of this, and nothing else changes. */
Test(rate, a_lowered_pace_outlives_a_change)
{
	struct weir_rate_config config = plan(75, WEIR_S, 20 * WEIR_MS);
	struct weir_rate *still, *moved;

	config.recovery = 300 * WEIR_MS;
	still = make(&config);
	moved = make(&config);
	for (unsigned i = 0; i < 3000; i++) {
		if (i % 601 == 600) {
			weir_rate_throttled(still, i % 4 * 50 * WEIR_MS);
			weir_rate_throttled(moved, i % 4 * 50 * WEIR_MS);
		}
		cr_assert_eq(weir_rate_set(moved, 0, &config.quotas[0]), 0);
		cr_assert_eq(look(still).percent, look(moved).percent, "at %u ms", i);
		cr_assert_eq(drain(still, 1), drain(moved, 1), "at %u ms", i);
		cr_assert_eq(look(still).next, look(moved).next, "at %u ms", i);
		clock_time += WEIR_MS;
	}
	weir_rate_destroy(still);
	weir_rate_destroy(moved);
}

Test(rate, works_for_years_and_across_the_wrap_of_the_clock)
{
	struct weir_rate *rate, *fast;
	uint64_t most;

	clock_time = UINT64_MAX - WEIR_S;
	rate = rate_of(1, WEIR_S, 200 * WEIR_MS);
	fast = rate_of(64 * WEIR_MS, WEIR_MS, WEIR_MS);
	most = look(fast).quotas[0].available;
	cr_assert_eq(most, 64 * WEIR_MS);
	for (unsigned week = 0; week < 5000; week++) {
		cr_assert_eq(drain(rate, 1), week > 0, "week %u", week);
		cr_assert_eq(drain_whole(fast), most, "week %u", week);
		clock_time += 7 * DAY;
	}
	clock_time += UINT64_C(1) << 62;
	cr_assert_eq(drain(rate, 1), 1);
	cr_assert_eq(drain(fast, most), 1);
	clock_time -= 365 * DAY;
	cr_assert_eq(drain(rate, 1), 0, "time that goes back adds nothing");
	weir_rate_destroy(rate);
	weir_rate_destroy(fast);
}

static void refused(const struct weir_rate_config *config, const char *sentence)
{
	struct weir_rate *rate;
	char why[160] = "";

	cr_assert_eq(weir_rate_config_check(config, why, sizeof(why)), -EINVAL, "%s", sentence);
	cr_assert_str_eq(why, sentence);
	cr_assert_eq(weir_rate_create(config, &rate), -EINVAL);
	cr_assert_null(rate);
}

Test(rate, refuses_bad_configurations)
{
	struct weir_rate_config c = {.size = 0};

	refused(NULL, "weir_rate_config_init() was not called for this configuration.");
	refused(&c, "weir_rate_config_init() was not called for this configuration.");
	c = plan(1, 0, 0);
	c.size++;
	refused(&c, "The program was built for a newer library.");
	c = plan(1, 0, 0);
	c.quota_count = 5;
	refused(&c, "quota_count is 5, above 4.");
	c = plan(1, UINT64_MAX, 0);
	refused(&c, "Quota 0 has a period longer than 52 days.");
	c = plan((UINT64_C(1) << 53) + 1, DAY, 0);
	refused(&c, "Quota 0 has more than 2^53 units or burst.");
	c = plan(1, 0, 0);
	c.quotas[0].burst = UINT64_MAX;
	refused(&c, "Quota 0 has more than 2^53 units or burst.");
	c = plan(65, 1, 0);
	refused(&c, "Quota 0 has more than 64 units a nanosecond.");
	c = plan(130, 1, 0);
	refused(&c, "Quota 0 has more than 64 units a nanosecond.");
	c = plan(129, 2, 0);
	refused(&c, "Quota 0 has more than 64 units a nanosecond.");
	c = plan(64, 1, 0);
	cr_assert_eq(weir_rate_config_check(&c, NULL, 0), 0);
	c = plan(1, 0, 0);
	c.quotas[0].flags = 2;
	refused(&c, "Quota 0 has unknown flags.");
	c = plan(1, 0, 0);
	c.quotas[0].reserved = 1;
	refused(&c, "Quota 0 has unknown flags.");
	c = plan(1, WEIR_S, WEIR_S + 1);
	refused(&c, "A slot is longer than the shortest period.");
	c = plan(1, 0, 0);
	c.queue = 65536;
	refused(&c, "queue is 65536, above 65535.");
	c = plan(1, 0, 0);
	c.recovery = UINT64_MAX;
	refused(&c, "recovery is longer than 36 years.");
}

Test(rate, refuses_bad_calls)
{
	struct weir_rate *rate = rate_of(1, WEIR_S, 0);
	const struct weir_quota good = {.units = 1}, quick = {.units = 1, .period = WEIR_MS},
				flagged = {.flags = 4};
	const struct weir_cost other = {.units = {0, 1}};
	struct weir_wait wait, forged = {.slot = 4000000, .stamp = 1};

	cr_assert_eq(weir_rate_try(rate, WEIR_UNITS_MAX + 1), -EINVAL);
	cr_assert_eq(weir_rate_try_for(rate, &other), -EINVAL, "there is no such quota");
	cr_assert_eq(weir_rate_take(rate, 1, 0), -EINVAL, "it has a clock of its own");
	cr_assert_eq(weir_rate_take(rate, WEIR_UNITS_MAX + 1, 0), -EINVAL);
	cr_assert_eq(weir_rate_settle(rate, 1, 0, 0), -EINVAL);
	cr_assert_eq(weir_rate_settle(rate, 0, WEIR_UNITS_MAX + 1, 0), -EINVAL);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, WEIR_UNITS_MAX + 1), -EINVAL);
	cr_assert_eq(weir_rate_poll(rate, &forged), -EINVAL);
	cr_assert_eq(weir_rate_cancel(rate, &forged), -EINVAL);
	cr_assert_eq(weir_rate_enqueue(rate, &other, NULL, NULL, &wait), -EINVAL);
	cr_assert_eq(weir_rate_set(rate, 1, &good), -EINVAL);
	cr_assert_eq(weir_rate_set(rate, 0, &quick), -EINVAL, "shorter than a slot");
	cr_assert_eq(weir_rate_set(rate, 0, &flagged), -EINVAL);
	cr_assert_eq(weir_rate_try(rate, 0), 0, "no unit will ever be available");
	cr_assert_eq(look(rate).refused, 0);
	weir_rate_destroy(rate);
	weir_rate_destroy(NULL);
}
