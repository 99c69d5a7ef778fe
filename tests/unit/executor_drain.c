/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of an executor: draining, discarding, and tasks that are submitted meanwhile.
 */

#include <errno.h>

#include "executor_rig.h"

TestSuite(executor_drain, .timeout = 60);

Test(executor_drain, a_drain_has_a_deadline_and_refuses_what_comes_after)
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

Test(executor_drain, a_drain_ends_submits_that_wait)
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

Test(executor_drain, the_leader_leaves_the_limiters_queue_when_no_task_waits)
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
Test(executor_drain, a_submit_that_comes_as_the_leader_steps_down_is_seen)
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

Test(executor_drain, discarded_tasks_are_given_back)
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
Test(executor_drain, a_discard_does_not_wait_for_permits_of_others)
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
