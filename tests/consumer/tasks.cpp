/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tasks.cpp - tasks of a C++ program: destructors run when a task is cut short, and an exception
 * must be handled inside the task.
 *
 *	tasks [uncaught]
 */
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <cxxabi.h>
#include <pthread.h>

#include <weir/weir.h>

static int destroyed, unwound, caught;

struct Witness {
	~Witness()
	{
		destroyed++;
	}
};

static weir_outcome exits(void *)
{
	Witness witness;

	try {
		pthread_exit(nullptr);
	} catch (abi::__forced_unwind &) {
		unwound++;
		throw;
	}
}

static weir_outcome is_cancelled(void *)
{
	Witness witness;

	pthread_cancel(pthread_self());
	pthread_testcancel();
	return WEIR_DROPPED;
}

static weir_outcome throws(void *)
{
	Witness witness;

	throw std::runtime_error("an uncaught error");
}

static weir_outcome throws_and_catches(void *)
{
	try {
		return throws(nullptr);
	} catch (const std::exception &) {
		caught++;
		return WEIR_IGNORE;
	}
}

int main(int argc, char **argv)
{
	weir_task_fn *const tasks[] = {exits, is_cancelled, throws_and_catches};
	weir_executor_config config;
	weir_executor_stats stats;
	weir_executor *executor;

	weir_executor_config_init(&config);
	config.threads_max = 1; /* so the counters have one writer at a time */
	if (weir_executor_create(&config, &executor) != 0)
		return 1;
	if (argc > 1 && std::strcmp(argv[1], "uncaught") == 0) {
		if (weir_executor_submit(executor, throws, nullptr, WEIR_FOREVER) != 0)
			return 1;
		weir_executor_destroy(executor);
		return 0;
	}
	for (int i = 0; i < 30; i++) {
		if (weir_executor_submit(executor, tasks[i % 3], nullptr, WEIR_FOREVER) != 0)
			return 1;
	}
	weir_executor_drain(executor, WEIR_FOREVER);
	weir_executor_stats_init(&stats);
	weir_executor_stats_take(executor, &stats);
	const unsigned inflight = weir_inflight(weir_executor_limiter(executor));
	weir_executor_destroy(executor);
	std::printf("%d destroyed, %d unwound, %d caught, %u died, in flight %u\n", destroyed,
		    unwound, caught, static_cast<unsigned>(stats.died), inflight);
	const bool fine = destroyed == 30 && unwound == 10 && caught == 10 && stats.died == 20 &&
			  stats.completed == 10 && inflight == 0;
	return fine ? 0 : 1;
}
