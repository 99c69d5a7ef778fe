/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * executor.c - time an empty task from its submission to its end. The submitting thread can be at
 * most QUEUE tasks ahead of the threads that run them, so over many tasks both sides are measured.
 */
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 2
#define QUEUE   64

struct pool {
	struct weir_executor *executor;
	pthread_barrier_t all_here;
};

static enum weir_outcome nothing(void *arg)
{
	(void)arg;
	return WEIR_SUCCESS;
}

static enum weir_outcome meet(void *arg)
{
	struct pool *pool = arg;

	pthread_barrier_wait(&pool->all_here);
	return WEIR_SUCCESS;
}

static void submit(struct weir_executor *executor, weir_task_fn *task, void *arg)
{
	must_do(weir_executor_submit(executor, task, arg, WEIR_FOREVER), "weir_executor_submit");
}

/* Tasks that wait for each other need a thread each, so this starts all threads. */
static void *pool_make(const struct subject *self, unsigned threads)
{
	struct pool *pool = must(malloc(sizeof(*pool)));
	struct weir_fixed_config fixed = {.limit = THREADS};
	struct weir_executor_config config;
	struct weir_config limiter;

	(void)self;
	(void)threads;
	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	weir_executor_config_init(&config);
	config.limiter_config = &limiter;
	config.threads_max = THREADS;
	config.queue = QUEUE;
	config.idle = WEIR_FOREVER;
	must_do(weir_executor_create(&config, &pool->executor), "weir_executor_create");
	pthread_barrier_init(&pool->all_here, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		submit(pool->executor, meet, pool);
	return pool;
}

static void pool_unmake(void *shared)
{
	struct pool *pool = shared;

	must_do(weir_executor_destroy(pool->executor), "weir_executor_destroy");
	pthread_barrier_destroy(&pool->all_here);
	free(pool);
}

static uint64_t submit_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct pool *pool = shared;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++)
		refused += weir_executor_submit(pool->executor, nothing, NULL, WEIR_FOREVER) != 0;
	return refused;
}

static const struct subject table[] = {
	{
		.group = "executor",
		.name = "task",
		.about = "an empty task, through a queue of 64, in an executor of two threads",
		.make = pool_make,
		.unmake = pool_unmake,
		.loop = submit_loop,
		.slow = 100,
	},
};

void executor_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
