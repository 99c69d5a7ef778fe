/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor: what it accepts, what it runs, and what happens when a task, a thread or a permit
 * fails. Tasks are held at a gate, so that nothing depends on timing.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

TestSuite(executor, .timeout = 60);

/* The linker redirects the library's calls of pthread_create() to this. */
static atomic_bool no_threads;
static weir_dur late; /* delay before a thread starts */
static weir_time started;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);

struct start {
	void *(*start)(void *);
	void *arg;
};

static void *start_late(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	usleep((useconds_t)(late / WEIR_US));
	started = weir_now();
	return start.start(start.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	struct start *copy;

	if (no_threads)
		return EAGAIN;
	if (late == 0)
		return __real_pthread_create(thread, attr, start, arg);
	copy = malloc(sizeof(*copy));
	*copy = (struct start){.start = start, .arg = arg};
	return __real_pthread_create(thread, attr, start_late, copy);
}

/* And its calls of weir_cancel(): runs what is to happen after it, before the executor knows. */
static atomic_bool watch_cancel;
static void (*after_cancel)(void *arg);
static void *after_cancel_arg;

int __real_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token);
int __wrap_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token);
int __wrap_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token)
{
	int r = __real_weir_cancel(limiter, wait, token);

	if (watch_cancel)
		after_cancel(after_cancel_arg);
	return r;
}

static struct weir_limiter *make_limiter(uint32_t limit, uint32_t queue)
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

static struct weir_executor *make(struct weir_limiter *limiter, uint32_t threads, uint32_t queue)
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

static struct weir_executor_stats stats_of(struct weir_executor *e)
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

static struct gate *make_gate(void)
{
	static struct gate gate;

	cr_assert_eq(sem_init(&gate.open, 0, 0), 0);
	return &gate;
}

static enum weir_outcome pass(void *arg)
{
	struct gate *gate = arg;

	gate->arrived++;
	while (sem_wait(&gate->open) != 0)
		;
	gate->passed++;
	return WEIR_SUCCESS;
}

static void let(struct gate *gate, int tasks)
{
	while (tasks-- > 0)
		sem_post(&gate->open);
}

static void end(struct weir_executor *e, struct weir_limiter *limiter)
{
	cr_assert_eq(weir_executor_destroy(e), 0);
	if (limiter == NULL)
		return;
	cr_assert_eq(weir_inflight(limiter), 0);
	cr_assert_eq(weir_waiting(limiter), 0);
	weir_limiter_destroy(limiter);
}

static enum weir_outcome count(void *arg)
{
	++*(atomic_int *)arg;
	return WEIR_SUCCESS;
}

Test(executor, runs_what_is_submitted)
{
	struct weir_executor *e;
	atomic_int counter = 0;

	cr_assert_eq(weir_executor_create(NULL, &e), 0);
	cr_assert_eq(stats_of(e).threads, 0);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_eq(counter, 1000);
	cr_assert_eq(stats_of(e).completed, 1000);
	cr_assert_eq(weir_inflight(weir_executor_limiter(e)), 0);
	cr_assert_eq(rig_snapshot(weir_executor_limiter(e)).succeeded, 1000);
	end(e, NULL);
}

Test(executor, without_a_queue_a_task_without_a_permit_is_refused)
{
	struct weir_limiter *l = make_limiter(2, 0);
	struct weir_executor *e = make(l, 0, 0);
	struct gate *gate = make_gate();

	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -EAGAIN);
	cr_assert_eq(weir_executor_submit(e, pass, gate, 0), -ETIMEDOUT);
	cr_assert_eq(weir_executor_submit(e, pass, gate, weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(stats_of(e).running, 2);
	cr_assert_eq(stats_of(e).refused, 1);
	cr_assert_eq(stats_of(e).timed_out, 2);
	cr_assert_eq(stats_of(e).blocked, 0);
	cr_assert_eq(weir_inflight(l), 2);
	let(gate, 2);
	end(e, l);
	cr_assert_eq(gate->passed, 2);
}

Test(executor, the_queue_holds_as_many_tasks_as_configured)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 3);
	struct gate *gate = make_gate();

	for (int i = 0; i < 4; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -EAGAIN);
	cr_assert_eq(weir_executor_submit(e, pass, gate, weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(stats_of(e).queued, 3);
	cr_assert_eq(stats_of(e).running, 1);
	let(gate, 1);
	UNTIL(stats_of(e).queued == 2);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	let(gate, 4);
	end(e, l);
	cr_assert_eq(gate->passed, 5);
}

struct submission {
	struct weir_executor *executor;
	struct gate *gate;
	int result;
};

static void *submit_and_wait(void *arg)
{
	struct submission *s = arg;

	s->result = weir_executor_submit(s->executor, pass, s->gate, WEIR_FOREVER);
	return NULL;
}

static void submit_from_threads(struct submission *s, pthread_t *threads, int n,
				struct weir_executor *e, struct gate *gate)
{
	for (int i = 0; i < n; i++) {
		s[i] = (struct submission){.executor = e, .gate = gate, .result = 1};
		cr_assert_eq(pthread_create(&threads[i], NULL, submit_and_wait, &s[i]), 0);
	}
	UNTIL(stats_of(e).blocked == (uint32_t)n);
}

static void waits_for_a_permit(uint32_t limiter_queue, uint32_t queue)
{
	struct weir_limiter *l = make_limiter(1, limiter_queue);
	struct weir_executor *e = make(l, 0, queue);
	struct gate *gate = make_gate();
	struct submission s[3];
	pthread_t threads[3];

	for (uint32_t i = 0; i < 1 + queue; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	submit_from_threads(s, threads, 3, e, gate);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -EAGAIN);
	let(gate, 4 + (int)queue);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		cr_assert_eq(s[i].result, 0);
	}
	end(e, l);
	cr_assert_eq(gate->passed, 4 + (int)queue);
}

Test(executor, a_submit_waits_for_a_permit)
{
	waits_for_a_permit(1, 0);
}

Test(executor, a_submit_waits_for_room)
{
	waits_for_a_permit(1, 2);
}

Test(executor, a_limiter_without_a_queue_works)
{
	waits_for_a_permit(0, 0);
}

/* Nothing rings: the release is not the executor's own, and there is no queue. */
Test(executor, a_permit_returned_by_another_user_is_found)
{
	struct weir_limiter *l = make_limiter(1, 0);
	struct weir_executor *e = make(l, 0, 1);
	struct weir_token token;
	atomic_int counter = 0;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(weir_executor_try_submit(e, count, &counter), 0);
	UNTIL(rig_snapshot(l).rejected > 10);
	cr_assert_eq(counter, 0);
	weir_release(l, &token, WEIR_SUCCESS);
	UNTIL(counter == 1);
	end(e, l);
}

Test(executor, a_limiters_queue_that_is_full_is_tried_again)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 1);
	struct weir_token token, other;
	atomic_int counter = 0;
	struct weir_wait wait;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_executor_try_submit(e, count, &counter), 0);
	UNTIL(rig_snapshot(l).rejected > 10);
	cr_assert_eq(weir_cancel(l, &wait, &other), 0);
	UNTIL(weir_waiting(l) == 1);
	weir_release(l, &token, WEIR_SUCCESS);
	UNTIL(counter == 1);
	end(e, l);
}

Test(executor, parallelism_follows_the_limit)
{
	struct weir_limiter *l = make_limiter(2, 1);
	struct weir_executor *e = make(l, 0, 100);
	struct gate *gate = make_gate();

	for (int i = 0; i < 50; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	UNTIL(gate->arrived == 2);
	cr_assert_eq(weir_limit_set(l, 10), 0);
	UNTIL(gate->arrived == 10);
	cr_assert_eq(stats_of(e).running, 10);
	cr_assert_eq(weir_limit_set(l, 3), 0);
	let(gate, 7);
	UNTIL(stats_of(e).running == 3 && weir_inflight(l) == 3);
	cr_assert_eq(gate->arrived, 10);
	let(gate, 1);
	UNTIL(gate->arrived == 11);
	cr_assert_eq(stats_of(e).running, 3);
	let(gate, 42);
	end(e, l);
	cr_assert_eq(gate->passed, 50);
}

Test(executor, no_more_threads_than_allowed)
{
	struct weir_limiter *l = make_limiter(50, 1);
	struct weir_executor *e = make(l, 3, 20);
	struct gate *gate = make_gate();

	for (int i = 0; i < 20; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	UNTIL(gate->arrived == 3);
	cr_assert_eq(stats_of(e).threads, 3);
	cr_assert_eq(weir_inflight(l), 3);
	let(gate, 20);
	end(e, l);
	cr_assert_eq(gate->passed, 20);
}

struct numbered {
	atomic_int *next;
	int came;
};

static enum weir_outcome take_number(void *arg)
{
	struct numbered *n = arg;

	n->came = (*n->next)++;
	return WEIR_SUCCESS;
}

Test(executor, tasks_start_in_order)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 7);
	struct numbered tasks[500];
	atomic_int next = 0;

	for (int i = 0; i < 500; i++) {
		tasks[i] = (struct numbered){.next = &next};
		cr_assert_eq(weir_executor_submit(e, take_number, &tasks[i], WEIR_FOREVER), 0);
	}
	end(e, l);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(tasks[i].came, i);
}

static enum weir_outcome say(void *arg)
{
	return *(enum weir_outcome *)arg;
}

Test(executor, outcomes_of_tasks_reach_the_limiter)
{
	enum weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_IGNORE,  WEIR_IGNORE,
					WEIR_DROPPED, WEIR_DROPPED, WEIR_DROPPED};
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 0);

	for (int i = 0; i < 6; i++)
		cr_assert_eq(weir_executor_submit(e, say, &outcomes[i], WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_eq(rig_snapshot(l).succeeded, 1);
	cr_assert_eq(rig_snapshot(l).ignored, 2);
	cr_assert_eq(rig_snapshot(l).dropped, 3);
	end(e, l);
}

/*
 * The lowest latency: a task that passes on its permit may record its own latency after the next.
 */
static void keep_least(void *arg, const struct weir_report *report)
{
	double *least = arg;

	if (*least == 0 || report->window.rtt_min < *least)
		*least = report->window.rtt_min;
}

/* Every sample is a window, which the observer sees. */
static struct weir_executor *make_observed(const struct weir_observer *observer)
{
	struct weir_fixed_config fixed = {.limit = 1};
	struct weir_executor_config config;
	struct weir_executor *e;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	limiter.windowing = WEIR_WINDOW_SAMPLE;
	limiter.observer = observer;
	weir_executor_config_init(&config);
	config.limiter_config = &limiter;
	config.queue = 1;
	cr_assert_eq(weir_executor_create(&config, &e), 0);
	return e;
}

/* The second task waits for the first, which is let through late. */
Test(executor, time_in_the_queue_is_not_latency)
{
	double least = 0;
	const struct weir_observer observer = {.window = keep_least, .arg = &least};
	struct weir_executor *e = make_observed(&observer);
	struct gate *gate = make_gate();
	atomic_int counter = 0;
	weir_time let_at;

	cr_assert_eq(weir_executor_submit(e, pass, gate, WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	usleep(200000);
	let_at = weir_now();
	let(gate, 1);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_gt(least, 0);
	cr_assert_leq(least, (double)(weir_now() - let_at));
	end(e, NULL);
}

Test(executor, thread_start_time_is_not_latency)
{
	double least = 0;
	const struct weir_observer observer = {.window = keep_least, .arg = &least};
	struct weir_executor *e = make_observed(&observer);
	atomic_int counter = 0;

	late = 200 * WEIR_MS;
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_gt(least, 0);
	cr_assert_leq(least, (double)(weir_now() - started));
	end(e, NULL);
}

/* Tasks that do not return. */

static enum weir_outcome leave_thread(void *arg)
{
	++*(atomic_int *)arg;
	pthread_exit(NULL);
}

static enum weir_outcome cancel_self(void *arg)
{
	++*(atomic_int *)arg;
	pthread_cancel(pthread_self());
	pause();
	return WEIR_DROPPED;
}

static void outlives(weir_task_fn *deadly, uint32_t threads, uint32_t queue)
{
	struct weir_limiter *l = make_limiter(2, 1);
	struct weir_executor *e = make(l, threads, queue);
	atomic_int counter = 0, died = 0;

	for (int i = 0; i < 100; i++) {
		cr_assert_eq(weir_executor_submit(e, deadly, &died, WEIR_FOREVER), 0);
		cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	}
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_eq(died, 100);
	cr_assert_eq(counter, 100);
	cr_assert_eq(stats_of(e).died, 100);
	cr_assert_eq(stats_of(e).completed, 100);
	cr_assert_eq(rig_snapshot(l).ignored, 100);
	cr_assert_eq(rig_snapshot(l).succeeded, 100);
	end(e, l);
}

Test(executor, outlives_tasks_that_exit)
{
	outlives(leave_thread, 0, 0);
}

Test(executor, outlives_tasks_that_are_cancelled)
{
	outlives(cancel_self, 0, 10);
}

Test(executor, the_only_thread_is_replaced)
{
	outlives(leave_thread, 1, 10);
}

/* It requests its own cancellation, and returns before that acts. */
static enum weir_outcome cancel_and_return(void *arg)
{
	int state;

	++*(atomic_int *)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	return WEIR_DROPPED;
}

static enum weir_outcome pass_a_cancellation_point(void *arg)
{
	usleep(1);
	pthread_testcancel();
	return count(arg);
}

Test(executor, a_late_cancel_does_not_hit_the_next_task)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 1, 0);
	atomic_int counter = 0;

	for (int i = 0; i < 20; i++) {
		cr_assert_eq(weir_executor_submit(e, cancel_and_return, &counter, WEIR_FOREVER), 0);
		cr_assert_eq(
			weir_executor_submit(e, pass_a_cancellation_point, &counter, WEIR_FOREVER),
			0);
	}
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_eq(counter, 40);
	cr_assert_eq(stats_of(e).completed, 40);
	cr_assert_eq(stats_of(e).died, 0);
	cr_assert_eq(rig_snapshot(l).dropped, 20);
	end(e, l);
}

/* A system that cannot create threads. */

Test(executor, without_a_thread_nothing_is_accepted_and_no_permit_is_lost)
{
	struct weir_limiter *l = make_limiter(2, 1);
	struct weir_executor *e = make(l, 0, 5);
	atomic_int counter = 0;

	no_threads = true;
	cr_assert_eq(weir_executor_try_submit(e, count, &counter), -ENOMEM);
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), -ENOMEM);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(stats_of(e).refused, 2);
	no_threads = false;
	cr_assert_eq(weir_executor_try_submit(e, count, &counter), 0);
	end(e, l);
	cr_assert_eq(counter, 1);
}

Test(executor, a_few_threads_do_the_work_of_many)
{
	struct weir_limiter *l = make_limiter(10, 1);
	struct weir_executor *e = make(l, 0, 5);
	struct gate *gate = make_gate();

	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	no_threads = true;
	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -EAGAIN);
	cr_assert_eq(stats_of(e).threads, 1);
	cr_assert_eq(weir_inflight(l), 1);
	let(gate, 6);
	end(e, l);
	cr_assert_eq(gate->passed, 6);
}

static enum weir_outcome pass_and_exit(void *arg)
{
	pass(arg);
	pthread_exit(NULL);
}

Test(executor, the_last_thread_stays_until_there_is_another)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 1, 1);
	struct gate *gate = make_gate();
	atomic_int counter = 0;

	cr_assert_eq(weir_executor_try_submit(e, pass_and_exit, gate), 0);
	cr_assert_eq(weir_executor_try_submit(e, count, &counter), 0);
	no_threads = true;
	let(gate, 1);
	UNTIL(stats_of(e).died == 1 && weir_inflight(l) == 0);
	cr_assert_eq(stats_of(e).threads, 1);
	cr_assert_eq(weir_executor_drain(e, weir_now() + 30 * WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(counter, 0);
	no_threads = false;
	end(e, l);
	cr_assert_eq(counter, 1);
}

Test(executor, idle_threads_end)
{
	struct weir_executor_config config;
	struct weir_executor *e;
	atomic_int counter = 0;

	weir_executor_config_init(&config);
	config.idle = WEIR_MS;
	config.name = "fifteen letters";
	config.stack = 64 << 10;
	cr_assert_eq(weir_executor_create(&config, &e), 0);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
		UNTIL(stats_of(e).threads == 0);
	}
	cr_assert_eq(counter, 20);
	end(e, NULL);
}

/* An end of the idle time that is beyond the clock's range is none. */
Test(executor, idle_threads_may_stay_for_ever)
{
	struct weir_executor_config config;
	struct weir_executor *e;
	atomic_int counter = 0;

	weir_executor_config_init(&config);
	config.idle = WEIR_FOREVER;
	cr_assert_eq(weir_executor_create(&config, &e), 0);
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	UNTIL(counter == 1);
	usleep(10000);
	cr_assert_geq(stats_of(e).threads, 1);
	end(e, NULL);
}

struct surroundings {
	char name[16];
	sigset_t blocked;
};

static enum weir_outcome look_around(void *arg)
{
	struct surroundings *seen = arg;

	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
	return WEIR_SUCCESS;
}

Test(executor, threads_have_a_name_and_leave_signals_to_others)
{
	struct surroundings seen = {.name = ""};
	struct weir_executor *e = make(NULL, 0, 0);

	cr_assert_eq(weir_executor_submit(e, look_around, &seen, WEIR_FOREVER), 0);
	end(e, NULL);
	cr_assert_str_eq(seen.name, "weir");
	cr_assert_eq(sigismember(&seen.blocked, SIGTERM), 1);
	cr_assert_eq(sigismember(&seen.blocked, SIGSEGV), 0);
}

/* The end. */

Test(executor, a_drain_has_a_deadline_and_refuses_what_comes_after)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 2);
	struct gate *gate = make_gate();

	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_drain(e, 0), -ETIMEDOUT);
	cr_assert_eq(weir_executor_drain(e, weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -ESHUTDOWN);
	cr_assert_eq(weir_executor_submit(e, pass, gate, WEIR_FOREVER), -ESHUTDOWN);
	let(gate, 3);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_eq(gate->passed, 3);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(weir_executor_drain(e, 0), 0);
	end(e, l);
}

Test(executor, a_drain_ends_submits_that_wait)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 0);
	struct gate *gate = make_gate();
	struct submission s[4];
	pthread_t threads[4];

	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	submit_from_threads(s, threads, 4, e, gate);
	UNTIL(weir_waiting(l) == 1);
	cr_assert_eq(weir_executor_drain(e, 0), -ETIMEDOUT);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		cr_assert_eq(s[i].result, -ESHUTDOWN);
	}
	UNTIL(weir_waiting(l) == 0); /* with the first task still running */
	let(gate, 1);
	end(e, l);
	cr_assert_eq(gate->passed, 1);
}

Test(executor, the_leader_leaves_the_limiters_queue_when_no_task_waits)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 0);
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(weir_executor_submit(e, count, NULL, weir_now() + 20 * WEIR_MS), -ETIMEDOUT);
	UNTIL(weir_waiting(l) == 0);
	weir_release(l, &token, WEIR_SUCCESS);
	end(e, l);
}

static void submit_in_between(void *arg)
{
	struct submission *s = arg;
	pthread_t thread;

	watch_cancel = false;
	cr_assert_eq(pthread_create(&thread, NULL, submit_and_wait, s), 0);
	pthread_detach(thread);
	UNTIL(stats_of(s->executor).blocked == 1);
}

/* It comes when the leader has left the queue, but has not recorded that yet. */
Test(executor, a_submit_that_comes_as_the_leader_steps_down_is_seen)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 0);
	static struct submission s; /* outlives the thread that submits */
	struct weir_token token;

	s = (struct submission){.executor = e, .gate = make_gate(), .result = 1};
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	after_cancel_arg = &s;
	after_cancel = submit_in_between;
	watch_cancel = true;
	/* On a busy machine the deadline may pass before there is a leader: then try again. */
	do {
		cr_assert_eq(weir_executor_submit(e, count, NULL, weir_now() + 20 * WEIR_MS),
			     -ETIMEDOUT);
		for (unsigned looks = 0; watch_cancel && looks < 5000; looks++)
			usleep(200);
	} while (watch_cancel);
	UNTIL(weir_waiting(l) == 1);
	weir_release(l, &token, WEIR_SUCCESS);
	let(s.gate, 1);
	UNTIL(s.gate->passed == 1);
	end(e, l);
}

struct returned {
	int tasks;
	void *last;
};

static void take_back(void *context, weir_task_fn *run, void *arg)
{
	struct returned *returned = context;

	cr_assert_eq(run, pass);
	returned->tasks++;
	returned->last = arg;
}

Test(executor, discarded_tasks_are_given_back)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 5);
	struct gate *gate = make_gate();
	struct returned returned = {.tasks = 0};

	for (int i = 0; i < 6; i++)
		cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	cr_assert_eq(weir_executor_discard(e, take_back, &returned), 5);
	cr_assert_eq(returned.tasks, 5);
	cr_assert_eq(returned.last, gate);
	cr_assert_eq(weir_executor_discard(e, NULL, NULL), 0);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), -ESHUTDOWN);
	cr_assert_eq(stats_of(e).discarded, 5);
	let(gate, 1);
	end(e, l);
	cr_assert_eq(gate->passed, 1);
}

/* A permit is out that is not the executor's, so none of its tasks runs, and none can end. */
Test(executor, a_discard_does_not_wait_for_permits_of_others)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 5);
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(weir_executor_try_submit(e, count, NULL), 0);
	UNTIL(weir_waiting(l) == 1);
	cr_assert_eq(weir_executor_discard(e, NULL, NULL), 1);
	cr_assert_eq(weir_executor_destroy(e), 0);
	cr_assert_eq(weir_waiting(l), 0);
	weir_release(l, &token, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

/* Calls from a task. */

struct inner {
	struct weir_executor *executor;
	atomic_int counter;
	int tried, waited, late, drained, destroyed;
};

static enum weir_outcome call_own_executor(void *arg)
{
	struct inner *in = arg;

	in->tried = weir_executor_try_submit(in->executor, count, &in->counter);
	in->waited = weir_executor_submit(in->executor, count, &in->counter, WEIR_FOREVER);
	in->late = weir_executor_submit(in->executor, count, &in->counter, 0);
	in->drained = weir_executor_drain(in->executor, WEIR_FOREVER);
	in->destroyed = weir_executor_destroy(in->executor);
	return WEIR_SUCCESS;
}

Test(executor, a_task_cannot_wait_for_itself)
{
	struct weir_limiter *l = make_limiter(1, 1);
	struct weir_executor *e = make(l, 0, 1);
	struct inner in = {.executor = e};

	cr_assert_eq(weir_executor_submit(e, call_own_executor, &in, WEIR_FOREVER), 0);
	UNTIL(stats_of(e).completed == 2);
	cr_assert_eq(in.tried, 0);
	cr_assert_eq(in.waited, -EDEADLK);
	cr_assert_eq(in.late, -ETIMEDOUT);
	cr_assert_eq(in.drained, -EDEADLK);
	cr_assert_eq(in.destroyed, -EDEADLK);
	cr_assert_eq(in.counter, 1);
	cr_assert_eq(weir_executor_try_submit(e, count, &in.counter), 0, "it is still open");
	end(e, l);
}

/* What is refused. */

Test(executor, bad_configurations)
{
	struct weir_limiter *l = make_limiter(1, 1);
	const struct weir_config bad_limiter = {
		.size = sizeof(bad_limiter), .limit_min = 2, .limit_max = 1};
	const struct weir_config good_limiter = {.size = sizeof(good_limiter)};
	const size_t size = sizeof(struct weir_executor_config);
	const struct weir_executor_config bad[] = {
		{.size = 0},
		{.size = size + 1},
		{.size = size, .limiter = l, .limiter_config = &good_limiter},
		{.size = size, .limiter_config = &bad_limiter},
		{.size = size, .queue = WEIR_LIMIT_MAX + 1},
		{.size = size, .name = "sixteen letters!"},
		{.size = size, .stack = 1},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_executor *e = (struct weir_executor *)l;

		cr_assert_eq(weir_executor_create(&bad[i], &e), -EINVAL, "%zu", i);
		cr_assert_null(e);
	}
	weir_limiter_destroy(l);
}

/* The limiter that it creates waits with the queue that is configured, or with a queue of one. */
Test(executor, the_queue_of_its_own_limiter_may_be_configured)
{
	struct weir_config limiter;
	struct weir_executor_config config;
	struct weir_executor *e;

	weir_executor_config_init(&config);
	config.limiter_config = &limiter;
	for (uint32_t queue = 0; queue < 3; queue++) {
		weir_config_init(&limiter);
		limiter.queue = queue;
		cr_assert_eq(weir_executor_create(&config, &e), 0);
		cr_assert_eq(weir_queue_size(weir_executor_limiter(e)), queue > 0 ? queue : 1);
		cr_assert_eq(weir_executor_destroy(e), 0);
	}
}

Test(executor, no_task_and_no_executor)
{
	struct weir_executor *e;

	cr_assert_eq(weir_executor_create(NULL, &e), 0);
	cr_assert_eq(weir_executor_try_submit(e, NULL, NULL), -EINVAL);
	cr_assert_eq(weir_executor_submit(e, NULL, NULL, WEIR_FOREVER), -EINVAL);
	cr_assert_eq(weir_executor_destroy(e), 0);
	cr_assert_eq(weir_executor_destroy(NULL), 0);
}

Test(executor, older_programs_get_fewer_fields)
{
	struct {
		struct weir_executor_stats stats;
		char after[8];
	} old = {.after = "intact"};
	const size_t known = offsetof(struct weir_executor_stats, completed);
	struct weir_executor *e;
	struct weir_executor_config config;

	weir_executor_config_init_sized(&config,
					offsetof(struct weir_executor_config, threads_max));
	cr_assert_eq(weir_executor_create(&config, &e), 0);
	memset(&old.stats, 0x55, sizeof(old.stats));
	weir_executor_stats_init_sized(&old.stats, known);
	weir_executor_stats_take(e, &old.stats);
	cr_assert_eq(old.stats.size, known);
	cr_assert_eq(old.stats.submitted, 0);
	cr_assert_eq(old.stats.completed, UINT64_C(0x5555555555555555));
	cr_assert_str_eq(old.after, "intact");
	end(e, NULL);
}
