/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor (lib/extra/worker.h): threads that submit, a leader that waits for permits, and
 * workers that come and go. Its limiter admits one call, so the tasks run one after the other.
 */

#include <errno.h>
#include <string.h>

#include <weir/executor.h>
#include <weir/limits.h>
#include <weir/observe.h>

#include "tests/interleave/explore.h"

static struct weir_limiter *limiter;
static struct weir_executor *executor;
static struct weir_token outside; /* a permit that a call outside of the executor has */
static struct ghost running, ran;
static struct ghost accepted; /* submits that were not refused */

static void set_up(uint32_t queue)
{
	static const struct weir_fixed_config one = {.limit = 1};
	struct weir_executor_config config;
	struct weir_config only;

	weir_config_init(&only);
	only.limit = weir_limit_by_name("fixed");
	only.limit_config = &one;
	only.stripes = 1;
	only.queue = 1;
	require(weir_limiter_create(&only, &limiter) == 0);
	weir_executor_config_init(&config);
	config.limiter = limiter;
	config.threads_max = 2;
	config.queue = queue;
	config.idle = WEIR_FOREVER;
	require(weir_executor_create(&config, &executor) == 0);
	running = ran = accepted = (struct ghost){0};
}

static void setup(void)
{
	set_up(1);
}

static void setup_full(void)
{
	set_up(1);
	require(weir_try_acquire(limiter, &outside) == 0);
}

static void setup_full_without_queue(void)
{
	set_up(0);
	require(weir_try_acquire(limiter, &outside) == 0);
}

static enum weir_outcome task(void *arg)
{
	(void)arg;
	require(ghost_add(&running, 1) == 1);
	explore_step();
	ghost_add(&running, -1);
	ghost_add(&ran, 1);
	return WEIR_SUCCESS;
}

static void submit(void)
{
	require(weir_executor_submit(executor, task, NULL, WEIR_FOREVER) == 0);
}

static void release_outside(void)
{
	weir_release(limiter, &outside, WEIR_SUCCESS);
}

/* Submits, and destroys the executor when all tasks were accepted. */
static void submit_and_destroy(void)
{
	submit();
	explore_await_end(0);
	require(weir_executor_destroy(executor) == 0);
	require(ghost_get(&ran) == 2);
}

/* Tasks that were accepted when others are discarded: each is run or given back. */
static void count_given(void *context, weir_task_fn *run, void *arg)
{
	(void)run;
	(void)arg;
	ghost_add(context, 1);
}

static void discard_and_destroy(void)
{
	struct ghost given = {0};

	(void)weir_executor_discard(executor, count_given, &given);
	explore_await_end(0);
	require(weir_executor_destroy(executor) == 0);
	require(ghost_get(&ran) + ghost_get(&given) == ghost_get(&accepted));
}

static void try_two(void)
{
	for (int i = 0; i < 2; i++)
		if (weir_executor_try_submit(executor, task, NULL) == 0)
			ghost_add(&accepted, 1);
}

/* A submit whose deadline passes while another task runs. */
static void submit_in_time(void)
{
	const int status = weir_executor_submit(executor, task, NULL, explore_now() + WEIR_S);

	require(status == 0 || status == -ETIMEDOUT);
	ghost_add(&accepted, status == 0);
}

static void submit_two_and_destroy(void)
{
	submit();
	submit();
	explore_await_end(0);
	require(weir_executor_destroy(executor) == 0);
	require(ghost_get(&ran) == ghost_get(&accepted) + 2);
}

static void discard_at_once(void)
{
	struct ghost given = {0};

	explore_await_end(0);
	(void)weir_executor_discard(executor, count_given, &given);
	require(weir_executor_destroy(executor) == 0);
	require(ghost_get(&ran) + ghost_get(&given) == ghost_get(&accepted));
}

static void check_permits(void)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	require(snapshot.inflight == 0 && snapshot.waiting == 0);
}

static void submit_alone(void)
{
	submit();
	require(weir_executor_destroy(executor) == 0);
	require(ghost_get(&ran) == 1);
}

/* A submit that waits, and is refused when the executor closes. */
static void submit_vainly(void)
{
	require(weir_executor_submit(executor, task, NULL, WEIR_FOREVER) == -ESHUTDOWN);
}

static void close_and_destroy(void)
{
	require(weir_executor_drain(executor, WEIR_FOREVER) == 0);
	explore_await_end(0);
	require(weir_executor_destroy(executor) == 0);
}

/*
 * A mutex guards all of the executor, and the limiter has scenes of its own: so no stale reads here.
 */
static const struct scene scenes[] = {
	{
		.name = "executor.run",
		.no_timeouts = true,
		.claim = "each task that was accepted is run, one at a time",
		.no_stale = true,
		.setup = setup,
		.threads = {submit, submit_and_destroy},
	},
	{
		.name = "executor.deadline",
		.preemptions = 1, /* with 2: 1.1 million states */
		.claim = "a task is run exactly if its submit was not refused by its deadline",
		.no_stale = true,
		.setup = setup,
		.threads = {submit_in_time, submit_two_and_destroy},
	},
	{
		.name = "executor.discard",
		.no_timeouts = true,
		.claim = "each task that was accepted is run or given back",
		.no_stale = true,
		.setup = setup,
		.threads = {try_two, discard_and_destroy},
	},
	{
		.name = "executor.outside",
		.claim = "a task that is queued is run when a call outside ends",
		.no_timeouts = true,
		.no_stale = true,
		.setup = setup_full,
		.threads = {submit, submit_and_destroy, release_outside},
		.check = check_permits,
	},
	{
		.name = "executor.alone",
		.claim = "a task that is queued is run though no other is submitted",
		.no_timeouts = true,
		.no_stale = true,
		.setup = setup_full,
		.threads = {submit_alone, release_outside},
		.check = check_permits,
	},
	{
		.name = "executor.close",
		.claim = "a drain refuses the submits that wait, and ends without their permit",
		.no_timeouts = true,
		.no_stale = true,
		.setup = setup_full_without_queue,
		.threads = {submit_vainly, close_and_destroy},
	},
	{
		.name = "executor.permit_too_late",
		.claim = "a permit that comes for a task that was discarded is given back",
		.no_timeouts = true,
		.no_stale = true,
		.setup = setup_full,
		.threads = {try_two, discard_at_once, release_outside},
		.check = check_permits,
	},
	{
		.name = "executor.vain",
		.claim = "an executor ends without a permit that no task needs",
		.no_timeouts = true,
		.no_stale = true,
		.setup = setup_full,
		.threads = {try_two, discard_at_once},
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
