/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/executor.h - a pool of threads whose parallelism follows a limiter.
 *
 *	static enum weir_outcome fetch(void *arg)
 *	{
 *		return outcome_of(ask(arg));
 *	}
 *
 *	error = weir_executor_create(NULL, &executor);
 *	if (error != 0)
 *		return error;
 *	while (error == 0 && (page = next()) != NULL)
 *		error = weir_executor_submit(executor, fetch, page, WEIR_FOREVER);
 *	weir_executor_destroy(executor);
 *
 * Two bounds. The limit bounds the tasks that run: each holds one permit of the limiter, from just
 * before its start to just after its end. weir_executor_config.queue bounds the tasks that were
 * accepted and have not started. When both bounds are reached, a submit waits or is refused; a task
 * is only accepted if there is room for it under one of the two. Tasks get their permits in the
 * order in which they were accepted.
 *
 * When the limit rises, more tasks run at once. When it falls, no task is stopped; none starts
 * until fewer run than the limit allows.
 *
 * What the limiter learns. A task's latency is the time between its start and its end, on the
 * thread that runs it. Time in the executor's queue and the time to wake or create a thread are not
 * part of the backend's latency, and are left out. The task's return value is passed to
 * weir_release() unchanged. The limiter's own totals of refusals count how often the executor asked
 * for a permit without getting one; for tasks see struct weir_executor_stats.
 *
 * If a task does not return, because it calls pthread_exit() or its thread is cancelled, only that
 * task is lost. Its permit is released as WEIR_IGNORE, since its progress is unknown and its
 * latency says nothing; its thread is replaced; and it is counted (died). A C++ exception that
 * leaves a task ends the program, as one that leaves a std::thread does, because no frame above
 * could catch it. Catch it in the task, but let pthread_exit() and cancellation pass (rethrow
 * abi::__forced_unwind).
 *
 * Thread safety. Every function may be called from any thread at any time, except
 * weir_executor_destroy(). A task may submit to its own executor. A call from a task that would
 * have to wait for the task itself is refused with -EDEADLK. A cycle of executors whose tasks wait
 * for one another is not detected.
 *
 * A task runs with signals blocked, except those that a fault raises, and with deferred
 * cancellation enabled, whatever the task before it did. A task must not detach its thread. The
 * thread must not be cancelled after the task has ended: that would hit another task.
 *
 * Fork. As with a limiter, an executor belongs to the process that created it.
 *
 * Cancellation. No function here is a cancellation point.
 */
#ifndef WEIR_EXECUTOR_H
#define WEIR_EXECUTOR_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_executor;

/* A task of an executor. Returns the outcome of the call. */
typedef enum weir_outcome weir_task_fn(void *arg);

/*
 * Configuration of an executor. Call weir_executor_config_init() first; zero means the default.
 * Everything but the limiter is copied.
 */
struct weir_executor_config {
	size_t size; /* set by weir_executor_config_init() */

	/*
	 * The limiter whose permits the tasks take. NULL: the executor creates one. It may have
	 * other users; in its queue the executor counts as one caller, however many tasks it holds.
	 * Give it a queue of at least 1: a limiter without a queue cannot notify the executor of a
	 * returned permit, so a permit returned by another user, or a raised limit, is noticed only
	 * after 10 ms. It belongs to the caller and must outlive the executor. Grant callbacks of
	 * other waiters in it must not call this executor.
	 */
	struct weir_limiter *limiter;
	/*
	 * For the limiter that it creates; its queue is at least 1. NULL: the defaults of
	 * weir_config.
	 */
	const struct weir_config *limiter_config;

	/*
	 * The most threads, whatever the limit; default 256. A thread that waits for an answer
	 * costs about 20 KiB and the address space of a stack. For thousands of calls at once use
	 * an event loop and weir/wait.h.
	 */
	uint32_t threads_max;
	/*
	 * The most tasks that are accepted and wait to start, up to WEIR_LIMIT_MAX; default 0.
	 * Without a queue, a submitter notices at once that the backend is busy: a queue would hide
	 * it, and be full a moment later.
	 */
	uint32_t queue;
	weir_dur idle; /* how long an idle thread stays; default 10 s; WEIR_FOREVER: all stay */
	/*
	 * Size of a thread's stack, in bytes; default: the system's. Less than PTHREAD_STACK_MIN is
	 * refused with -EINVAL: that is 16 KiB on amd64 and 128 KiB on arm64.
	 */
	size_t stack;
	const char *name; /* name of the threads, at most 15 characters; default "weir" */
};

#define weir_executor_config_init(config)                                                          \
	weir_executor_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_executor_config_init_sized(struct weir_executor_config *config, size_t size);

/*
 * Create an executor; config may be NULL. Its threads are created when there are tasks. End it with
 * weir_executor_destroy().
 *
 * Returns 0, or a negative errno:
 * -ENOMEM: out of memory.
 * -EINVAL: both limiter and limiter_config are given, or a value is invalid.
 */
WEIR_API WEIR_MUST_CHECK int weir_executor_create(const struct weir_executor_config *config,
						  struct weir_executor **executor);

/*
 * Have a thread of the executor call run(arg). Waits while there is neither a permit (and a thread)
 * nor room in the queue, until deadline, on weir_now()'s clock. Submits that wait are served first
 * come, first served. The deadline bounds only this wait: an accepted task is run however late its
 * turn comes. With a deadline in the past, the task still gets what is free. An accepted task is
 * run once, unless weir_executor_discard() gives it back; others are not run.
 *
 * Returns 0 if the task was accepted, or a negative errno:
 * -ETIMEDOUT: the deadline came first.
 * -ESHUTDOWN: the executor is drained, or is being drained.
 * -EDEADLK: the caller is a task of the same executor, and would have had to wait.
 * -ENOMEM: there is no thread, and none could be created.
 * -EINVAL: run is NULL.
 */
WEIR_API WEIR_MUST_CHECK int weir_executor_submit(struct weir_executor *executor, weir_task_fn *run,
						  void *arg, weir_time deadline);

/*
 * As weir_executor_submit(), without waiting: -EAGAIN in place of -ETIMEDOUT and -EDEADLK.
 */
WEIR_API WEIR_MUST_CHECK int weir_executor_try_submit(struct weir_executor *executor,
						      weir_task_fn *run, void *arg);

/*
 * Accept no more tasks, for good. Submits that wait end with -ESHUTDOWN. Waits until every accepted
 * task has run and every permit has been returned.
 *
 * Returns 0, or a negative errno:
 * -ETIMEDOUT: some tasks had not ended by deadline, and go on, so call again.
 * -EDEADLK: the caller is a task of the same executor, and nothing was done.
 */
WEIR_API int weir_executor_drain(struct weir_executor *executor, weir_time deadline);

/*
 * Accept no more tasks, and give back those that have not started. Submits that wait end with
 * -ESHUTDOWN. given is called for each task, in this thread, oldest first, and may submit it
 * elsewhere or free what arg points to. NULL: the tasks are only counted. Waits for nothing.
 * Returns the number of tasks given back.
 */
WEIR_API size_t weir_executor_discard(struct weir_executor *executor,
				      void (*given)(void *context, weir_task_fn *run, void *arg),
				      void *context);

/*
 * Drain, however long that takes, end all threads, and free the executor. To be quicker, call
 * weir_executor_discard() first. No other call on the executor may be in progress: drain first
 * where submits may still be waiting. NULL is allowed.
 *
 * Returns 0, or a negative errno:
 * -EDEADLK: the caller is one of the executor's tasks, and nothing was done.
 */
WEIR_API int weir_executor_destroy(struct weir_executor *executor);

/*
 * An executor's limiter: to observe, to set, to share. It belongs to the caller, or ends with the
 * executor that created it.
 */
WEIR_API struct weir_limiter *weir_executor_limiter(const struct weir_executor *executor);

/*
 * Numbers of an executor, all from the same instant: submitted == queued + running + completed +
 * died + discarded.
 */
struct weir_executor_stats {
	size_t size;        /* set by weir_executor_stats_init() */
	uint32_t running;   /* tasks that hold a permit */
	uint32_t queued;    /* tasks that were accepted and have no permit */
	uint32_t blocked;   /* submits that wait */
	uint32_t threads;   /* threads, including idle ones and one that waits for a permit */
	uint64_t submitted; /* tasks accepted */
	uint64_t refused;   /* tasks not accepted, for any reason but a deadline */
	uint64_t timed_out; /* tasks not accepted by their deadline */
	uint64_t completed; /* tasks that returned */
	uint64_t died;      /* tasks that did not return, and whose threads ended */
	uint64_t discarded; /* tasks given back by weir_executor_discard() */
};

#define weir_executor_stats_init(stats) weir_executor_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_executor_stats_init_sized(struct weir_executor_stats *stats, size_t size);

/* Fill stats, which weir_executor_stats_init() has prepared, as often as you like. */
WEIR_API void weir_executor_stats_take(struct weir_executor *executor,
				       struct weir_executor_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
