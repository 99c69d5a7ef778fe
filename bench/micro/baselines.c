/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * baselines.c - what the limiter is compared with. Each reads the clock twice a pair and uses both
 * readings, as a limiter that adapts to latency must.
 */
#include "rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

/*
 * The floor: the least that a limiter must do to count calls in flight and measure latency, with
 * nothing shared between threads.
 */
static uint64_t floor_loop(void *shared, struct worker *worker, uint64_t times)
{
	(void)shared;
	for (uint64_t i = 0; i < times; i++) {
		uint64_t start = clock_read();

		atomic_fetch_add_explicit(&worker->begun, 1, memory_order_relaxed);
		worker->latency_sum += clock_read() - start;
		atomic_fetch_add_explicit(&worker->ended, 1, memory_order_relaxed);
	}
	return 0;
}

static uint64_t clock_loop(void *shared, struct worker *worker, uint64_t times)
{
	(void)shared;
	for (uint64_t i = 0; i < times; i++) {
		uint64_t start = clock_read();

		worker->latency_sum += clock_read() - start;
	}
	return 0;
}

/* A handwritten limiter: the limit and the latency sums under one lock. */
struct guarded {
	union {
		pthread_mutex_t mutex;
		pthread_spinlock_t spin;
	};
	unsigned inflight, limit;
	uint64_t count, latency_sum;
};

static struct guarded *guarded_make(void)
{
	struct guarded *guarded = must(aligned_alloc(LINE, LINE));

	*guarded = (struct guarded){.limit = LIMIT};
	return guarded;
}

static inline bool guarded_acquire(struct guarded *guarded)
{
	if (guarded->inflight >= guarded->limit)
		return false;
	guarded->inflight++;
	return true;
}

static inline void guarded_release(struct guarded *guarded, uint64_t latency)
{
	guarded->inflight--;
	guarded->count++;
	guarded->latency_sum += latency;
}

static inline void guarded_lock(struct guarded *guarded, bool spins)
{
	if (spins)
		pthread_spin_lock(&guarded->spin);
	else
		pthread_mutex_lock(&guarded->mutex);
}

static inline void guarded_unlock(struct guarded *guarded, bool spins)
{
	if (spins)
		pthread_spin_unlock(&guarded->spin);
	else
		pthread_mutex_unlock(&guarded->mutex);
}

/* Inlined twice, so that the choice of the lock costs nothing. */
static inline __attribute__((always_inline)) uint64_t guarded_loop(struct guarded *guarded,
								   uint64_t times, bool spins)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		uint64_t start = clock_read(), latency;
		bool admitted;

		guarded_lock(guarded, spins);
		admitted = guarded_acquire(guarded);
		guarded_unlock(guarded, spins);
		if (!admitted) {
			refused++;
			continue;
		}
		latency = clock_read() - start;
		guarded_lock(guarded, spins);
		guarded_release(guarded, latency);
		guarded_unlock(guarded, spins);
	}
	return refused;
}

static void *mutex_make(const struct subject *self, unsigned threads)
{
	struct guarded *guarded = guarded_make();

	(void)self;
	(void)threads;
	pthread_mutex_init(&guarded->mutex, NULL);
	return guarded;
}

static uint64_t mutex_loop(void *shared, struct worker *worker, uint64_t times)
{
	(void)worker;
	return guarded_loop(shared, times, false);
}

static void *spinlock_make(const struct subject *self, unsigned threads)
{
	struct guarded *guarded = guarded_make();

	(void)self;
	(void)threads;
	pthread_spin_init(&guarded->spin, PTHREAD_PROCESS_PRIVATE);
	return guarded;
}

static uint64_t spinlock_loop(void *shared, struct worker *worker, uint64_t times)
{
	(void)worker;
	return guarded_loop(shared, times, true);
}

static void *semaphore_make(const struct subject *self, unsigned threads)
{
	sem_t *semaphore = must(aligned_alloc(LINE, LINE));

	(void)self;
	(void)threads;
	sem_init(semaphore, 0, LIMIT);
	return semaphore;
}

static uint64_t semaphore_loop(void *shared, struct worker *worker, uint64_t times)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
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

static void *counter_make(const struct subject *self, unsigned threads)
{
	_Atomic uint64_t *counter = must(aligned_alloc(LINE, LINE));

	(void)self;
	(void)threads;
	atomic_init(counter, 0);
	return counter;
}

/* It may exceed the limit for an instant, and then refuses calls that should be admitted. */
static uint64_t counter_loop(void *shared, struct worker *worker, uint64_t times)
{
	_Atomic uint64_t *counter = shared;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		uint64_t start = clock_read();

		if (atomic_fetch_add_explicit(counter, 1, memory_order_acquire) >= LIMIT)
			refused++;
		else
			worker->latency_sum += clock_read() - start;
		atomic_fetch_sub_explicit(counter, 1, memory_order_release);
	}
	return refused;
}

static const struct subject table[] = {
	{
		.group = "baselines",
		.name = "floor",
		.about = "two clock reads, two additions to cache lines of its own thread",
		.loop = floor_loop,
	},
	{
		.group = "baselines",
		.name = "clock",
		.about = "two clock reads",
		.loop = clock_loop,
	},
	{
		.group = "baselines",
		.name = "mutex",
		.about = "a limiter of twenty lines, under a mutex",
		.make = mutex_make,
		.unmake = free,
		.loop = mutex_loop,
	},
	{
		.group = "baselines",
		.name = "spinlock",
		.about = "the same, under a spin lock",
		.make = spinlock_make,
		.unmake = free,
		.loop = spinlock_loop,
	},
	{
		.group = "baselines",
		.name = "semaphore",
		.about = "sem_trywait, sem_post, two clock reads",
		.make = semaphore_make,
		.unmake = free,
		.loop = semaphore_loop,
	},
	{
		.group = "baselines",
		.name = "counter",
		.about = "one shared counter, up and down, two clock reads",
		.make = counter_make,
		.unmake = free,
		.loop = counter_loop,
	},
};

void baselines_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
