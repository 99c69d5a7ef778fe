/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch job that uses a slow service, and finds out how many calls at once it should make.
 *
 * The service, which is part of this program, processes a fixed number of calls at once. All others
 * wait, so with more calls at a time each takes longer, and the throughput stays the same. The job
 * does not know that number. It starts with two and lets the limit find out. It prints the result,
 * and fails if a call was lost or the limit is implausible.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

#define CALLS   1500
#define PLACES  8 /* slots of the service, unknown to the job */
#define INITIAL 2

struct service {
	sem_t places;
	atomic_uint served;
};

static enum weir_outcome call(void *arg)
{
	struct service *service = arg;

	while (sem_wait(&service->places) != 0)
		;
	nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
	sem_post(&service->places);
	atomic_fetch_add(&service->served, 1);
	return WEIR_SUCCESS;
}

static int make_pool(struct weir_executor **executor)
{
	const struct weir_vegas_config vegas = {.initial = INITIAL};
	struct weir_executor_config config;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_vegas;
	limiter.limit_config = &vegas;
	limiter.window_min = 20 * WEIR_MS; /* the job is short, so learn faster */
	weir_executor_config_init(&config);
	config.limiter_config = &limiter;
	config.name = "pool";
	return weir_executor_create(&config, executor);
}

int main(void)
{
	struct weir_executor_stats stats;
	struct weir_executor *executor;
	struct service service = {.served = 0};
	unsigned failed = 0, found;
	weir_time start;

	sem_init(&service.places, 0, PLACES);
	if (make_pool(&executor) != 0)
		return EXIT_FAILURE;

	start = weir_now();
	for (unsigned i = 0; i < CALLS; i++)
		failed += weir_executor_submit(executor, call, &service, WEIR_FOREVER) != 0;
	weir_executor_drain(executor, WEIR_FOREVER);

	found = weir_limit(weir_executor_limiter(executor));
	weir_executor_stats_init(&stats);
	weir_executor_stats_take(executor, &stats);
	printf("%u calls of 5 ms in %.2f s, by %u threads at the end\n", service.served,
	       (double)(weir_now() - start) / 1e9, stats.threads);
	printf("the service has %d places; the limit went from %d to %u\n", PLACES, INITIAL, found);
	printf("in flight %u\n", weir_inflight(weir_executor_limiter(executor)));
	failed += stats.completed != CALLS || service.served != CALLS;
	failed += weir_inflight(weir_executor_limiter(executor)) != 0;
	failed += found < PLACES / 2 || found > PLACES * 4;
	weir_executor_destroy(executor);
	sem_destroy(&service.places);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
