/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates for tests: a clock that the test sets, and what is left of a quota.
 */
#ifndef WEIR_TESTS_UNIT_RATE_RIG_H
#define WEIR_TESTS_UNIT_RATE_RIG_H

#include <criterion/criterion.h>

#include <weir/weir.h>

#define DAY (24 * 3600 * WEIR_S)

static weir_time clock_time;

/*
 * What other threads do while a call reads the clock, and the time it reads. NULL: nothing, and the
 * time.
 */
static weir_time (*meanwhile)(void);

static inline weir_time read_clock(const struct weir_clock *clock)
{
	weir_time (*const others)(void) = meanwhile;

	(void)clock;
	meanwhile = NULL;
	return others != NULL ? others() : clock_time;
}

static const struct weir_clock given_clock = {.now = read_clock};

static inline struct weir_rate_config plan(uint64_t units, weir_dur period, weir_dur slot)
{
	struct weir_rate_config config;

	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = units, .period = period};
	config.slot = slot;
	config.clock = &given_clock;
	return config;
}

static inline struct weir_rate *make(const struct weir_rate_config *config)
{
	struct weir_rate *rate;
	char why[160] = "";

	cr_assert_eq(weir_rate_config_check(config, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(weir_rate_create(config, &rate), 0);
	return rate;
}

static inline struct weir_rate *rate_of(uint64_t units, weir_dur period, weir_dur slot)
{
	const struct weir_rate_config config = plan(units, period, slot);

	return make(&config);
}

static inline struct weir_rate_snapshot look(struct weir_rate *rate)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	return s;
}

/* As many calls of that many units as are admitted now. */
static inline uint64_t drain(struct weir_rate *rate, uint64_t units)
{
	uint64_t calls = 0;

	while (weir_rate_try(rate, units) == 0)
		calls++;
	return calls;
}

/* What is left, taken in one call. */
static inline uint64_t drain_whole(struct weir_rate *rate)
{
	const uint64_t left = look(rate).quotas[0].available;

	if (left > 0)
		cr_assert_eq(weir_rate_try(rate, left), 0);
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN);
	return left;
}

static inline struct weir_rate *with_queue(uint64_t units, uint32_t queue)
{
	struct weir_rate_config config = plan(units, WEIR_S, 100 * WEIR_MS);

	config.queue = queue;
	return make(&config);
}

static const struct weir_cost one = {.units = {1}};

#endif
