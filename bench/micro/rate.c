/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.c - a call that a rate admits at once or refuses, and a handwritten token bucket. Each reads
 * the clock once, and twice if refused.
 */
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * The highest rate: each slot is worth thousands of times what all threads can take in it, so a
 * refusal is a fault of the library.
 */
#define PLENTY (UINT64_C(64) * WEIR_S)

struct bucket {
	pthread_mutex_t mutex;
	double left, per_ns, most;
	uint64_t since;
};

static void *bucket_make(const struct subject *self, unsigned threads)
{
	struct bucket *bucket = must(aligned_alloc(LINE, LINE));

	(void)self;
	(void)threads;
	*bucket = (struct bucket){.per_ns = 64, .most = 64e9, .since = clock_read()};
	pthread_mutex_init(&bucket->mutex, NULL);
	return bucket;
}

static inline bool bucket_take(struct bucket *bucket, double units)
{
	const uint64_t now = clock_read();
	bool taken;

	pthread_mutex_lock(&bucket->mutex);
	if (now > bucket->since) {
		bucket->left += (double)(now - bucket->since) * bucket->per_ns;
		if (bucket->left > bucket->most)
			bucket->left = bucket->most;
		bucket->since = now;
	}
	taken = bucket->left >= units;
	if (taken)
		bucket->left -= units;
	pthread_mutex_unlock(&bucket->mutex);
	return taken;
}

static uint64_t bucket_loop(void *shared, struct worker *worker, uint64_t times)
{
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += !bucket_take(shared, 1);
	return refused;
}

static void *rate_of(uint64_t units, unsigned quotas)
{
	struct weir_rate_config config;
	struct weir_rate *rate;

	weir_rate_config_init(&config);
	config.quota_count = quotas;
	for (unsigned i = 0; i < quotas; i++)
		config.quotas[i] = (struct weir_quota){.units = units};
	must_do(weir_rate_create(&config, &rate), "weir_rate_create");
	return rate;
}

static void *rate_make(const struct subject *self, unsigned threads)
{
	(void)threads;
	return rate_of(PLENTY, *(const unsigned *)self->detail);
}

static void *closed_make(const struct subject *self, unsigned threads)
{
	(void)threads;
	return rate_of(0, *(const unsigned *)self->detail);
}

/* After weir_rate_throttled() every call computes the steps back to the full pace. */
static void *lowered_make(const struct subject *self, unsigned threads)
{
	struct weir_rate *rate = rate_make(self, threads);

	weir_rate_throttled(rate, 0);
	while (weir_rate_try(rate, 1) != 0)
		;
	return rate;
}

static void rate_unmake(void *shared)
{
	weir_rate_destroy(shared);
}

static uint64_t try_loop(void *shared, struct worker *worker, uint64_t times)
{
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_rate_try(shared, 1) != 0;
	return refused;
}

static uint64_t several_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct weir_cost cost = {.units = {1, 1}};
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_rate_try_for(shared, &cost) != 0;
	return refused;
}

static const unsigned one = 1, two = 2;

static const struct subject table[] = {
	{
		.group = "rate",
		.name = "bucket-mutex",
		.about = "a token bucket of twenty lines in floating point, under a mutex",
		.make = bucket_make,
		.unmake = free,
		.loop = bucket_loop,
	},
	{
		.group = "rate",
		.name = "rate-try",
		.about = "weir_rate_try()",
		.make = rate_make,
		.unmake = rate_unmake,
		.loop = try_loop,
		.detail = &one,
	},
	{
		.group = "rate",
		.name = "rate-two",
		.about = "the same with two quotas",
		.make = rate_make,
		.unmake = rate_unmake,
		.loop = several_loop,
		.detail = &two,
	},
	{
		.group = "rate",
		.name = "rate-lowered",
		.about = "the same with one quota, after weir_rate_throttled()",
		.make = lowered_make,
		.unmake = rate_unmake,
		.loop = try_loop,
		.detail = &one,
	},
	{
		.group = "rate",
		.name = "rate-refused",
		.about = "the same with nothing left: refused",
		.make = closed_make,
		.unmake = rate_unmake,
		.loop = try_loop,
		.flags = REFUSES,
		.detail = &one,
	},
};

void rate_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
