/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor's threads: tasks that end their thread, threads that cannot be created, and idle
 * ones.
 */

#include <errno.h>
#include <signal.h>

#include "executor_rig.h"

TestSuite(executor_threads, .timeout = 60);

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

Test(executor_threads, outlives_tasks_that_exit)
{
	outlives(leave_thread, 0, 0);
}

Test(executor_threads, outlives_tasks_that_are_cancelled)
{
	outlives(cancel_self, 0, 10);
}

Test(executor_threads, the_only_thread_is_replaced)
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

Test(executor_threads, a_late_cancel_does_not_hit_the_next_task)
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

Test(executor_threads, without_a_thread_nothing_is_accepted_and_no_permit_is_lost)
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

Test(executor_threads, a_few_threads_do_the_work_of_many)
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

Test(executor_threads, the_last_thread_stays_until_there_is_another)
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

Test(executor_threads, idle_threads_end)
{
	struct weir_executor_config config;
	struct weir_executor *e;
	atomic_int counter = 0;

	weir_executor_config_init(&config);
	config.idle = WEIR_MS;
	config.name = "fifteen letters";
	config.stack = 128 << 10; /* the least that arm64 allows */
	cr_assert_eq(weir_executor_create(&config, &e), 0);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
		UNTIL(stats_of(e).threads == 0);
	}
	cr_assert_eq(counter, 20);
	end(e, NULL);
}

/* An end of the idle time that is beyond the clock's range is none. */
Test(executor_threads, idle_threads_may_stay_for_ever)
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

Test(executor_threads, threads_have_a_name_and_leave_signals_to_others)
{
	struct surroundings seen = {.name = ""};
	struct weir_executor *e = make(NULL, 0, 0);

	cr_assert_eq(weir_executor_submit(e, look_around, &seen, WEIR_FOREVER), 0);
	end(e, NULL);
	cr_assert_str_eq(seen.name, "weir");
	cr_assert_eq(sigismember(&seen.blocked, SIGTERM), 1);
	cr_assert_eq(sigismember(&seen.blocked, SIGSEGV), 0);
}
