/* SPDX-License-Identifier: BSD-2-Clause */
/* The executor's threads: stand by, lead, run tasks, and leave. */

#include "lib/extra/worker.h"

#include <signal.h>
#include <stdlib.h>

#include <weir/partition.h>
#include <weir/wait.h>

/*
 * Time between two polls, where no notification is possible: for a permit of a limiter without a
 * queue, or of one that reserves permits for partitions, and for a thread when the system has none
 * to give. A hundred polls a second are no load.
 */
#define POLL_INTERVAL (10 * WEIR_MS)

/* Finding threads. */

static void *work(void *arg);

/* Add an idle thread, if the system can provide one. */
static void add_thread(struct weir_executor *e)
{
	struct worker *w = malloc(sizeof(*w));

	if (w == NULL)
		return;
	*w = (struct worker){.executor = e, .order = STAND_BY};
	if (pthread_create(&w->thread, &e->attr, work, w) != 0) {
		free(w);
		return;
	}
	cond_init(&w->ordered);
	TAILQ_INSERT_HEAD(&e->idle, w, link);
	e->stats.threads++;
}

struct worker *executor_find_idle(struct weir_executor *e)
{
	if (TAILQ_EMPTY(&e->idle) && e->stats.threads < e->threads_max)
		add_thread(e);
	return TAILQ_FIRST(&e->idle);
}

void executor_engage(struct weir_executor *e, struct worker *w, enum order what)
{
	TAILQ_REMOVE(&e->idle, w, link);
	w->order = what;
	pthread_cond_signal(&w->ordered);
}

/* Start a task: the worker has a permit and a task. */
void executor_begin(struct weir_executor *e, struct worker *w)
{
	w->order = RUN;
	w->returned = false;
	TAILQ_INSERT_HEAD(&e->busy, w, link);
	e->stats.running++;
}

/*
 * Appoint a leader if one is needed. False: there is no thread that could lead, now or after a
 * task.
 */
bool executor_appoint(struct weir_executor *e)
{
	struct worker *w;

	if (e->led || !waiting(e))
		return true;
	w = executor_find_idle(e);
	if (w == NULL)
		return e->stats.threads > 0;
	executor_engage(e, w, LEAD);
	e->led = true;
	return true;
}

/* A worker that has nothing to do leads, if a leader is needed. */
static void choose_role(struct weir_executor *e, struct worker *w)
{
	if (waiting(e) && !e->led) {
		e->led = true;
		w->order = LEAD;
	} else {
		w->order = STAND_BY;
		TAILQ_INSERT_HEAD(&e->idle, w, link);
	}
}

/* The leader. */

static void ring(void *arg)
{
	struct weir_executor *e = arg;

	sem_post(&e->bell);
}

/* A starved leader sets the flag before it tries again, so that a release after that try rings. */
static bool still_wanted(struct weir_executor *e, bool queued)
{
	bool wanted;

	pthread_mutex_lock(&e->lock);
	e->starved = !queued;
	wanted = waiting(e);
	pthread_mutex_unlock(&e->lock);
	return wanted;
}

/* An interrupted wait is one more poll. Without a notification, poll after a timeout. */
static void wait_for_bell(struct weir_executor *e, bool rings)
{
	const struct timespec until = timespec_of(after(POLL_INTERVAL));

	if (rings)
		sem_wait(&e->bell);
	else
		sem_clockwait(&e->bell, CLOCK_MONOTONIC, &until);
}

/*
 * Wait for a permit for as long as tasks wait. True: there is one in *token. If the limiter's queue
 * is full, or there is none, tries again and again.
 */
static bool await_permit(struct weir_executor *e, struct weir_token *token)
{
	struct weir_wait wait = {.stamp = 0};
	bool queued = false;

	while (sem_trywait(&e->bell) == 0) /* rung for earlier waits */
		;
	for (;;) {
		queued = queued || weir_enqueue(e->limiter, ring, e, &wait) == 0;
		if (!still_wanted(e, queued))
			return queued && weir_cancel(e->limiter, &wait, token) == -EALREADY;
		if (queued ? weir_poll(e->limiter, &wait, token) == 0
			   : weir_try_acquire(e->limiter, token) == 0)
			return true;
		wait_for_bell(e, queued && weir_partition_count(e->limiter) == 0);
	}
}

/* Called with the lock, and returns with it. */
static void lead(struct weir_executor *e, struct worker *w)
{
	bool got;

	pthread_mutex_unlock(&e->lock);
	got = await_permit(e, &w->token);
	w->admitted = weir_now();
	pthread_mutex_lock(&e->lock);

	e->starved = false;
	if (got && take(e, &w->task)) {
		e->led = false;
		executor_begin(e, w);
		executor_appoint(e);
		return;
	}
	if (got) { /* the task was discarded */
		pthread_mutex_unlock(&e->lock);
		weir_release(e->limiter, &w->token, WEIR_IGNORE);
		pthread_mutex_lock(&e->lock);
	}
	e->led = false;
	choose_role(e, w);
	signal_if_quiet(e);
}

/* The end of a task, and of a thread. */

/*
 * Called without the lock; returns with it. The task is counted before its permit is released, so
 * that the number running never exceeds the number of permits. The worker stays busy until
 * afterwards, so that a drain waits for the permit.
 */
static void finish(struct weir_executor *e, struct worker *w)
{
	pthread_mutex_lock(&e->lock);
	e->stats.running--;
	if (w->returned)
		e->stats.completed++;
	else
		e->stats.died++;
	pthread_mutex_unlock(&e->lock);

	weir_release(e->limiter, &w->token, w->returned ? w->outcome : WEIR_IGNORE);

	pthread_mutex_lock(&e->lock);
	TAILQ_REMOVE(&e->busy, w, link);
	if (e->starved)
		sem_post(&e->bell);
	signal_if_quiet(e);
}

/*
 * Called with the lock, which it releases. The last thread does not leave while tasks wait: it
 * stays until the system provides a thread to replace it.
 *
 * A thread that leaves joins the one that left before, so there is never more than one thread to
 * join; weir_executor_destroy() joins the last one. The executor may be freed as soon as the lock
 * is released.
 */
static void leave(struct weir_executor *e, struct worker *w)
{
	const struct timespec pause = timespec_of(POLL_INTERVAL);
	pthread_t before;
	bool has_before;

	e->stats.threads--;
	while (!executor_appoint(e)) {
		e->stats.threads++;
		pthread_mutex_unlock(&e->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&e->lock);
		e->stats.threads--;
	}
	before = e->gone;
	has_before = e->has_gone;
	e->gone = w->thread;
	e->has_gone = true;
	if (e->stats.threads == 0)
		pthread_cond_broadcast(&e->settled);
	pthread_mutex_unlock(&e->lock);

	pthread_cond_destroy(&w->ordered);
	free(w);
	if (has_before)
		pthread_join(before, NULL);
}

/* A cleanup handler: the task, or a cancellation, is ending this thread. */
static void die(void *arg)
{
	struct worker *w = arg;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	finish(w->executor, w);
	leave(w->executor, w);
}

/*
 * Run the task. A cancellation that was requested but has not yet been acted on is acted on here:
 * it must not hit the next task. The token's latency counts from here, not from when the permit was
 * taken.
 */
static void call(struct worker *w)
{
	pthread_cleanup_push(die, w);
	w->token.start += weir_now() - w->admitted;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	w->outcome = w->task.run(w->task.arg);
	w->returned = true;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
}

/* Called with the lock, and returns with it. */
static void run_task(struct weir_executor *e, struct worker *w)
{
	pthread_mutex_unlock(&e->lock);
	call(w);
	finish(e, w);
	choose_role(e, w);
}

/* Wait for an order. False: none came in time, or the executor is stopping. */
static bool stand_by(struct weir_executor *e, struct worker *w)
{
	const weir_time until = after(e->idle_max);
	bool in_time = true;

	while (w->order == STAND_BY && in_time && !e->stopped)
		in_time = cond_wait(&w->ordered, &e->lock, until);
	return w->order != STAND_BY;
}

/* Block signals, which are for the program's own threads, except those raised by a fault. */
static void set_up_thread(const struct weir_executor *e)
{
	sigset_t blocked;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sigfillset(&blocked);
	sigdelset(&blocked, SIGBUS);
	sigdelset(&blocked, SIGFPE);
	sigdelset(&blocked, SIGILL);
	sigdelset(&blocked, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	pthread_setname_np(pthread_self(), e->name);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_executor *e = w->executor;

	set_up_thread(e);
	pthread_mutex_lock(&e->lock);
	while (stand_by(e, w)) {
		while (w->order == LEAD)
			lead(e, w);
		if (w->order == RUN)
			run_task(e, w);
	}
	TAILQ_REMOVE(&e->idle, w, link);
	leave(e, w);
	return NULL;
}
