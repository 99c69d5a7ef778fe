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
 * Two bounds. The limit bounds the tasks that run: each holds one permit of the limiter,
 * from just before its start to just after its end. weir_executor_config.queue bounds the
 * tasks that were accepted and have not started. Who submits when both are reached
 * waits, or is refused; nothing is accepted that has no place in one of the two.
 * Tasks get their permits in the order in which they were accepted.
 *
 * When the limit rises more tasks run, at once. When it falls no task is
 * stopped; none starts until fewer run than the limit allows.
 *
 * What the limiter learns. A task's latency is the time between its start and its end,
 * on the thread that runs it. Time in the executor's queue, and the time it takes
 * to wake or to make a thread, are not the callee's, and are left out. What the task
 * returns is passed to weir_release() as it is. The limiter's own totals of refusals
 * count how often the executor asked in vain; for tasks see struct weir_executor_stats.
 *
 * A task that does not return, because it calls pthread_exit() or its thread is
 * cancelled, loses nothing but itself: its permit is released as WEIR_IGNORE, since
 * how far it got is not known and its latency says nothing; its thread is replaced; and
 * it is counted (died). A C++ exception that leaves a task ends the program, as one
 * that leaves a std::thread does: nothing above could catch it. Catch it in the task;
 * but let pthread_exit() and cancellation pass (rethrow abi::__forced_unwind).
 *
 * Thread safety. Every function may be called from any thread at any time,
 * except weir_executor_destroy(). A task may submit to its own executor. Where a call
 * from a task would wait for the task itself, it is refused with -EDEADLK. Executors
 * whose tasks wait for one another in a circle are not found out.
 *
 * A task runs with signals blocked, but for those that a fault raises, and can be
 * cancelled, deferred, whatever the task before it did. It may not detach its thread, and
 * nobody may cancel that when the task is over: it would hit another.
 *
 * Fork. As a limiter, an executor belongs to the process that made it.
 *
 * Cancellation. Nothing here is a cancellation point.
 */
#ifndef WEIR_EXECUTOR_H
#define WEIR_EXECUTOR_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_executor;

/* A task of an executor. What it returns is how the call went. */
typedef enum weir_outcome weir_task_fn(void *arg);

/*
 * How an executor is to be. weir_executor_config_init() first; zero means the
 * default. Everything but the limiter is copied.
 */
struct weir_executor_config {
	size_t size; /* set by weir_executor_config_init() */

	/*
	 * Whose permits the tasks take. It may have other users; in its queue the executor
	 * is one caller, however many tasks it holds. Give it a queue of one or more: a
	 * limiter without a queue can tell nobody that a permit came back, so that a permit
	 * which is not the executor's own, or a raised limit, is noticed only after
	 * 10 ms. The caller's; must outlive the executor. NULL: the executor makes one.
	 * Grant callbacks of others who wait in it must not call this executor.
	 */
	struct weir_limiter *limiter;
	/* Of the limiter that it makes; its queue is at least 1. NULL: weir_config's defaults. */
	const struct weir_config *limiter_config;

	/*
	 * 256: threads at most, whatever the limit. A thread that waits for an answer
	 * costs some 20 KiB and a stack's address space; who wants thousands
	 * wants an event loop, and weir/wait.h.
	 */
	uint32_t threads_max;
	/*
	 * 0: tasks that may be accepted and wait to start, at most WEIR_LIMIT_MAX. The
	 * default lets the submitter feel at once that the callee is busy: a
	 * queue would hide it, and be full a moment later.
	 */
	uint32_t queue;
	weir_dur idle; /* 10 s: a thread that was idle for so long ends; WEIR_FOREVER: none does */
	size_t stack;  /* bytes of a thread's stack; the system's default */
	const char *name; /* "weir": of the threads, at most 15 characters */
};

#define weir_executor_config_init(config)                                                          \
	weir_executor_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_executor_config_init_sized(struct weir_executor_config *config, size_t size);

/*
 * Make an executor; config may be NULL. It has no threads until there are tasks. 0; -ENOMEM;
 * -EINVAL: there is a limiter and a limiter_config, or a value is no good. End with
 * weir_executor_destroy().
 */
WEIR_API WEIR_MUST_CHECK int weir_executor_create(const struct weir_executor_config *config,
						  struct weir_executor **executor);

/*
 * Have run(arg) called by a thread of the executor. Waits, first come, first served, while there
 * is neither a permit (and a thread) nor room in the queue, until deadline, on weir_now()'s
 * clock. It bounds the wait alone: an accepted task is run however late it gets its turn. A
 * deadline that is past still gets what is free.
 *
 * 0: accepted, and run once unless weir_executor_discard() gives it back; -ETIMEDOUT: the
 * deadline came first; -ESHUTDOWN: the executor is drained, or being so; -EDEADLK: this is a
 * task of the same executor, and would have had to wait; -ENOMEM: there is no thread, and
 * none could be made; -EINVAL: run is NULL. What was not accepted is not run.
 */
WEIR_API WEIR_MUST_CHECK int weir_executor_submit(struct weir_executor *executor, weir_task_fn *run,
						  void *arg, weir_time deadline);

/* The same without waiting: -EAGAIN in place of -ETIMEDOUT and -EDEADLK. */
WEIR_API WEIR_MUST_CHECK int weir_executor_try_submit(struct weir_executor *executor,
						      weir_task_fn *run, void *arg);

/*
 * Accept no more, for good; end the submits that wait, with -ESHUTDOWN; wait until
 * all that was accepted has run and every permit is back. 0; -ETIMEDOUT: not all of it by
 * deadline, and the tasks go on: call again. -EDEADLK: this is a task of the same executor, and
 * nothing was done.
 */
WEIR_API int weir_executor_drain(struct weir_executor *executor, weir_time deadline);

/*
 * Accept no more, and give back what has not started; end the submits that wait, with
 * -ESHUTDOWN. given is called for each task, in this thread, oldest first, and may submit
 * elsewhere or free what arg points to. NULL: they are only counted. Waits for nothing. How many.
 */
WEIR_API size_t weir_executor_discard(struct weir_executor *executor,
				      void (*given)(void *context, weir_task_fn *run, void *arg),
				      void *context);

/*
 * Drain, however long it takes, end all threads, and free. To be quicker,
 * weir_executor_discard() first. No other call on the executor may be going on: drain
 * first where submits may still be waiting. NULL is allowed. 0; -EDEADLK: this is one
 * of its tasks, and nothing was done.
 */
WEIR_API int weir_executor_destroy(struct weir_executor *executor);

/*
 * An executor's limiter: to look at, to set, to share. It is the caller's, or one that ends with
 * the executor.
 */
WEIR_API struct weir_limiter *weir_executor_limiter(const struct weir_executor *executor);

/*
 * Numbers of an executor, all of one instant: submitted == queued + running + completed +
 * died + discarded.
 */
struct weir_executor_stats {
	size_t size;        /* set by weir_executor_stats_init() */
	uint32_t running;   /* tasks with a permit */
	uint32_t queued;    /* accepted, and without a permit */
	uint32_t blocked;   /* submits that wait */
	uint32_t threads;   /* with those that are idle, and one that waits for a permit */
	uint64_t submitted; /* accepted */
	uint64_t refused;   /* not accepted, for any reason but a deadline */
	uint64_t timed_out; /* not accepted by their deadline */
	uint64_t completed; /* returned */
	uint64_t died;      /* did not return, and their threads ended */
	uint64_t discarded; /* given back */
};

#define weir_executor_stats_init(stats) weir_executor_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_executor_stats_init_sized(struct weir_executor_stats *stats, size_t size);

/* Fill stats that weir_executor_stats_init() has prepared, as often as you like. */
WEIR_API void weir_executor_stats_take(struct weir_executor *executor,
				       struct weir_executor_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
