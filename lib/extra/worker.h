/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor: threads that run tasks, one permit each. lib/extra/executor.c has its public
 * functions, lib/extra/worker.c its threads.
 *
 * It uses only public functions of the limiter, like any program. There are three ways from a
 * submit to a thread:
 *
 * submit -- a permit is free --------------------------> an idle thread runs it submit -- none is;
 * the queue has room --> the queue -+ submit -- no room either: it waits ------------------+-> the
 * leader runs it
 *
 * The leader. While tasks wait, one thread without a task waits in the limiter's queue for all of
 * them. When its permit comes it takes the first task, appoints the next leader if more tasks wait,
 * and runs the task. So an arriving permit wakes one thread, a raised limit starts one thread after
 * another, and the thread that wakes is the one that runs. A thread that ends a task becomes the
 * leader if one is needed and there is none; so it is always found where all threads are running.
 *
 * Locking. One mutex guards everything. Under it no function of the limiter is called but
 * weir_try_acquire(): a release, an enqueue, a poll or a cancel may run other waiters' callbacks,
 * or wait for one, and those may need this mutex. (A limiter with partitions may do so in
 * weir_try_acquire() as well, so the header forbids it to callbacks.) The executor's own callback
 * posts a semaphore, the bell, and takes no lock: the thread that frees a permit is not delayed,
 * and may be in a signal handler. Every thread that sleeps does so on its own condition variable,
 * and is woken individually; drains share one. A thread is also created under the mutex: that is
 * rare, and the thread's identity is then visible to all.
 *
 * A permit always has an owner. A thread is found before the permit is taken, so a hand-over cannot
 * fail; and while a task runs, a cleanup handler is ready to release its permit.
 */

#ifndef WEIR_LIB_WORKER_H
#define WEIR_LIB_WORKER_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

#include <weir/executor.h>

#define NAME_SIZE 16 /* the kernel's limit, with the zero */

struct task {
	weir_task_fn *run;
	void *arg;
};

enum order {
	STAND_BY, /* in the list idle */
	LEAD,
	RUN, /* in the list busy */
};

struct worker {
	struct weir_executor *executor;
	TAILQ_ENTRY(worker) link;
	pthread_t thread;
	pthread_cond_t ordered;
	enum order order;

	struct task task;
	struct weir_token token;
	weir_time admitted; /* when the permit came, on weir_now()'s clock */
	bool returned;      /* the task has returned */
	enum weir_outcome outcome;
};

/* A submit that waits, on its thread's stack. */
struct submitter {
	TAILQ_ENTRY(submitter) link;
	struct task task;
	pthread_cond_t answered;
	int answer; /* -EINPROGRESS: still waiting */
};

struct weir_executor {
	struct weir_limiter *limiter;
	struct weir_limiter *own; /* the same; NULL: limiter belongs to the caller */
	uint32_t threads_max;
	uint32_t queue;
	weir_dur idle_max;
	pthread_attr_t attr;
	char name[NAME_SIZE];

	sem_t bell; /* the leader should poll again */

	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t settled;
	TAILQ_HEAD(, worker) idle; /* latest first: its stack is warm, the others may time out */
	TAILQ_HEAD(, worker) busy;
	TAILQ_HEAD(, submitter) blocked;
	bool led;     /* a worker is the leader */
	bool starved; /* the leader has no entry in the limiter's queue */
	bool closed;  /* accepts no more tasks */
	bool stopped; /* threads are to end */
	bool has_gone;
	pthread_t gone; /* the thread that left last, for the next one to join */
	struct weir_executor_stats stats;

	uint32_t first;      /* index of the oldest queued task */
	struct task tasks[]; /* a ring of queue entries */
};

static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static inline struct timespec timespec_of(weir_time time)
{
	return (struct timespec){
		.tv_sec = (time_t)(time / WEIR_S),
		.tv_nsec = (long)(time % WEIR_S),
	};
}

/* False: the deadline has come. */
static inline bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, weir_time deadline)
{
	const struct timespec until = timespec_of(deadline);

	if (deadline == WEIR_FOREVER)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

/* Now plus a duration; WEIR_FOREVER, if that is beyond the clock's range. */
static inline weir_time after(weir_dur duration)
{
	weir_time now = weir_now();

	return duration < WEIR_FOREVER - now ? now + duration : WEIR_FOREVER;
}

/* State of the executor. */

static inline bool waiting(const struct weir_executor *e)
{
	return e->stats.queued > 0 || !TAILQ_EMPTY(&e->blocked);
}

/* No task waits or runs, and no permit is out. */
static inline bool quiet(const struct weir_executor *e)
{
	return !waiting(e) && TAILQ_EMPTY(&e->busy) && !e->led;
}

static inline void signal_if_quiet(struct weir_executor *e)
{
	if (e->closed && quiet(e))
		pthread_cond_broadcast(&e->settled);
}

static inline void push(struct weir_executor *e, const struct task *task)
{
	e->tasks[((uint64_t)e->first + e->stats.queued++) % e->queue] = *task;
}

static inline bool pop(struct weir_executor *e, struct task *task)
{
	if (e->stats.queued == 0)
		return false;
	*task = e->tasks[e->first];
	e->first = (e->first + 1) % e->queue;
	e->stats.queued--;
	return true;
}

static inline void answer(struct weir_executor *e, struct submitter *s, int what)
{
	TAILQ_REMOVE(&e->blocked, s, link);
	e->stats.blocked--;
	s->answer = what;
	pthread_cond_signal(&s->answered);
}

/* Take the task whose turn it is. The submit that waited longest gets its place in the queue. */
static inline bool take(struct weir_executor *e, struct task *task)
{
	struct submitter *s = TAILQ_FIRST(&e->blocked);
	bool popped = pop(e, task);

	if (s == NULL)
		return popped;
	if (popped)
		push(e, &s->task);
	else
		*task = s->task;
	e->stats.submitted++;
	answer(e, s, 0);
	return true;
}

/* The following are called with the lock. */

/* An idle thread, created if necessary; NULL: there is none, and the system provides none. */
struct worker *executor_find_idle(struct weir_executor *e);

void executor_engage(struct weir_executor *e, struct worker *w, enum order what);

/* Start a task: the worker has a permit and a task. */
void executor_begin(struct weir_executor *e, struct worker *w);

/*
 * Appoint a leader if one is needed. False: there is no thread that could lead, now or after a
 * task.
 */
bool executor_appoint(struct weir_executor *e);

#endif
