/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * halves.c - acquire and release, each timed on its own, and a pair that reads no clock. One call
 * is too short to time: a thread acquires BATCH permits, then releases them, and reads the clock
 * once for each batch.
 */
#include "rig.h"

#define BATCH 64

enum half { ACQUIRE, RELEASE };

static uint64_t take(struct weir_limiter *limiter, struct weir_token *tokens, unsigned count)
{
	uint64_t refused = 0;

	for (unsigned i = 0; i < count; i++)
		refused += weir_try_acquire(limiter, &tokens[i]) != 0;
	return refused;
}

static void give_back(struct weir_limiter *limiter, struct weir_token *tokens, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		weir_release(limiter, &tokens[i], WEIR_SUCCESS);
}

/* Acquire and release, times each; adds up the time of one of the halves. */
static inline uint64_t half_loop(struct weir_limiter *limiter, struct worker *worker,
				 uint64_t times, enum half half)
{
	struct weir_token tokens[BATCH];
	uint64_t refused = 0;

	for (uint64_t done = 0; done < times; done += BATCH) {
		unsigned count = times - done < BATCH ? (unsigned)(times - done) : BATCH;
		uint64_t began = clock_read(), between;

		refused += take(limiter, tokens, count);
		between = clock_read();
		give_back(limiter, tokens, count);
		worker->ns += (double)(half == ACQUIRE ? between - began : clock_read() - between);
	}
	return refused;
}

static uint64_t acquire_loop(void *shared, struct worker *worker, uint64_t times)
{
	return half_loop(shared, worker, times, ACQUIRE);
}

static uint64_t release_loop(void *shared, struct worker *worker, uint64_t times)
{
	return half_loop(shared, worker, times, RELEASE);
}

/* As if every call took 1 us, and one arrived every 2 us. */
static uint64_t at_loop(void *shared, struct worker *worker, uint64_t times)
{
	weir_time now = weir_now();
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++, now += 2 * WEIR_US) {
		if (weir_try_acquire_at(shared, now, &token) != 0)
			refused++;
		else
			weir_release_at(shared, now + WEIR_US, &token, WEIR_SUCCESS);
	}
	return refused;
}

static uint64_t feed_loop(void *shared, struct worker *worker, uint64_t times)
{
	weir_time now = weir_now();

	(void)worker;
	for (uint64_t i = 0; i < times; i++, now += 2 * WEIR_US)
		weir_sample_at(shared, now, now + WEIR_US, 1, WEIR_SUCCESS);
	return 0;
}

static const struct subject table[] = {
	{
		.group = "halves",
		.name = "acquire",
		.about = "weir_try_acquire() alone",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = acquire_loop,
	},
	{
		.group = "halves",
		.name = "release",
		.about = "weir_release() alone",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = release_loop,
	},
	{
		.group = "halves",
		.name = "pair-at",
		.about = "a pair with times from the caller: it reads no clock",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = at_loop,
	},
	{
		.group = "halves",
		.name = "sample-at",
		.about = "weir_sample_at(): neither a clock nor a permit",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = feed_loop,
	},
};

void halves_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
