/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executors for tests, and tasks that are held at a gate, so that nothing depends on timing.
 */
#ifndef WEIR_TESTS_UNIT_EXECUTOR_RIG_H
#define WEIR_TESTS_UNIT_EXECUTOR_RIG_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "rig.h"

/* The linker redirects the library's calls of pthread_create(): they fail, or start late. */
extern atomic_bool no_threads;
extern weir_dur late;     /* delay before a thread starts */
extern weir_time started; /* when the last late one did */

/* And its calls of weir_cancel(): runs what is to happen after it, before the executor knows. */
extern atomic_bool watch_cancel;
extern void (*after_cancel)(void *arg);
extern void *after_cancel_arg;

static inline struct weir_limiter *make_limiter(uint32_t limit, uint32_t queue)
{
	struct weir_settable_config settable = {.initial = limit};
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.queue = queue;
	cr_assert_eq(weir_limiter_create(&config, &limiter), 0);
	return limiter;
}

static inline struct weir_executor *make(struct weir_limiter *limiter, uint32_t threads,
					 uint32_t queue)
{
	struct weir_executor_config config;
	struct weir_executor *executor;

	weir_executor_config_init(&config);
	config.limiter = limiter;
	config.threads_max = threads;
	config.queue = queue;
	cr_assert_eq(weir_executor_create(&config, &executor), 0);
	return executor;
}

static inline struct weir_executor_stats stats_of(struct weir_executor *e)
{
	struct weir_executor_stats s;

	weir_executor_stats_init(&s);
	weir_executor_stats_take(e, &s);
	cr_assert_eq(s.submitted, s.queued + s.running + s.completed + s.died + s.discarded);
	return s;
}

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		while (!(condition))                                                               \
			usleep(200);                                                               \
	} while (0)

/* Tasks that wait to be let through, in the order in which they came to the gate. */
struct gate {
	atomic_int arrived, passed;
	sem_t open;
};

static inline struct gate *make_gate(void)
{
	static struct gate gate;

	cr_assert_eq(sem_init(&gate.open, 0, 0), 0);
	return &gate;
}

static inline enum weir_outcome pass(void *arg)
{
	struct gate *gate = arg;

	gate->arrived++;
	while (sem_wait(&gate->open) != 0)
		;
	gate->passed++;
	return WEIR_SUCCESS;
}

static inline void let(struct gate *gate, int tasks)
{
	while (tasks-- > 0)
		sem_post(&gate->open);
}

static inline void end(struct weir_executor *e, struct weir_limiter *limiter)
{
	cr_assert_eq(weir_executor_destroy(e), 0);
	if (limiter == NULL)
		return;
	cr_assert_eq(weir_inflight(limiter), 0);
	cr_assert_eq(weir_waiting(limiter), 0);
	weir_limiter_destroy(limiter);
}

static inline enum weir_outcome count(void *arg)
{
	++*(atomic_int *)arg;
	return WEIR_SUCCESS;
}

/* A thread that submits. */
struct submission {
	struct weir_executor *executor;
	struct gate *gate;
	int result;
};

static inline void *submit_and_wait(void *arg)
{
	struct submission *s = arg;

	s->result = weir_executor_submit(s->executor, pass, s->gate, WEIR_FOREVER);
	return NULL;
}

static inline void submit_from_threads(struct submission *s, pthread_t *threads, int n,
				       struct weir_executor *e, struct gate *gate)
{
	for (int i = 0; i < n; i++) {
		s[i] = (struct submission){.executor = e, .gate = gate, .result = 1};
		cr_assert_eq(pthread_create(&threads[i], NULL, submit_and_wait, &s[i]), 0);
	}
	UNTIL(stats_of(e).blocked == (uint32_t)n);
}

#endif
