/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor: what it accepts, and how it runs it with a limiter and a queue.
 */

#include <errno.h>
#include <string.h>

#include "executor_rig.h"

TestSuite(executor, .timeout = 60);

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

/* Without a queue the leader polls. The end of a task wakes it, and it takes the permit. */
Test(executor, the_end_of_a_task_wakes_a_leader_without_a_queue)
{
	struct weir_limiter *l = make_limiter(1, 0);
	struct weir_executor *e = make(l, 0, 1);
	struct gate *gate = make_gate();

	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	UNTIL(gate->arrived == 1);
	cr_assert_eq(weir_executor_try_submit(e, pass, gate), 0);
	UNTIL(rig_snapshot(l).rejected > 10);
	let(gate, 1);
	UNTIL(gate->arrived == 2);
	let(gate, 1);
	end(e, l);
	cr_assert_eq(gate->passed, 2);
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
 * What an observer sees: a task that passes on its permit may record its own latency after the next.
 * A sample that comes while another one is observed is left for the next window.
 */
struct seen {
	double least; /* latency */
	double samples;
};

static void keep_least(void *arg, const struct weir_report *report)
{
	struct seen *seen = arg;

	if (seen->samples == 0 || report->window.rtt_min < seen->least)
		seen->least = report->window.rtt_min;
	seen->samples += report->window.count;
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

/*
 * The second task waits for the first, which is let through late. Returns the time that was left for
 * the second.
 */
static weir_time run_late(struct seen *seen)
{
	const struct weir_observer observer = {.window = keep_least, .arg = seen};
	struct weir_executor *e = make_observed(&observer);
	struct gate *gate = make_gate();
	atomic_int counter = 0;
	weir_time let_at, left;

	cr_assert_eq(weir_executor_submit(e, pass, gate, WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	usleep(200000);
	let_at = weir_now();
	let(gate, 1);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	left = weir_now() - let_at;
	end(e, NULL);
	return left;
}

Test(executor, time_in_the_queue_is_not_latency)
{
	struct seen seen;
	weir_time left;
	unsigned tries = 0;

	do {
		cr_assert_lt(tries++, 100);
		seen = (struct seen){.samples = 0};
		left = run_late(&seen);
	} while (seen.samples < 2);
	cr_assert_leq(seen.least, (double)left);
}

Test(executor, thread_start_time_is_not_latency)
{
	struct seen seen = {.samples = 0};
	const struct weir_observer observer = {.window = keep_least, .arg = &seen};
	struct weir_executor *e = make_observed(&observer);
	atomic_int counter = 0;

	late = 200 * WEIR_MS;
	cr_assert_eq(weir_executor_submit(e, count, &counter, WEIR_FOREVER), 0);
	cr_assert_eq(weir_executor_drain(e, WEIR_FOREVER), 0);
	cr_assert_gt(seen.samples, 0);
	cr_assert_leq(seen.least, (double)(weir_now() - started));
	end(e, NULL);
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
