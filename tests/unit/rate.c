/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate's numbers, at given times. Cases with an id (AZ, BT, PR) are rows of tables of what other
 * systems release and of what is exact.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#define DAY (24 * 3600 * WEIR_S)

static weir_time clock_time;

/*
 * What other threads do while a call reads the clock, and the time it reads. NULL: nothing, and the
 * time.
 */
static weir_time (*meanwhile)(void);

static weir_time read_clock(const struct weir_clock *clock)
{
	weir_time (*const others)(void) = meanwhile;

	(void)clock;
	meanwhile = NULL;
	return others != NULL ? others() : clock_time;
}

static const struct weir_clock given_clock = {.now = read_clock};

static struct weir_rate_config plan(uint64_t units, weir_dur period, weir_dur slot)
{
	struct weir_rate_config config;

	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = units, .period = period};
	config.slot = slot;
	config.clock = &given_clock;
	return config;
}

static struct weir_rate *make(const struct weir_rate_config *config)
{
	struct weir_rate *rate;
	char why[160] = "";

	cr_assert_eq(weir_rate_config_check(config, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(weir_rate_create(config, &rate), 0);
	return rate;
}

static struct weir_rate *rate_of(uint64_t units, weir_dur period, weir_dur slot)
{
	const struct weir_rate_config config = plan(units, period, slot);

	return make(&config);
}

static struct weir_rate_snapshot look(struct weir_rate *rate)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	return s;
}

/* As many calls of that many units as are admitted now. */
static uint64_t drain(struct weir_rate *rate, uint64_t units)
{
	uint64_t calls = 0;

	while (weir_rate_try(rate, units) == 0)
		calls++;
	return calls;
}

/* What is left, taken in one call. */
static uint64_t drain_whole(struct weir_rate *rate)
{
	const uint64_t left = look(rate).quotas[0].available;

	if (left > 0)
		cr_assert_eq(weir_rate_try(rate, left), 0);
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN);
	return left;
}

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

/* Waiting without threads. */

static struct weir_rate *with_queue(uint64_t units, uint32_t queue)
{
	struct weir_rate_config config = plan(units, WEIR_S, 100 * WEIR_MS);

	config.queue = queue;
	return make(&config);
}

static void count_call(void *arg)
{
	(*(unsigned *)arg)++;
}

static const struct weir_cost one = {.units = {1}};

Test(rate, waiters_are_served_in_order_and_not_overtaken)
{
	struct weir_rate *rate = with_queue(10, 3);
	struct weir_wait wait[3], none;
	unsigned notified[3] = {0};

	cr_assert_eq(drain(rate, 1), 1);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(weir_rate_enqueue(rate, &one, count_call, &notified[i], &wait[i]), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &none), -EAGAIN);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(look(rate).waiting, 3);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN, "the units left are for waiters");
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), -EAGAIN);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(notified[0], 1);
	cr_assert_eq(notified[1], 0);
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), 0);
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), -EINVAL);
	cr_assert_eq(weir_rate_cancel(rate, &wait[1]), 0);
	cr_assert_eq(weir_rate_cancel(rate, &wait[1]), -EINVAL);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(notified[2], 1);
	cr_assert_eq(weir_rate_cancel(rate, &wait[2]), -EALREADY);
	cr_assert_eq(notified[1], 0);
	cr_assert_eq(look(rate).abandoned, 1);
	cr_assert_eq(look(rate).admitted, 3);
	weir_rate_destroy(rate);
}

struct again {
	struct weir_rate *rate;
	struct weir_wait next;
};

static void stand_again(void *arg)
{
	struct again *again = arg;

	cr_assert_eq(weir_rate_enqueue(again->rate, &one, NULL, NULL, &again->next), 0);
}

Test(rate, a_notified_waiter_may_enqueue_again)
{
	struct again again = {.rate = with_queue(10, 2)};
	struct weir_wait first;

	cr_assert_eq(drain(again.rate, 1), 1);
	cr_assert_eq(weir_rate_enqueue(again.rate, &one, stand_again, &again, &first), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(again.rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(weir_rate_poll(again.rate, &first), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(again.rate), WEIR_FOREVER);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), 0);
	weir_rate_destroy(again.rate);
}

struct reuse {
	struct weir_rate *rate;
	struct weir_wait wait, next;
	int answer;
};

static void end_and_enqueue_again(void *arg)
{
	struct reuse *again = arg;

	again->answer = weir_rate_poll(again->rate, &again->wait);
	cr_assert_eq(weir_rate_enqueue(again->rate, &one, NULL, NULL, &again->next), 0);
}

/* The seat's next use is independent: the return of the earlier callback does not affect it. */
Test(rate, a_seat_that_a_callback_has_freed_may_be_used_again)
{
	struct reuse again = {.rate = with_queue(10, 1)};
	struct weir_wait first;

	cr_assert_eq(drain(again.rate, 1), 1);
	cr_assert_eq(
		weir_rate_enqueue(again.rate, &one, end_and_enqueue_again, &again, &again.wait), 0);
	first = again.wait;
	clock_time += 100 * WEIR_MS;
	(void)weir_rate_serve(again.rate);
	cr_assert_eq(again.answer, 0);
	cr_assert_eq(again.next.slot, first.slot);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), -EAGAIN);
	cr_assert_eq(weir_rate_poll(again.rate, &first), -EINVAL, "it has ended");
	clock_time += 100 * WEIR_MS;
	(void)weir_rate_serve(again.rate);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), 0);
	weir_rate_destroy(again.rate);
}

struct taker {
	struct weir_rate *rate;
	struct weir_wait wait, other;
	int answer, other_answer;
	bool cancels;
};

static void take_in_callback(void *arg)
{
	struct taker *t = arg;

	t->other_answer = weir_rate_poll(t->rate, &t->other);
	t->answer = t->cancels ? weir_rate_cancel(t->rate, &t->wait)
			       : weir_rate_poll(t->rate, &t->wait);
}

/* Both are served at once, and the other's callback runs after this one. */
Test(rate, a_callback_may_end_its_waiter, .timeout = 60)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct weir_rate *rate = with_queue(10, 2);
		struct taker taker = {.rate = rate, .cancels = cancels}, idle = {.rate = rate};

		cr_assert_eq(drain(rate, 1), 1);
		cr_assert_eq(weir_rate_enqueue(rate, &one, take_in_callback, &taker, &taker.wait),
			     0);
		cr_assert_eq(weir_rate_enqueue(rate, &one, take_in_callback, &idle, &taker.other),
			     0);
		idle.wait = taker.other;
		clock_time += 200 * WEIR_MS;
		(void)weir_rate_serve(rate);
		clock_time += 200 * WEIR_MS;
		(void)weir_rate_serve(rate);
		cr_assert_eq(taker.answer, cancels ? -EALREADY : 0);
		cr_assert_eq(taker.other_answer, -EAGAIN,
			     "it has yet to be notified, or to be served");
		cr_assert_eq(idle.answer, 0);
		cr_assert_eq(weir_rate_poll(rate, &taker.other), -EINVAL, "it has ended");
		weir_rate_destroy(rate);
	}
}

Test(rate, returned_units_go_to_waiters)
{
	struct weir_rate *rate = with_queue(10, 2);
	struct weir_wait a, b;

	cr_assert_eq(weir_rate_try(rate, 5), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &a), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &b), 0);
	cr_assert_eq(weir_rate_settle(rate, 0, 5, 0), 0);
	cr_assert_eq(weir_rate_poll(rate, &a), 0);
	cr_assert_eq(weir_rate_poll(rate, &b), -EAGAIN);
	cr_assert_eq(weir_rate_cancel(rate, &b), 0);
	weir_rate_destroy(rate);
}

Test(rate, a_turn_that_is_years_away, .timeout = 60)
{
	struct weir_rate_config config = plan(1, DAY, 0);
	const weir_time began = clock_time;
	struct weir_rate *rate;
	struct weir_wait wait;
	unsigned looks = 0;

	config.queue = 1;
	rate = make(&config);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, 4000), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), 0);
	while (weir_rate_poll(rate, &wait) == -EAGAIN) {
		cr_assert_lt(looks++, 10, "it may need a few looks");
		clock_time = weir_rate_serve(rate);
		cr_assert_neq(clock_time, WEIR_FOREVER);
		if (look(rate).waiting == 1)
			(void)weir_rate_serve(rate);
	}
	cr_assert_eq(clock_time - began, 4001 * DAY - look(rate).slot);
	weir_rate_destroy(rate);
}

static unsigned sooner;

Test(rate, an_event_loop_is_notified_when_turns_come_sooner)
{
	struct weir_rate_config config = plan(0, WEIR_S, 100 * WEIR_MS);
	const struct weir_quota more = {.units = 10};
	struct weir_rate *rate;
	struct weir_wait wait;

	config.queue = 1;
	config.sooner = count_call;
	config.sooner_arg = &sooner;
	rate = make(&config);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER, "nothing may pass");
	clock_time += DAY;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(sooner, 0);
	cr_assert_eq(weir_rate_set(rate, 0, &more), 0);
	cr_assert_eq(sooner, 1);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(weir_rate_poll(rate, &wait), 0);
	cr_assert_eq(weir_rate_set(rate, 0, &more), 0);
	cr_assert_eq(sooner, 1, "no call waits");
	weir_rate_destroy(rate);
}

/* Waiting with threads, in real time, of which only the order is asserted. */

struct sleeper {
	struct weir_rate *rate;
	weir_time deadline;
	int result;
};

static void *sleep_on_it(void *arg)
{
	struct sleeper *s = arg;

	s->result = weir_rate_take(s->rate, 1, s->deadline);
	return NULL;
}

static void until_waiting(struct weir_rate *rate, uint32_t waiting)
{
	while (look(rate).waiting != waiting)
		usleep(100);
}

/* Until a call waits, or has waited: on a busy machine its deadline may come before this looks. */
static void until_come(struct weir_rate *rate)
{
	struct weir_rate_snapshot s = look(rate);

	for (; s.waiting + s.abandoned + s.admitted == 0; s = look(rate))
		usleep(100);
}

static struct weir_rate *for_threads(uint64_t units, uint32_t queue)
{
	struct weir_rate_config config = plan(units, WEIR_S, 2 * WEIR_MS);

	config.clock = NULL;
	config.queue = queue;
	return make(&config);
}

Test(rate, threads_wait_for_their_turn, .timeout = 60)
{
	struct weir_rate *rate = for_threads(500, 8);
	const weir_time began = weir_now();
	struct sleeper s[8];
	pthread_t thread[8];

	for (unsigned i = 0; i < 8; i++) {
		s[i] = (struct sleeper){.rate = rate, .deadline = WEIR_FOREVER};
		cr_assert_eq(pthread_create(&thread[i], NULL, sleep_on_it, &s[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(s[i].result, 0);
	}
	/* One a slot and one at once: the clock read here may be early by a slot. */
	cr_assert_geq(weir_now() - began, 6 * 2 * WEIR_MS);
	cr_assert_eq(look(rate).admitted, 8);
	cr_assert_eq(look(rate).waiting, 0);
	weir_rate_destroy(rate);
}

Test(rate, a_closed_rate_wakes_its_threads_when_it_is_opened, .timeout = 60)
{
	struct weir_rate *rate = for_threads(0, 8);
	const struct weir_quota open = {.flags = WEIR_QUOTA_UNLIMITED}, some = {.units = 1000};
	struct sleeper s[4];
	pthread_t thread[4];

	cr_assert_eq(weir_rate_take(rate, 1, weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(weir_rate_take(rate, 1, 0), -ETIMEDOUT);
	cr_assert_eq(look(rate).abandoned, 2);
	for (unsigned i = 0; i < 4; i++) {
		s[i] = (struct sleeper){.rate = rate, .deadline = WEIR_FOREVER};
		cr_assert_eq(pthread_create(&thread[i], NULL, sleep_on_it, &s[i]), 0);
	}
	until_waiting(rate, 4);
	cr_assert_eq(weir_rate_set(rate, 0, &some), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(s[i].result, 0);
	}
	cr_assert_eq(weir_rate_set(rate, 0, &open), 0);
	cr_assert_eq(weir_rate_take(rate, WEIR_UNITS_MAX, 0), 0);
	weir_rate_destroy(rate);
}

/* The thread that watches leaves; another must watch instead. */
Test(rate, a_watcher_that_leaves_hands_over_its_watch, .timeout = 60)
{
	struct weir_rate *rate = for_threads(50, 8);
	struct sleeper first = {.rate = rate}, second = {.rate = rate, .deadline = WEIR_FOREVER};
	pthread_t a, b;

	cr_assert_eq(weir_rate_settle(rate, 0, 0, 10), 0); /* a debt of some slots */
	first.deadline = weir_now() + 20 * WEIR_MS;
	cr_assert_eq(pthread_create(&a, NULL, sleep_on_it, &first), 0);
	until_come(rate);
	cr_assert_eq(pthread_create(&b, NULL, sleep_on_it, &second), 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	cr_assert(first.result == -ETIMEDOUT || first.result == 0);
	cr_assert_eq(second.result, 0);
	weir_rate_destroy(rate);
}

struct slow {
	struct weir_rate *rate;
	struct weir_wait wait;
	sem_t began, end;
	atomic_bool ended;
};

static void run_slowly(void *arg)
{
	struct slow *slow = arg;

	sem_post(&slow->began);
	sem_wait(&slow->end);
	usleep(1000);
	slow->ended = true;
}

static void *serve_rate(void *arg)
{
	(void)weir_rate_serve(arg);
	return NULL;
}

/* A waiter whose callback is being run by another thread. */
static pthread_t start_slow(struct slow *slow)
{
	pthread_t thread;

	slow->rate = with_queue(10, 1);
	sem_init(&slow->began, 0, 0);
	sem_init(&slow->end, 0, 0);
	cr_assert_eq(drain(slow->rate, 1), 1);
	cr_assert_eq(weir_rate_enqueue(slow->rate, &one, run_slowly, slow, &slow->wait), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(pthread_create(&thread, NULL, serve_rate, slow->rate), 0);
	sem_wait(&slow->began);
	return thread;
}

Test(rate, a_poll_or_cancel_waits_for_a_callback_that_is_running, .timeout = 60)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct slow slow = {.ended = false};
		pthread_t thread = start_slow(&slow);

		sem_post(&slow.end);
		if (cancels)
			cr_assert_eq(weir_rate_cancel(slow.rate, &slow.wait), -EALREADY);
		else
			cr_assert_eq(weir_rate_poll(slow.rate, &slow.wait), 0);
		cr_assert(slow.ended);
		pthread_join(thread, NULL);
		weir_rate_destroy(slow.rate);
	}
}

static void poll_the_other(void *arg)
{
	struct taker *t = arg;

	t->other_answer = weir_rate_poll(t->rate, &t->other);
}

/* Two threads that run callbacks may each poll the other's waiter. */
Test(rate, a_poll_from_another_callback_does_not_wait, .timeout = 60)
{
	struct slow slow = {.ended = false};
	pthread_t thread = start_slow(&slow);
	struct weir_rate *rate = with_queue(10, 1);
	struct taker taker = {.rate = slow.rate, .other = slow.wait};

	cr_assert_eq(weir_rate_enqueue(rate, &one, poll_the_other, &taker, &taker.wait), 0);
	cr_assert_eq(taker.other_answer, -EAGAIN);
	cr_assert_not(slow.ended);
	sem_post(&slow.end);
	pthread_join(thread, NULL);
	cr_assert_eq(weir_rate_poll(slow.rate, &slow.wait), 0);
	weir_rate_destroy(slow.rate);
	weir_rate_destroy(rate);
}

Test(rate, a_threads_seat_cannot_be_polled, .timeout = 60)
{
	struct weir_rate *rate = for_threads(0, 1);
	const struct weir_quota open = {.flags = WEIR_QUOTA_UNLIMITED};
	struct weir_wait forged = {.slot = 0, .stamp = 1};
	struct sleeper s = {.rate = rate, .deadline = WEIR_FOREVER};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, sleep_on_it, &s), 0);
	until_waiting(rate, 1);
	cr_assert_eq(weir_rate_poll(rate, &forged), -EINVAL);
	cr_assert_eq(weir_rate_cancel(rate, &forged), -EINVAL);
	cr_assert_eq(look(rate).waiting, 1);
	cr_assert_eq(weir_rate_set(rate, 0, &open), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(s.result, 0);
	weir_rate_destroy(rate);
}

Test(rate, without_a_queue_no_call_waits)
{
	struct weir_rate *rate = for_threads(1, 0);
	struct weir_wait wait;

	cr_assert_eq(weir_rate_take(rate, 1, WEIR_FOREVER), -EAGAIN);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), -EAGAIN);
	cr_assert_eq(weir_rate_poll(rate, &wait), -EINVAL);
	cr_assert_eq(look(rate).refused, 2);
	weir_rate_destroy(rate);
}

/*
 * Anything may happen between a call's reading of the clock and what follows from it. Here it
 * happens in the clock, so each time in the same way.
 */

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

Test(rate, a_slot_that_begins_meanwhile_causes_no_refusal)
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

Test(rate, a_slot_that_is_used_up_meanwhile_refuses)
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

Test(rate, concurrent_throttling_lowers_the_pace_once)
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

Test(rate, a_late_change_leaves_no_debt)
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

Test(rate, a_late_throttling_leaves_no_debt)
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

Test(rate, a_charge_uses_the_terms_of_its_time)
{
	struct weir_rate *rate = crossed_rate();

	meanwhile = the_quota_falls_and_time_passes;
	cr_assert_eq(weir_rate_settle(rate, 0, 0, 1), 0);
	cr_assert_eq(look(rate).quotas[0].debt, 0);
	clock_time += TENTH;
	cr_assert_eq(drain(rate, 1), 1);
	weir_rate_destroy(rate);
}

Test(rate, refusals_for_years_come_to_an_end)
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

Test(rate, a_turn_beyond_the_countable_slots)
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
