/*
 * What an executor's threads do: stand by, lead, run tasks, and leave.
 */

#include "lib/extra/worker.h"

#include <signal.h>
#include <stdlib.h>

#include <weir/partition.h>
#include <weir/wait.h>

/*
 * Between two looks, where nobody could tell: for a permit of a limiter without a queue, or of one
 * that keeps room for partitions, and for a thread when the system has none to give. A hundred
 * looks a second are no load.
 */
#define LOOK (10 * WEIR_MS)

/* Finding threads. */

static void *work(void *arg);

/* One more idle thread, if the system can spare one. */
static void hire(struct weir_executor *e)
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
		hire(e);
	return TAILQ_FIRST(&e->idle);
}

void executor_engage(struct weir_executor *e, struct worker *w, enum order what)
{
	TAILQ_REMOVE(&e->idle, w, link);
	w->order = what;
	pthread_cond_signal(&w->ordered);
}

/* The worker has a permit and a task. */
void executor_begin(struct weir_executor *e, struct worker *w)
{
	w->order = RUN;
	w->returned = false;
	TAILQ_INSERT_HEAD(&e->busy, w, link);
	e->stats.running++;
}

/* Have a leader if one is needed. False: there is nobody to lead, now or after a task. */
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

/* A worker that has nothing to do leads, if there is need. */
static void go_on(struct weir_executor *e, struct worker *w)
{
	if (waiting(e) && !e->led) {
		e->led = true;
		w->order = LEAD;
	} else {
		w->order = STAND_BY;
		TAILQ_INSERT_HEAD(&e->idle, w, link);
	}
}

/* What the leader does. */

static void ring(void *arg)
{
	struct weir_executor *e = arg;

	sem_post(&e->bell);
}

/* A starved leader says so before it looks, so that who releases after that look rings. */
static bool still_wanted(struct weir_executor *e, bool queued)
{
	bool wanted;

	pthread_mutex_lock(&e->lock);
	e->starved = !queued;
	wanted = waiting(e);
	pthread_mutex_unlock(&e->lock);
	return wanted;
}

/* An interrupted wait is one more look. Who may miss a ring looks all the same, now and then. */
static void listen(struct weir_executor *e, bool told)
{
	const struct timespec until = timespec_of(after(LOOK));

	if (told)
		sem_wait(&e->bell);
	else
		sem_clockwait(&e->bell, CLOCK_MONOTONIC, &until);
}

/*
 * Wait for a permit for as long as tasks do. True: there is one in *token. Whoever does not get
 * into the limiter's queue, because it is full or there is none, tries again and again.
 */
static bool stand(struct weir_executor *e, struct weir_token *token)
{
	struct weir_wait wait = {.stamp = 0};
	bool queued = false;

	while (sem_trywait(&e->bell) == 0) /* rung for those before */
		;
	for (;;) {
		queued = queued || weir_enqueue(e->limiter, ring, e, &wait) == 0;
		if (!still_wanted(e, queued))
			return queued && weir_cancel(e->limiter, &wait, token) == -EALREADY;
		if (queued ? weir_poll(e->limiter, &wait, token) == 0
			   : weir_try_acquire(e->limiter, token) == 0)
			return true;
		listen(e, queued && weir_partition_count(e->limiter) == 0);
	}
}

/* With the lock, as before and after. */
static void lead(struct weir_executor *e, struct worker *w)
{
	bool got;

	pthread_mutex_unlock(&e->lock);
	got = stand(e, &w->token);
	w->admitted = weir_now();
	pthread_mutex_lock(&e->lock);

	e->starved = false;
	if (got && take(e, &w->task)) {
		e->led = false;
		executor_begin(e, w);
		executor_appoint(e);
		return;
	}
	if (got) { /* for a task that is not there any more */
		pthread_mutex_unlock(&e->lock);
		weir_release(e->limiter, &w->token, WEIR_IGNORE);
		pthread_mutex_lock(&e->lock);
	}
	e->led = false;
	go_on(e, w);
	tell_if_quiet(e);
}

/* A task's end, and a thread's. */

/*
 * Without the lock; returns with it. The task is counted before its permit is back, so that no
 * more are ever shown to run than there are permits; it is busy until after, so that
 * a drain waits for the permit.
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
	tell_if_quiet(e);
}

/*
 * With the lock; returns without. The last thread there is does not leave tasks behind with nobody
 * to run them: it stays until the system has a thread to put in its place.
 *
 * Who leaves joins who left before, so there is never more than one thread to be joined; the last
 * one is left to weir_executor_destroy(). The executor may be gone once the lock is given back.
 */
static void leave(struct weir_executor *e, struct worker *w)
{
	const struct timespec pause = timespec_of(LOOK);
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

/* The task, or a cancel, is ending this thread. */
static void die(void *arg)
{
	struct worker *w = arg;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	finish(w->executor, w);
	leave(w->executor, w);
}

/*
 * Call the task. A cancel that it asked for and did not come to is done here: it must not hit the
 * next one. The token counts from here on, not from when the permit was taken.
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

/* With the lock, as before and after. */
static void run_task(struct weir_executor *e, struct worker *w)
{
	pthread_mutex_unlock(&e->lock);
	call(w);
	finish(e, w);
	go_on(e, w);
}

/* Wait for an order. False: none came, or none will come. */
static bool stand_by(struct weir_executor *e, struct worker *w)
{
	const weir_time until = after(e->idle_max);
	bool in_time = true;

	while (w->order == STAND_BY && in_time && !e->stopped)
		in_time = cond_wait(&w->ordered, &e->lock, until);
	return w->order != STAND_BY;
}

/* Signals are for the program's own threads, unless they say that this one is at fault. */
static void settle_in(const struct weir_executor *e)
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

	settle_in(e);
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
