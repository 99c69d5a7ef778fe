/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * refusals.c - the ways in which a full limiter refuses a call.
 */
#include "rig.h"

#include <errno.h>

/* A limiter with one permit, which is never released. */
static struct weir_limiter *full(const struct weir_config *config)
{
	struct weir_limiter *limiter = limiter_of(config);
	struct weir_token token;

	must_do(weir_try_acquire(limiter, &token), "weir_try_acquire");
	return limiter;
}

static void *full_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	(void)self;
	(void)threads;
	return full(&config);
}

static void *partitioned_make(const struct subject *self, unsigned threads)
{
	const struct weir_partition half = {.name = "half", .share = 0.5};
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	(void)self;
	(void)threads;
	config.partitions = &half;
	config.partition_count = 1;
	return full(&config);
}

static void *priorities_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	(void)self;
	(void)threads;
	config.shed = 1;
	return full(&config);
}

static void *shadow_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	(void)self;
	(void)threads;
	config.shadow = 1;
	return full(&config);
}

/* The only slot of the queue is taken for good as well. */
static void *queued_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);
	struct weir_limiter *limiter;
	struct weir_wait wait;

	(void)self;
	(void)threads;
	config.queue = 1;
	limiter = full(&config);
	must_do(weir_enqueue(limiter, NULL, NULL, &wait), "weir_enqueue");
	return limiter;
}

static void *hurried_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	(void)self;
	config.queue = threads;
	return full(&config);
}

static uint64_t call_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct weir_call call = {.cost = 1};
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_try_acquire_for(shared, &call, &token) == -EAGAIN;
	return refused;
}

static uint64_t refusal_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_try_acquire(shared, &token) == -EAGAIN;
	return refused;
}

static uint64_t queue_full_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_acquire(shared, WEIR_FOREVER, &token) == -EAGAIN;
	return refused;
}

static uint64_t late_loop(void *shared, struct worker *worker, uint64_t times)
{
	const weir_time past = weir_now();
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_acquire(shared, past, &token) == -ETIMEDOUT;
	return refused;
}

static const struct subject table[] = {
	{
		.group = "refusals",
		.name = "refusal",
		.about = "a refused weir_try_acquire(), and no release",
		.make = full_make,
		.unmake = limiter_unmake,
		.loop = refusal_loop,
		.flags = REFUSES,
	},
	{
		.group = "refusals",
		.name = "refusal-partition",
		.about = "the same with partitions",
		.make = partitioned_make,
		.unmake = limiter_unmake,
		.loop = call_loop,
		.flags = REFUSES,
	},
	{
		.group = "refusals",
		.name = "refusal-priority",
		.about = "the same with priorities",
		.make = priorities_make,
		.unmake = limiter_unmake,
		.loop = call_loop,
		.flags = REFUSES,
	},
	{
		.group = "refusals",
		.name = "refusal-queue",
		.about = "weir_acquire(), with a full queue",
		.make = queued_make,
		.unmake = limiter_unmake,
		.loop = queue_full_loop,
		.flags = REFUSES,
	},
	{
		.group = "refusals",
		.name = "refusal-late",
		.about = "weir_acquire(), with a past deadline",
		.make = hurried_make,
		.unmake = limiter_unmake,
		.loop = late_loop,
		.flags = REFUSES,
	},
	{
		.group = "refusals",
		.name = "refusal-shadow",
		.about = "a call admitted in shadow mode instead of refused, and its release",
		.make = shadow_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
	},
};

void refusals_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
