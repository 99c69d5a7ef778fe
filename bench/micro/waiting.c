/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waiting.c - the queue: threads that sleep for a permit and hand it over, and event loops that
 * enqueue and poll. A hand-over takes from the beginning of one thread's release to the end of
 * another's acquire. The holder keeps the permit until another thread is asleep, waiting for it: a
 * thread that is not yet asleep would get the permit much faster.
 */
#include "rig.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Slots of the queue: many more than waiters, as a cancelled slot is freed with a delay. */
#define PLACES 1000

/* Time for a waiting thread to fall asleep. */
#define HOLD (20 * WEIR_US)

/* One permit, and threads that compete for it. */
struct line {
	struct weir_limiter *limiter;
	_Atomic unsigned threads; /* not finished yet */
	_Atomic uint64_t given;   /* time of the last release; 0: none */
};

static void *line_make(const struct subject *self, unsigned threads)
{
	struct line *line = must(malloc(sizeof(*line)));
	struct weir_fixed_config fixed;
	struct weir_config config = narrow(&fixed);

	config.queue = PLACES;
	config.order = *(const enum weir_order *)self->detail;
	line->limiter = limiter_of(&config);
	atomic_init(&line->threads, threads);
	atomic_init(&line->given, 0);
	return line;
}

static void line_unmake(void *shared)
{
	struct line *line = shared;

	weir_limiter_destroy(line->limiter);
	free(line);
}

static void hold(void)
{
	const uint64_t until = clock_read() + HOLD;

	while (clock_read() < until)
		;
}

/* Sleep while other threads still run, so that none takes the permit twice in a row. */
static void await_another(const struct line *line)
{
	while (weir_waiting(line->limiter) == 0) {
		if (atomic_load_explicit(&line->threads, memory_order_relaxed) == 1)
			return;
		sched_yield();
	}
	hold();
}

/* The permit has arrived: add the time of the hand-over. */
static void arrived(struct worker *worker, const _Atomic uint64_t *given)
{
	const uint64_t before = atomic_load_explicit(given, memory_order_relaxed);

	if (before != 0)
		worker->ns += (double)(clock_read() - before);
}

static uint64_t line_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct line *line = shared;
	struct weir_token token;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		if (weir_acquire(line->limiter, WEIR_FOREVER, &token) != 0) {
			refused++;
			continue;
		}
		arrived(worker, &line->given);
		await_another(line);
		atomic_store_explicit(&line->given, clock_read(), memory_order_relaxed);
		weir_release(line->limiter, &token, WEIR_SUCCESS);
	}
	atomic_fetch_sub_explicit(&line->threads, 1, memory_order_relaxed);
	return refused;
}

/* The kernel's cost of waking one thread after another: a semaphore each, in a ring. */
struct ring {
	_Atomic uint64_t given;
	unsigned count;
	sem_t turn[];
};

static void *ring_make(const struct subject *self, unsigned threads)
{
	struct ring *ring = must(malloc(sizeof(*ring) + threads * sizeof(ring->turn[0])));

	(void)self;
	atomic_init(&ring->given, 0);
	ring->count = threads;
	for (unsigned i = 0; i < threads; i++)
		sem_init(&ring->turn[i], 0, i == 0);
	return ring;
}

static uint64_t ring_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct ring *ring = shared;
	sem_t *mine = &ring->turn[worker->number];
	sem_t *next = &ring->turn[(worker->number + 1) % ring->count];

	for (uint64_t i = 0; i < times; i++) {
		while (sem_wait(mine) != 0)
			;
		arrived(worker, &ring->given);
		hold();
		atomic_store_explicit(&ring->given, clock_read(), memory_order_relaxed);
		sem_post(next);
	}
	return 0;
}

/*
 * A permit for each thread. A thread holds one, enqueues for another, releases the first, and polls
 * for the second: a complete wait without sleep.
 */
static void *loops_make(const struct subject *self, unsigned threads)
{
	struct weir_fixed_config fixed = {.limit = threads};
	struct weir_config config;

	(void)self;
	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.queue = PLACES;
	return limiter_of(&config);
}

/* Another thread may be draining the queue, or have got this permit: then another one comes. */
static int poll_for(struct weir_limiter *limiter, struct weir_wait *wait, struct weir_token *token)
{
	int error;

	while ((error = weir_poll(limiter, wait, token)) == -EAGAIN)
		sched_yield();
	return error;
}

static uint64_t poll_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_wait wait;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	must_do(weir_acquire(shared, WEIR_FOREVER, &token), "weir_acquire");
	for (uint64_t i = 0; i < times; i++) {
		if (weir_enqueue(shared, NULL, NULL, &wait) != 0) {
			refused++;
			continue;
		}
		weir_release(shared, &token, WEIR_SUCCESS);
		refused += poll_for(shared, &wait, &token) != 0;
	}
	weir_release(shared, &token, WEIR_SUCCESS);
	return refused;
}

static uint64_t free_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_wait wait;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		if (weir_acquire_or_enqueue(shared, NULL, NULL, NULL, &wait, &token) != 0)
			refused++;
		else
			weir_release(shared, &token, WEIR_SUCCESS);
	}
	return refused;
}

/* A limiter whose permits are never released. */
static void *taken_make(const struct subject *self, unsigned threads)
{
	struct weir_limiter *limiter = loops_make(self, threads);
	struct weir_token token;

	for (unsigned i = 0; i < threads; i++)
		must_do(weir_try_acquire(limiter, &token), "weir_try_acquire");
	return limiter;
}

/* Cancelled slots pile up while the thread that frees them is not running. */
static uint64_t cancel_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_wait wait;
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		while (weir_enqueue(shared, NULL, NULL, &wait) != 0)
			sched_yield();
		refused += weir_cancel(shared, &wait, &token) != 0;
	}
	return refused;
}

static const enum weir_order fifo = WEIR_FIFO, lifo = WEIR_LIFO, adaptive = WEIR_ADAPTIVE;

static const struct subject table[] = {
	{
		.group = "waiting",
		.name = "ring",
		.about = "each thread wakes the next by a semaphore: the floor of a hand-over",
		.make = ring_make,
		.unmake = free,
		.loop = ring_loop,
		.flags = TOGETHER,
		.slow = 1000,
	},
	{
		.group = "waiting",
		.name = "hand-over-fifo",
		.about = "weir_acquire(), one permit that goes from thread to thread",
		.make = line_make,
		.unmake = line_unmake,
		.loop = line_loop,
		.flags = TOGETHER,
		.slow = 1000,
		.detail = &fifo,
	},
	{
		.group = "waiting",
		.name = "hand-over-lifo",
		.about = "the same, newest waiter first",
		.make = line_make,
		.unmake = line_unmake,
		.loop = line_loop,
		.flags = TOGETHER,
		.slow = 1000,
		.detail = &lifo,
	},
	{
		.group = "waiting",
		.name = "hand-over-adaptive",
		.about = "the same, in the adaptive order",
		.make = line_make,
		.unmake = line_unmake,
		.loop = line_loop,
		.flags = TOGETHER,
		.slow = 1000,
		.detail = &adaptive,
	},
	{
		.group = "waiting",
		.name = "acquire-or-enqueue",
		.about = "weir_acquire_or_enqueue() where a permit is free, release",
		.make = loops_make,
		.unmake = limiter_unmake,
		.loop = free_loop,
	},
	{
		.group = "waiting",
		.name = "enqueue-poll",
		.about = "weir_enqueue() with none free, a release that grants one, weir_poll()",
		.make = loops_make,
		.unmake = limiter_unmake,
		.loop = poll_loop,
		.slow = 4,
	},
	{
		.group = "waiting",
		.name = "enqueue-cancel",
		.about = "weir_enqueue() with none free, weir_cancel()",
		.make = taken_make,
		.unmake = limiter_unmake,
		.loop = cancel_loop,
		.slow = 4,
	},
};

void waiting_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
