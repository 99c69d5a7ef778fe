/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call waits for all permits, while no later call can make up for a forgotten waiter: permits are
 * lent to CPUs, called back by other threads, and given back late.
 *
 *   stress-thread_per_cpu [ROUNDS]
 *
 * In each round one thread opens the limiter's permit cache, and goes on calling until it sees that
 * the second thread waits for all the permits there are. A third also tries to take all, without
 * waiting. Then nothing else happens until the waiter has had its turn. Checked: it gets it long
 * before its deadline.
 */

#include <stdatomic.h>

#include <weir/weir.h>

#include "check.h"

#define LIMIT    512
#define HAND     4
#define PATIENCE (20 * WEIR_S)

static const struct weir_call everything = {.cost = LIMIT};

static struct weir_limiter *limiter;
static pthread_barrier_t barrier;
static unsigned rounds;
static atomic_bool served;

/* A few calls at once, that many times. Returns how many had a lent permit. */
static unsigned long come_and_go(uint64_t *seed, uint64_t times)
{
	struct weir_token token[HAND];
	unsigned long lent = 0;

	while (times-- > 0) {
		uint64_t wanted = 1 + draw(seed) % HAND, n = 0;

		while (n < wanted && weir_try_acquire(limiter, &token[n]) == 0)
			lent += token[n++].home != 0;
		while (n > 0)
			weir_release(limiter, &token[--n], WEIR_SUCCESS);
	}
	return lent;
}

/* Start together with the calling thread, or a moment later. */
static void begin(uint64_t *seed)
{
	volatile uint64_t moment = draw(seed) % 300;

	pthread_barrier_wait(&barrier);
	while (moment > 0)
		moment--;
}

static void *call(void *arg)
{
	unsigned long lent = 0;
	uint64_t seed = 1;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		lent += come_and_go(&seed, 30 + draw(&seed) % 200);
		atomic_store(&served, false);
		pthread_barrier_wait(&barrier);
		while (weir_waiting(limiter) == 0 && !atomic_load(&served))
			lent += come_and_go(&seed, 1);
		pthread_barrier_wait(&barrier);
	}
	CHECK(lent > 0); /* otherwise nothing was tested */
	printf("rounds %u, lent %lu\n", rounds, lent);
	return NULL;
}

static void *wait_for_all(void *arg)
{
	struct weir_token token;
	uint64_t seed = 2;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		begin(&seed);
		CHECK(weir_acquire_for(limiter, &everything, weir_now() + PATIENCE, &token) == 0);
		CHECK(token.inflight == LIMIT);
		weir_release(limiter, &token, WEIR_IGNORE);
		atomic_store(&served, true);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void *ask_for_all(void *arg)
{
	struct weir_token token;
	uint64_t seed = 3;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		begin(&seed);
		if (weir_try_acquire_for(limiter, &everything, &token) == 0)
			weir_release(limiter, &token, WEIR_IGNORE);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const roles[])(void *) = {call, wait_for_all, ask_for_all};
	struct weir_settable_config settable = {.initial = LIMIT};
	struct weir_config config;
	pthread_t threads[3];

	rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;
	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.queue = 1;
	config.window_min = config.window_max = 20 * WEIR_US;
	config.stripes = 2;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	CHECK(pthread_barrier_init(&barrier, NULL, 3) == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, roles[i], NULL) == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(weir_inflight(limiter) == 0 && weir_waiting(limiter) == 0);
	pthread_barrier_destroy(&barrier);
	weir_limiter_destroy(limiter);
	return 0;
}
