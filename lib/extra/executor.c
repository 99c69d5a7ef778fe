/* SPDX-License-Identifier: BSD-2-Clause */
/* The executor's public functions. */

#include "lib/extra/worker.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256
#define IDLE        (10 * WEIR_S)
#define NAME        "weir"

/* Whether the calling thread runs a task of this executor. */
static bool in_task(const struct weir_executor *e)
{
	const struct worker *w;

	TAILQ_FOREACH(w, &e->busy, link)
	{
		if (pthread_equal(w->thread, pthread_self()))
			return true;
	}
	return false;
}

/* Submitting, with the lock. */

/* Start a task that need not wait behind others: find a thread, and then a permit. */
static int start_now(struct weir_executor *e, const struct task *task)
{
	struct worker *w;

	if (waiting(e))
		return -EAGAIN;
	w = executor_find_idle(e);
	if (w == NULL)
		return e->stats.threads > 0 ? -EAGAIN : -ENOMEM;
	if (weir_try_acquire(e->limiter, &w->token) != 0)
		return -EAGAIN;
	w->admitted = weir_now();
	w->task = *task;
	executor_engage(e, w, RUN);
	executor_begin(e, w);
	e->stats.submitted++;
	return 0;
}

static int accept_task(struct weir_executor *e, const struct task *task)
{
	int r;

	if (e->closed)
		return -ESHUTDOWN;
	r = start_now(e, task);
	if (r != -EAGAIN || e->stats.queued == e->queue)
		return r;
	push(e, task);
	e->stats.submitted++;
	executor_appoint(e); /* start_now() has found that there is a thread */
	return 0;
}

/* Wait behind the queue, until there is room or the deadline has come. */
static int wait_for_room(struct weir_executor *e, const struct task *task, weir_time deadline)
{
	struct submitter s = {.task = *task, .answer = -EINPROGRESS};

	if (weir_now() >= deadline)
		return -ETIMEDOUT;
	if (in_task(e))
		return -EDEADLK;
	cond_init(&s.answered);
	TAILQ_INSERT_TAIL(&e->blocked, &s, link);
	e->stats.blocked++;
	executor_appoint(e);
	while (s.answer == -EINPROGRESS && cond_wait(&s.answered, &e->lock, deadline))
		;
	if (s.answer == -EINPROGRESS) {
		answer(e, &s, -ETIMEDOUT);
		if (!waiting(e))
			sem_post(&e->bell);
	}
	pthread_cond_destroy(&s.answered);
	return s.answer;
}

static int submit(struct weir_executor *e, const struct task *task, const weir_time *deadline)
{
	int cancel_state, r;

	if (task->run == NULL)
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&e->lock);
	r = accept_task(e, task);
	if (r == -EAGAIN && deadline != NULL)
		r = wait_for_room(e, task, *deadline);
	if (r == -ETIMEDOUT)
		e->stats.timed_out++;
	else if (r != 0)
		e->stats.refused++;
	pthread_mutex_unlock(&e->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return r;
}

int weir_executor_submit(struct weir_executor *e, weir_task_fn *run, void *arg, weir_time deadline)
{
	return submit(e, &(struct task){.run = run, .arg = arg}, &deadline);
}

int weir_executor_try_submit(struct weir_executor *e, weir_task_fn *run, void *arg)
{
	return submit(e, &(struct task){.run = run, .arg = arg}, NULL);
}

/* Draining and destruction, with the lock. */

static void refuse_tasks(struct weir_executor *e)
{
	e->closed = true;
	while (!TAILQ_EMPTY(&e->blocked))
		answer(e, TAILQ_FIRST(&e->blocked), -ESHUTDOWN);
	if (!waiting(e))
		sem_post(&e->bell);
}

int weir_executor_drain(struct weir_executor *e, weir_time deadline)
{
	int cancel_state, r = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&e->lock);
	if (in_task(e)) {
		r = -EDEADLK;
	} else {
		refuse_tasks(e);
		while (!quiet(e) && r == 0)
			r = cond_wait(&e->settled, &e->lock, deadline) ? 0 : -ETIMEDOUT;
		if (quiet(e))
			r = 0;
	}
	pthread_mutex_unlock(&e->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return r;
}

size_t weir_executor_discard(struct weir_executor *e,
			     void (*given)(void *context, weir_task_fn *run, void *arg),
			     void *context)
{
	struct task task;
	size_t n = 0;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&e->lock);
	refuse_tasks(e);
	for (; pop(e, &task); n++) {
		e->stats.discarded++;
		if (given == NULL)
			continue;
		pthread_mutex_unlock(&e->lock);
		given(context, task.run, task.arg);
		pthread_mutex_lock(&e->lock);
	}
	sem_post(&e->bell);
	signal_if_quiet(e);
	pthread_mutex_unlock(&e->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return n;
}

static void stop_threads(struct weir_executor *e)
{
	struct worker *w;

	pthread_mutex_lock(&e->lock);
	e->stopped = true;
	TAILQ_FOREACH(w, &e->idle, link)
	pthread_cond_signal(&w->ordered);
	while (e->stats.threads > 0)
		cond_wait(&e->settled, &e->lock, WEIR_FOREVER);
	pthread_mutex_unlock(&e->lock);
	if (e->has_gone)
		pthread_join(e->gone, NULL);
}

int weir_executor_destroy(struct weir_executor *e)
{
	int cancel_state, r;

	if (e == NULL)
		return 0;
	r = weir_executor_drain(e, WEIR_FOREVER);
	if (r != 0)
		return r;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	stop_threads(e);
	pthread_setcancelstate(cancel_state, NULL);
	weir_limiter_destroy(e->own);
	pthread_attr_destroy(&e->attr);
	pthread_cond_destroy(&e->settled);
	pthread_mutex_destroy(&e->lock);
	sem_destroy(&e->bell);
	free(e);
	return 0;
}

/* Creation. */

void weir_executor_config_init_sized(struct weir_executor_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static int read_config(const struct weir_executor_config *given, struct weir_executor_config *c)
{
	weir_executor_config_init(c);
	if (given != NULL) {
		if (given->size < offsetof(struct weir_executor_config, limiter) ||
		    given->size > sizeof(*c))
			return -EINVAL;
		memcpy(c, given, given->size);
	}
	if (c->limiter != NULL && c->limiter_config != NULL)
		return -EINVAL;
	if (c->queue > WEIR_LIMIT_MAX)
		return -EINVAL;
	if (c->name == NULL)
		c->name = NAME;
	return strlen(c->name) < NAME_SIZE ? 0 : -EINVAL;
}

/* A limiter created here has a queue, in which the executor is the only waiter. */
static int make_limiter(const struct weir_config *given, struct weir_limiter **limiter)
{
	struct weir_config config;

	if (weir_config_check(given, NULL, 0) != 0)
		return -EINVAL;
	weir_config_init(&config);
	if (given != NULL) {
		memcpy(&config, given, given->size);
		config.size = sizeof(config);
	}
	if (config.queue == 0)
		config.queue = 1;
	return weir_limiter_create(&config, limiter);
}

/* Set up everything but the limiter. */
static struct weir_executor *set_up(const struct weir_executor_config *c,
				    const pthread_attr_t *attr)
{
	struct weir_executor *e = calloc(1, sizeof(*e) + c->queue * sizeof(e->tasks[0]));

	if (e == NULL)
		return NULL;
	e->limiter = c->limiter;
	e->threads_max = c->threads_max != 0 ? c->threads_max : THREADS_MAX;
	e->queue = c->queue;
	e->idle_max = c->idle != 0 ? c->idle : IDLE;
	e->attr = *attr;
	memcpy(e->name, c->name, strlen(c->name) + 1);
	sem_init(&e->bell, 0, 0);
	pthread_mutex_init(&e->lock, NULL);
	cond_init(&e->settled);
	TAILQ_INIT(&e->idle);
	TAILQ_INIT(&e->busy);
	TAILQ_INIT(&e->blocked);
	return e;
}

int weir_executor_create(const struct weir_executor_config *config, struct weir_executor **executor)
{
	struct weir_limiter *own = NULL;
	struct weir_executor_config c;
	pthread_attr_t attr;
	int r;

	*executor = NULL;
	r = read_config(config, &c);
	if (r != 0)
		return r;
	pthread_attr_init(&attr);
	if (c.stack != 0)
		r = -pthread_attr_setstacksize(&attr, c.stack);
	if (r == 0 && c.limiter == NULL)
		r = make_limiter(c.limiter_config, &own);
	if (r == 0) {
		*executor = set_up(&c, &attr);
		r = *executor != NULL ? 0 : -ENOMEM;
	}
	if (r != 0) {
		weir_limiter_destroy(own);
		pthread_attr_destroy(&attr);
		return r;
	}
	if (own != NULL)
		(*executor)->limiter = (*executor)->own = own;
	return 0;
}

struct weir_limiter *weir_executor_limiter(const struct weir_executor *e)
{
	return e->limiter;
}

void weir_executor_stats_init_sized(struct weir_executor_stats *stats, size_t size)
{
	memset(stats, 0, size);
	stats->size = size;
}

void weir_executor_stats_take(struct weir_executor *e, struct weir_executor_stats *stats)
{
	struct weir_executor_stats s;

	pthread_mutex_lock(&e->lock);
	s = e->stats;
	pthread_mutex_unlock(&e->lock);
	s.size = stats->size;
	memcpy(stats, &s, stats->size < sizeof(s) ? stats->size : sizeof(s));
}
