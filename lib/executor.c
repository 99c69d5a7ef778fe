/*
 * The executor: threads that run tasks, one permit each.
 *
 * It is a user of the limiter like any other, and sees its public functions alone. Three
 * ways lead a task to a thread:
 *
 *   submit -- a permit is free --------------------------> an idle thread runs it
 *   submit -- none is; the queue has room --> the queue -+
 *   submit -- nor has the queue: it waits ---------------+-> the leader runs it
 *
 * The leader. While tasks wait, one thread that has nothing to run stands in the limiter's
 * queue for all of them. When its permit comes it takes the first task, appoints the
 * next leader if more wait, and runs. So an arriving permit wakes one thread, a raised
 * limit starts one thread after another, and the thread that wakes is the one that runs. A
 * thread that ends a task leads, if there is need and nobody leads; where all
 * threads are running, that is who the leader will be.
 *
 * Locking. One mutex guards all there is. Under it nothing of the limiter's is called but
 * weir_try_acquire(): a release, an enqueue, a poll or a cancel may run other waiters'
 * callbacks, or wait for one, and those may want this very mutex. (A limiter with partitions
 * may do so in weir_try_acquire() as well; so the header forbids it to callbacks.) Our own callback rings a bell, a semaphore, and takes no lock: whoever frees a
 * permit is not held up by us, and may be in a signal handler. Every thread that
 * sleeps does so on a condition of its own, and is woken by name; drains share one. Making a thread
 * is done under the mutex too: it is rare, and its identity is then known to all.
 *
 * A permit is never without somebody who answers for it. A thread is found before the permit is
 * taken, so a hand-over cannot fail; and while a task runs, a cleanup handler stands ready to give
 * its permit back.
 */

#include <weir/executor.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <weir/partition.h>
#include <weir/wait.h>

#define THREADS_MAX 256
#define IDLE        (10 * WEIR_S)
#define NAME        "weir"
#define NAME_SIZE   16 /* the kernel's */

/*
 * Between two looks, where nobody could tell: for a permit of a limiter without a queue, or of one
 * that keeps room for partitions, and for a thread when the system has none to give. A hundred
 * looks a second are no load.
 */
#define LOOK (10 * WEIR_MS)

struct task {
	weir_task_fn *run;
	void *arg;
};

enum order {
	STAND_BY, /* in the list of the idle */
	LEAD,
	RUN, /* in the list of the busy */
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
	bool returned;      /* the task did */
	enum weir_outcome outcome;
};

/* A submit that waits, on its thread's stack. */
struct submitter {
	TAILQ_ENTRY(submitter) link;
	struct task task;
	pthread_cond_t answered;
	int answer; /* -EINPROGRESS: none yet */
};

struct weir_executor {
	struct weir_limiter *limiter;
	struct weir_limiter *own; /* the same, or NULL: it is the caller's */
	uint32_t threads_max;
	uint32_t queue;
	weir_dur idle_max;
	pthread_attr_t attr;
	char name[NAME_SIZE];

	sem_t bell; /* the leader should look again */

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t settled;
	TAILQ_HEAD(, worker) idle; /* the latest first: its stack is warm, and the others may end */
	TAILQ_HEAD(, worker) busy;
	TAILQ_HEAD(, submitter) blocked;
	bool led;     /* some worker leads */
	bool starved; /* the leader has no place in the limiter's queue */
	bool closed;  /* accepts nothing any more */
	bool stopped; /* and the threads are to end */
	bool has_gone;
	pthread_t gone; /* the thread that left last, for the next one to join */
	struct weir_executor_stats stats;

	uint32_t first;      /* of those queued */
	struct task tasks[]; /* a ring of queue */
};

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static struct timespec timespec_of(weir_time time)
{
	return (struct timespec){
		.tv_sec = (time_t)(time / WEIR_S),
		.tv_nsec = (long)(time % WEIR_S),
	};
}

/* False: the deadline has come. */
static bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, weir_time deadline)
{
	const struct timespec until = timespec_of(deadline);

	if (deadline == WEIR_FOREVER)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

/* Now and a duration; for ever, if that is later than the clock can tell. */
static weir_time after(weir_dur duration)
{
	weir_time now = weir_now();

	return duration < WEIR_FOREVER - now ? now + duration : WEIR_FOREVER;
}

/* What waits, and what is going on. */

static bool waiting(const struct weir_executor *e)
{
	return e->stats.queued > 0 || !TAILQ_EMPTY(&e->blocked);
}

/* Nothing is to be done, and no permit is out. */
static bool quiet(const struct weir_executor *e)
{
	return !waiting(e) && TAILQ_EMPTY(&e->busy) && !e->led;
}

static void tell_if_quiet(struct weir_executor *e)
{
	if (e->closed && quiet(e))
		pthread_cond_broadcast(&e->settled);
}

/* Does the thread that asks run one of our tasks? */
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

static void push(struct weir_executor *e, const struct task *task)
{
	e->tasks[((uint64_t)e->first + e->stats.queued++) % e->queue] = *task;
}

static bool pop(struct weir_executor *e, struct task *task)
{
	if (e->stats.queued == 0)
		return false;
	*task = e->tasks[e->first];
	e->first = (e->first + 1) % e->queue;
	e->stats.queued--;
	return true;
}

static void answer(struct weir_executor *e, struct submitter *s, int what)
{
	TAILQ_REMOVE(&e->blocked, s, link);
	e->stats.blocked--;
	s->answer = what;
	pthread_cond_signal(&s->answered);
}

/* The task whose turn it is. Its place in the queue goes to the submit that waited longest. */
static bool take(struct weir_executor *e, struct task *task)
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

static struct worker *find_idle(struct weir_executor *e)
{
	if (TAILQ_EMPTY(&e->idle) && e->stats.threads < e->threads_max)
		hire(e);
	return TAILQ_FIRST(&e->idle);
}

static void engage(struct weir_executor *e, struct worker *w, enum order what)
{
	TAILQ_REMOVE(&e->idle, w, link);
	w->order = what;
	pthread_cond_signal(&w->ordered);
}

/* The worker has a permit and a task. */
static void begin(struct weir_executor *e, struct worker *w)
{
	w->order = RUN;
	w->returned = false;
	TAILQ_INSERT_HEAD(&e->busy, w, link);
	e->stats.running++;
}

/* Have a leader if one is needed. False: there is nobody to lead, now or after a task. */
static bool appoint(struct weir_executor *e)
{
	struct worker *w;

	if (e->led || !waiting(e))
		return true;
	w = find_idle(e);
	if (w == NULL)
		return e->stats.threads > 0;
	engage(e, w, LEAD);
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
		begin(e, w);
		appoint(e);
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
	while (!appoint(e)) {
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

/* Submitting, with the lock. */

/* A task that need not wait behind others, a thread, and then a permit. */
static int start_now(struct weir_executor *e, const struct task *task)
{
	struct worker *w;

	if (waiting(e))
		return -EAGAIN;
	w = find_idle(e);
	if (w == NULL)
		return e->stats.threads > 0 ? -EAGAIN : -ENOMEM;
	if (weir_try_acquire(e->limiter, &w->token) != 0)
		return -EAGAIN;
	w->admitted = weir_now();
	w->task = *task;
	engage(e, w, RUN);
	begin(e, w);
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
	appoint(e); /* start_now() has seen that there is a thread */
	return 0;
}

/* Stand behind the queue, until there is room or the deadline has come. */
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
	appoint(e);
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

/* The end, with the lock. */

static void turn_away(struct weir_executor *e)
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
		turn_away(e);
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

	pthread_mutex_lock(&e->lock);
	turn_away(e);
	for (; pop(e, &task); n++) {
		e->stats.discarded++;
		if (given == NULL)
			continue;
		pthread_mutex_unlock(&e->lock);
		given(context, task.run, task.arg);
		pthread_mutex_lock(&e->lock);
	}
	sem_post(&e->bell);
	tell_if_quiet(e);
	pthread_mutex_unlock(&e->lock);
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

/* The beginning. */

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

/* A limiter of our own has a queue, in which we are the one who waits. */
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

/* All but the limiter. */
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
