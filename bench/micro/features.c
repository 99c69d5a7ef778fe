/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * features.c - a pair by the features of the limiter and of the call, and by the distance from the
 * limit. The features use vegas; `plain` is the one to compare them with.
 */
#include "rig.h"

#include <stdlib.h>
#include <weir/limits.h>

/* The length of ten windows. */
#define WARM_UP WEIR_S

struct feature {
	void (*configure)(struct weir_config *config); /* NULL: all defaults */
	struct weir_call call;
	bool spread; /* threads are spread over the partitions: all calls of a thread go to one */
	bool far;    /* warmed up by windows, so that the limiter knows it is far from its limit */
	bool by_default; /* the default limit, not vegas */
	unsigned held;   /* permits that other calls hold all the time */
	enum weir_outcome outcome;
};

/* A limiter, and the feature that its calls use. */
struct featured {
	struct weir_limiter *limiter;
	const struct feature *feature;
	struct weir_token held[LIMIT];
};

/* Sample calls one at a time in the past, up to now: after that, permits are cached. */
static void warm_up(struct weir_limiter *limiter)
{
	const weir_time now = weir_now();

	for (weir_dur ago = WARM_UP; ago > 0; ago -= WEIR_MS)
		weir_sample_at(limiter, now - ago - WEIR_US, now - ago, 1, WEIR_SUCCESS);
}

static void *featured_make(const struct subject *self, unsigned threads)
{
	const struct feature *feature = self->detail;
	struct featured *featured = must(malloc(sizeof(*featured)));
	struct weir_config config = roomy(feature->by_default ? &weir_elastic : self->limit);

	(void)threads;
	config.limit_max = LIMIT;
	featured->feature = feature;
	if (featured->feature->configure != NULL)
		featured->feature->configure(&config);
	featured->limiter = limiter_of(&config);
	if (featured->feature->far)
		warm_up(featured->limiter);
	settle(featured->limiter);
	for (unsigned i = 0; i < feature->held; i++)
		must_do(weir_try_acquire(featured->limiter, &featured->held[i]),
			"weir_try_acquire");
	return featured;
}

static void featured_unmake(void *shared)
{
	struct featured *featured = shared;

	for (unsigned i = 0; i < featured->feature->held; i++)
		weir_release(featured->limiter, &featured->held[i], WEIR_IGNORE);
	weir_limiter_destroy(featured->limiter);
	free(featured);
}

static struct weir_call call_of(const struct featured *featured, const struct worker *worker)
{
	unsigned partitions = weir_partition_count(featured->limiter);
	struct weir_call call = featured->feature->call;

	if (featured->feature->spread)
		call.partition = (uint16_t)(1 + worker->number % (partitions - 1));
	return call;
}

static uint64_t plain_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct featured *featured = shared;

	return pair_loop(featured->limiter, worker, times);
}

static uint64_t outcome_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct featured *featured = shared;
	struct weir_limiter *limiter = featured->limiter;
	const enum weir_outcome outcome = featured->feature->outcome;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		if (weir_try_acquire(limiter, &token) != 0)
			refused++;
		else
			weir_release(limiter, &token, outcome);
	}
	return refused;
}

static uint64_t call_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct featured *featured = shared;
	const struct weir_call call = call_of(featured, worker);
	struct weir_limiter *limiter = featured->limiter;
	struct weir_token token;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		if (weir_try_acquire_for(limiter, &call, &token) != 0)
			refused++;
		else
			weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static uint64_t detach_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct featured *featured = shared;
	struct weir_limiter *limiter = featured->limiter;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		if (weir_try_acquire(limiter, &token) != 0) {
			refused++;
			continue;
		}
		refused += weir_detach(limiter, &token) != 0;
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static uint64_t acquire_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct featured *featured = shared;
	struct weir_limiter *limiter = featured->limiter;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		if (weir_acquire(limiter, WEIR_FOREVER, &token) != 0)
			refused++;
		else
			weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static void with_quantile(struct weir_config *config)
{
	config->rtt = WEIR_RTT_QUANTILE;
	config->quantile = 0.99;
}

static void with_partitions(struct weir_config *config)
{
	static const struct weir_partition partitions[] = {
		{.name = "a", .share = 0.4},
		{.name = "b", .share = 0.3},
		{.name = "c", .share = 0.2},
		{.name = "d", .share = 0.1},
	};

	config->partitions = partitions;
	config->partition_count = 4;
}

static void with_priorities(struct weir_config *config)
{
	config->shed = 1;
}

static void with_burst(struct weir_config *config)
{
	config->burst = 100;
}

static void with_shadow(struct weir_config *config)
{
	config->shadow = 1;
}

static void with_track(struct weir_config *config)
{
	config->track = 1024;
}

static void with_queue(struct weir_config *config)
{
	config->queue = 100;
}

static void with_one_stripe(struct weir_config *config)
{
	config->stripes = 1;
}

static void with_all(struct weir_config *config)
{
	with_quantile(config);
	with_partitions(config);
	with_priorities(config);
	with_burst(config);
	with_track(config);
	with_queue(config);
}

static void with_all_sampled(struct weir_config *config)
{
	config->sample_rate = WEIR_SAMPLE_ALL;
}

/* A row of the table; the feature is a compound literal with static storage. */
#define FEATURE(what, does, in, ...)                                                               \
	{                                                                                          \
		.group = "features", .name = what, .about = does, .make = featured_make,           \
		.unmake = featured_unmake, .loop = (in),                                           \
		.detail = &(const struct feature){__VA_ARGS__},                                    \
	}

static const struct subject table[] = {
	FEATURE("plain", "a pair, no feature", plain_loop, .configure = NULL),
	FEATURE("far", "the same after some windows, far from the limit: permits are cached",
		plain_loop, .far = true),
	FEATURE("default", "a pair by the default limit, far from it", plain_loop, .far = true,
		.by_default = true),
	FEATURE("default-half", "the same, with half of the limit in flight", plain_loop,
		.far = true, .by_default = true, .held = LIMIT / 2),
	FEATURE("default-nine-tenths", "with nine tenths in flight", plain_loop, .far = true,
		.by_default = true, .held = LIMIT / 10 * 9),
	FEATURE("default-all", "far from the limit, with every call as a sample", plain_loop,
		.far = true, .by_default = true, .configure = with_all_sampled),
	FEATURE("call", "by weir_try_acquire_for(), an ordinary call", call_loop, .call.cost = 1),
	FEATURE("cost", "a call of cost 3", call_loop, .call.cost = 3),
	FEATURE("bypass", "a call that bypasses the limit", call_loop,
		.call.flags = WEIR_CALL_BYPASS),
	FEATURE("detach", "a call that is detached", detach_loop, .configure = NULL),
	FEATURE("dropped", "a call that was dropped", outcome_loop, .outcome = WEIR_DROPPED),
	FEATURE("ignored", "a call that is no sample", outcome_loop, .outcome = WEIR_IGNORE),
	FEATURE("burst", "with permits for bursts", plain_loop, .configure = with_burst),
	FEATURE("shadow", "in shadow mode", plain_loop, .configure = with_shadow),
	FEATURE("queue", "by weir_acquire(), with an empty queue", acquire_loop,
		.configure = with_queue),
	FEATURE("track", "with tracking of where tokens were acquired", plain_loop,
		.configure = with_track),
	FEATURE("quantile", "windows with their 99th percentile", plain_loop,
		.configure = with_quantile),
	FEATURE("priorities", "with load shedding by priority", call_loop,
		.configure = with_priorities, .call.priority = 3),
	FEATURE("partitions", "four partitions, each thread in one of them", call_loop,
		.configure = with_partitions, .spread = true),
	FEATURE("priorities-far", "priorities, far from the limit", call_loop, .far = true,
		.configure = with_priorities, .call.priority = 3),
	FEATURE("partitions-far", "partitions, far from the limit", call_loop, .far = true,
		.configure = with_partitions, .spread = true),
	FEATURE("partition-far", "the same, all threads in one partition", call_loop, .far = true,
		.configure = with_partitions, .call.partition = 1),
	FEATURE("all", "quantile, partitions, priorities, burst, tracking and a queue together",
		call_loop, .configure = with_all, .spread = true),
	FEATURE("one-stripe", "all threads share one stripe", plain_loop,
		.configure = with_one_stripe),
};

void features_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
