/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limiters for tests of single calls: a settable limit, and a clock that the test sets.
 */
#ifndef WEIR_TESTS_UNIT_RIG_H
#define WEIR_TESTS_UNIT_RIG_H

#include <criterion/criterion.h>

#include <weir/weir.h>

static weir_time rig_time;

static inline weir_time rig_now(const struct weir_clock *clock)
{
	(void)clock;
	return rig_time;
}

static const struct weir_clock rig_clock = {.now = rig_now};

static struct weir_settable_config rig_settable;

/* A configuration to add to, with a settable limit. */
static inline struct weir_config rig_config(uint32_t limit)
{
	struct weir_config config;

	rig_settable = (struct weir_settable_config){.initial = limit};
	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &rig_settable;
	config.clock = &rig_clock;
	return config;
}

static inline struct weir_limiter *rig_make(const struct weir_config *config)
{
	struct weir_limiter *limiter;
	char why[160] = "";

	cr_assert_eq(weir_config_check(config, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(weir_limiter_create(config, &limiter), 0);
	return limiter;
}

static inline struct weir_snapshot rig_snapshot(const struct weir_limiter *limiter)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s;
}

static inline struct weir_partition_snapshot rig_partition(const struct weir_limiter *limiter,
							   unsigned index)
{
	struct weir_partition_snapshot s;

	weir_partition_snapshot_init(&s);
	cr_assert_eq(weir_partition_snapshot_take(limiter, index, &s), 0);
	return s;
}

/* Try count acquisitions. Returns how many were admitted; their tokens come first. */
static inline uint32_t rig_fill(struct weir_limiter *limiter, const struct weir_call *call,
				struct weir_token *tokens, uint32_t count)
{
	struct weir_token token;
	uint32_t admitted = 0;

	for (uint32_t i = 0; i < count; i++)
		if (weir_try_acquire_for(limiter, call, &token) == 0)
			tokens[admitted++] = token;
	return admitted;
}

static inline void rig_empty(struct weir_limiter *limiter, struct weir_token *tokens,
			     uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		weir_release(limiter, &tokens[i], WEIR_IGNORE);
}

#endif
