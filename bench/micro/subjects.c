/*
 * subjects.c - the limiter, and what it is compared with. Every one of them, the
 * floor too, reads the clock twice a pair and uses both readings: without them
 * there is no latency to adapt to.
 */
#include "subjects.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

/* More than there are threads: nobody is refused. */
#define LIMIT 1000

#define HOSTS 16

static uint64_t clock_read(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * WEIR_S + (uint64_t)t.tv_nsec;
}

static void *must(void *memory)
{
	if (memory == NULL) {
		perror("memory");
		exit(EXIT_FAILURE);
	}
	return memory;
}

/*
 * The floor: less than this no limiter can do that counts what is in flight and
 * measures latency, and shares nothing between threads.
 */
static uint64_t floor_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	(void)shared;
	for (uint64_t i = 0; i < pairs; i++) {
		uint64_t start = clock_read();

		atomic_fetch_add_explicit(&worker->begun, 1, memory_order_relaxed);
		worker->latency_sum += clock_read() - start;
		atomic_fetch_add_explicit(&worker->ended, 1, memory_order_relaxed);
	}
	return 0;
}

static struct weir_limiter *limiter_create(const struct weir_config *config)
{
	struct weir_limiter *limiter;

	if (weir_limiter_create(config, &limiter) != 0) {
		fprintf(stderr, "no limiter %s\n", config->limit->name);
		exit(EXIT_FAILURE);
	}
	return limiter;
}

static struct weir_limiter *limiter_make(const struct weir_limit_ops *ops, const void *limit_config)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.limit_config = limit_config;
	return limiter_create(&config);
}

static void *fixed_make(void)
{
	return limiter_make(&weir_fixed, &(struct weir_fixed_config){.limit = LIMIT});
}

/* With a quantile as the window's latency, every value is kept: what that costs. */
static void *p99_make(void)
{
	struct weir_fixed_config fixed = {.limit = LIMIT};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.rtt = WEIR_RTT_QUANTILE;
	config.quantile = 0.99;
	return limiter_create(&config);
}

static void *vegas_make(void)
{
	return limiter_make(&weir_vegas, &(struct weir_vegas_config){.initial = 100});
}

static void *gradient2_make(void)
{
	return limiter_make(&weir_gradient2,
			    &(struct weir_gradient2_config){.initial = 100, .min = 100});
}

static void limiter_unmake(void *shared)
{
	weir_limiter_destroy(shared);
}

static uint64_t limiter_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < pairs; i++) {
		if (weir_try_acquire(shared, &token) != 0)
			refused++;
		else
			weir_release(shared, &token, WEIR_SUCCESS);
	}
	return refused;
}

/* Four partitions; each thread's calls go to one of them. */
static void *partitioned_make(void)
{
	static const struct weir_partition partitions[] = {
		{.name = "a", .share = 0.4},
		{.name = "b", .share = 0.3},
		{.name = "c", .share = 0.2},
		{.name = "d", .share = 0.1},
	};
	struct weir_vegas_config vegas = {.initial = 100};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_vegas;
	config.limit_config = &vegas;
	config.partitions = partitions;
	config.partition_count = 4;
	return limiter_create(&config);
}

static void *shedding_make(void)
{
	struct weir_vegas_config vegas = {.initial = 100};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_vegas;
	config.limit_config = &vegas;
	config.shed = 1;
	return limiter_create(&config);
}

static uint64_t call_loop(struct weir_limiter *limiter, const struct weir_call *call,
			  uint64_t pairs)
{
	struct weir_token token;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < pairs; i++) {
		if (weir_try_acquire_for(limiter, call, &token) != 0)
			refused++;
		else
			weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static uint64_t partitioned_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	struct weir_call call = {.partition = (uint16_t)(1 + ((uintptr_t)worker / LINE) % 4)};

	return call_loop(shared, &call, pairs);
}

static uint64_t shedding_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	struct weir_call call = {.priority = 3};

	(void)worker;
	return call_loop(shared, &call, pairs);
}

/* What one writes by hand: the limit, and what is known of latency, under one mutex. */
struct guarded {
	pthread_mutex_t mutex;
	unsigned inflight, limit;
	uint64_t count, latency_sum;
};

static void *guarded_make(void)
{
	struct guarded *guarded = must(aligned_alloc(LINE, LINE));

	*guarded = (struct guarded){.limit = LIMIT};
	pthread_mutex_init(&guarded->mutex, NULL);
	return guarded;
}

static bool guarded_acquire(struct guarded *guarded)
{
	bool admitted;

	pthread_mutex_lock(&guarded->mutex);
	admitted = guarded->inflight < guarded->limit;
	if (admitted)
		guarded->inflight++;
	pthread_mutex_unlock(&guarded->mutex);
	return admitted;
}

static void guarded_release(struct guarded *guarded, uint64_t latency)
{
	pthread_mutex_lock(&guarded->mutex);
	guarded->inflight--;
	guarded->count++;
	guarded->latency_sum += latency;
	pthread_mutex_unlock(&guarded->mutex);
}

static uint64_t guarded_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < pairs; i++) {
		uint64_t start = clock_read();

		if (!guarded_acquire(shared)) {
			refused++;
			continue;
		}
		guarded_release(shared, clock_read() - start);
	}
	return refused;
}

static void *semaphore_make(void)
{
	sem_t *semaphore = must(aligned_alloc(LINE, LINE));

	if (sem_init(semaphore, 0, LIMIT) != 0) {
		perror("sem_init");
		exit(EXIT_FAILURE);
	}
	return semaphore;
}

static uint64_t semaphore_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < pairs; i++) {
		uint64_t start = clock_read();

		if (sem_trywait(shared) != 0) {
			refused++;
			continue;
		}
		worker->latency_sum += clock_read() - start;
		sem_post(shared);
	}
	return refused;
}

/* One permit, and it is taken for good. */
static void *full_make(void)
{
	struct weir_limiter *limiter = limiter_make(&weir_fixed,
						    &(struct weir_fixed_config){.limit = 1});
	struct weir_token token;

	if (weir_try_acquire(limiter, &token) != 0)
		abort();
	return limiter;
}

/*
 * A limiter a host, asked for by name at every call, and the same with the limiters
 * at hand: what the look-up costs.
 */
struct hosts {
	struct weir_registry *registry;
	struct weir_limiter *limiters[HOSTS];
	char names[HOSTS][32];
};

static void *hosts_make(void)
{
	struct hosts *hosts = must(malloc(sizeof(*hosts)));
	struct weir_fixed_config fixed = {.limit = LIMIT};
	struct weir_registry_config config;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	if (weir_registry_create(&config, &hosts->registry) != 0)
		abort();
	for (unsigned i = 0; i < HOSTS; i++) {
		snprintf(hosts->names[i], sizeof(hosts->names[i]), "api-%u.example.net:443", i);
		if (weir_registry_get(hosts->registry, hosts->names[i], strlen(hosts->names[i]),
				      &hosts->limiters[i]) != 0)
			abort();
	}
	return hosts;
}

static void hosts_unmake(void *shared)
{
	struct hosts *hosts = shared;

	for (unsigned i = 0; i < HOSTS; i++)
		weir_registry_put(hosts->registry, hosts->limiters[i]);
	if (weir_registry_destroy(hosts->registry) != 0)
		abort();
	free(hosts);
}

static uint64_t held_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	struct hosts *hosts = shared;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < pairs; i++)
		refused += limiter_loop(hosts->limiters[i % HOSTS], worker, 1);
	return refused;
}

static uint64_t registry_loop(void *shared, struct worker *worker, uint64_t pairs)
{
	struct hosts *hosts = shared;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < pairs; i++) {
		const char *name = hosts->names[i % HOSTS];
		struct weir_limiter *limiter;

		if (weir_registry_get(hosts->registry, name, strlen(name), &limiter) != 0) {
			refused++;
			continue;
		}
		refused += limiter_loop(limiter, worker, 1);
		weir_registry_put(hosts->registry, limiter);
	}
	return refused;
}

static const struct subject subjects[] = {
	{"floor", "two clock reads, two additions to a line of the thread's own", NULL, NULL,
	 floor_loop, 0, NULL},
	{"weir-fixed", "weir, limit fixed", fixed_make, limiter_unmake, limiter_loop, 0, NULL},
	{"weir-vegas", "weir, limit vegas", vegas_make, limiter_unmake, limiter_loop, 0, NULL},
	{"weir-gradient2", "weir, limit gradient2", gradient2_make, limiter_unmake, limiter_loop, 0,
	 NULL},
	{"weir-p99", "weir, limit fixed, windows with their 99th percentile", p99_make,
	 limiter_unmake, limiter_loop, 0, NULL},
	{"weir-partitioned", "weir, limit vegas, four partitions", partitioned_make, limiter_unmake,
	 partitioned_loop, 0, "weir-vegas"},
	{"weir-shedding", "weir, limit vegas, shedding by priority", shedding_make, limiter_unmake,
	 shedding_loop, 0, "weir-vegas"},
	{"mutex", "a limiter of twenty lines, under a mutex", guarded_make, free, guarded_loop, 0,
	 NULL},
	{"semaphore", "sem_trywait, sem_post, two clock reads", semaphore_make, free,
	 semaphore_loop, 0, NULL},
	{"weir-refusal", "weir, full: a refused weir_try_acquire() and no release", full_make,
	 limiter_unmake, limiter_loop, 1, NULL},
	{"weir-held", "weir, limit fixed, sixteen limiters in turn", hosts_make, hosts_unmake,
	 held_loop, 0, NULL},
	{"weir-registry", "the same, each got from a registry by its name, and put", hosts_make,
	 hosts_unmake, registry_loop, 0, "weir-held"},
};

const struct subject *subject_at(unsigned index)
{
	return index < sizeof(subjects) / sizeof(subjects[0]) ? &subjects[index] : NULL;
}
