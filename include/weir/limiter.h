/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/limiter.h - admit or refuse calls, and learn from their outcomes.
 *
 *	struct weir_token token;
 *
 *	if (weir_try_acquire(limiter, &token) != 0)
 *		return reject(request);
 *	ok = serve(request);
 *	weir_release(limiter, &token, ok ? WEIR_SUCCESS : WEIR_IGNORE);
 *
 * Thread safety. Every function of this header may be called from any thread at any time, unless
 * stated otherwise. Admitting a call takes no lock, allocates nothing and makes no
 * system call other than reading the clock. The same holds for releasing one
 * while no call waits. While calls wait, any function that makes or notices
 * room hands it on: it wakes threads and runs grant callbacks.
 * weir_try_acquire() and weir_release() never block. They may be called from a
 * signal handler if the observer and the grant callbacks may run there.
 *
 * Ownership. Configurations are copied. The ops table, the clock, the random
 * source, the gauge and the observer must outlive the limiter. A limiter never frees or
 * keeps any other memory of the caller's.
 *
 * Fork. A limiter belongs to the process that made it. A child must not use its
 * copy, because the tokens in it are the parent's. weir/shm.h makes limiters that
 * several processes share.
 *
 * Cancellation. Nothing here is a cancellation point.
 */
#ifndef WEIR_LIMITER_H
#define WEIR_LIMITER_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_limiter;
struct weir_observer;  /* weir/observe.h */
struct weir_partition; /* weir/partition.h */

/*
 * Proof of admission. It is a plain value: keep it with the call, and release it
 * once. A token whose bytes are all zero holds nothing.
 */
struct weir_token {
	weir_time start; /* when the call was admitted; 0: it is no sample, and read no clock */
	/*
	 * Permits in flight at that moment, this call's included. If the call is no sample, it is an
	 * upper bound below half of the limit, itself not above that half.
	 */
	uint32_t inflight;
	uint32_t cost;      /* permits it holds; 0: none, it was let through without a permit */
	uint32_t track;     /* opaque */
	uint32_t serial;    /* opaque */
	uint16_t partition; /* index of its partition */
	uint16_t state;     /* opaque; 0: holds nothing */
	uint32_t home;      /* opaque */
};

/*
 * How a call ended. weir/limits.h documents what each limit does with each outcome. A call that
 * is no sample never closes a window; a limit sees it as a count or not at all.
 */
enum weir_outcome {
	WEIR_SUCCESS,   /* served: its latency is a sample */
	WEIR_IGNORE,    /* it says nothing about load: no sample */
	WEIR_DROPPED,   /* overload: the backend shed it, or refused it because it was full */
	WEIR_TIMED_OUT, /* overload: the caller stopped waiting; the latency is a lower bound */
	WEIR_CANCELLED, /* the caller gave it up for reasons other than load: no sample */
	WEIR_FAILED,    /* it failed fast, before the work was done: no sample */
};

/* Range of weir_call.priority. Lower priorities are shed first. Only with weir_config.shed. */
#define WEIR_PRIORITY_MIN (-16)
#define WEIR_PRIORITY_MAX 15

enum {
	WEIR_CALL_BYPASS = 1u << 0, /* admit without limit: counted, not sampled */
};

/* The kind of a call that needs a permit. All zero, or a null pointer, is an ordinary call. */
struct weir_call {
	uint16_t partition; /* from weir_partition_find(); 0: the default partition */
	int16_t priority;   /* WEIR_PRIORITY_MIN to WEIR_PRIORITY_MAX; default 0, the middle */
	uint32_t cost;      /* permits it takes; default 1; above the limit: the whole limit */
	uint32_t flags;     /* 0, or WEIR_CALL_BYPASS */
	uint32_t reserved;  /* must be 0 */
};

/* Which waiter gets a free permit. */
enum weir_order {
	WEIR_FIFO,     /* the oldest. Fair, but under lasting overload every call waits long */
	WEIR_LIFO,     /* the newest. Serves some calls in time and starves the others */
	WEIR_ADAPTIVE, /* FIFO, but LIFO once the queue has not been empty for queue_stand */
};

/* A source of time. now() must be cheap and callable from any thread. */
struct weir_clock {
	weir_time (*now)(const struct weir_clock *self);
};

/*
 * A measure of utilization, from 0 to 1; 0: idle, or not known. read() must be cheap and
 * callable from any thread. weir/cpu.h has one for the CPUs.
 */
struct weir_gauge {
	double (*read)(const struct weir_gauge *self);
};

/* A source of random numbers, uniform in [0, 1). Called by one thread at a time. */
struct weir_random {
	double (*next)(struct weir_random *self);
};

/*
 * Configuration of a limiter. Call weir_config_init() first, then set the fields that
 * should differ from the default. Zero always means the default. A null pointer in
 * place of a whole configuration means all defaults.
 */
struct weir_config {
	size_t size; /* set by weir_config_init() */

	const struct weir_limit_ops *limit; /* the algorithm; default weir_elastic */
	const void *limit_config;           /* parameters of the algorithm; NULL: its defaults */
	size_t limit_config_size;           /* bytes at limit_config; default ops->config_size */
	/* Bounds of what the algorithm returns, in permits. Defaults: 1 and WEIR_LIMIT_MAX. */
	uint32_t limit_min, limit_max;

	/* Windows: the defaults are the algorithm's (weir_sampling) if it has any, else these. */
	enum weir_windowing windowing; /* default WEIR_WINDOW_TIME */
	/* A window lasts twice its lowest rtt, within these bounds. Defaults: 100 ms and 1 s. */
	weir_dur window_min, window_max;
	uint32_t window_samples; /* samples that a window should have; default 10 */
	enum weir_sparse sparse; /* windows with too few samples; default WEIR_SPARSE_EXTEND */
	weir_dur rtt_threshold;  /* a faster call is no sample, unless it was a drop; default 0 */
	enum weir_rtt rtt;       /* statistic of a window; default WEIR_RTT_MEAN */
	double quantile;         /* default 0.5; above 0, below 1; only with WEIR_RTT_QUANTILE */
	double rtt_smoothing;    /* weight of a new window's rtt; default 1; above 0, at most 1 */

	uint32_t queue;        /* calls that may wait at once; at most 65535; default 0: no queue */
	enum weir_order order; /* which waiter goes first; default WEIR_FIFO */
	weir_dur queue_stand;  /* default 100 ms; only with WEIR_ADAPTIVE */

	/*
	 * Shares of the limit: weir/partition.h. The array and its names are copied. At
	 * most WEIR_PARTITIONS_MAX. Default: none.
	 */
	const struct weir_partition *partitions;
	uint32_t partition_count;
	uint32_t delayed_max;    /* refusals that may be delayed at once; default 100 */
	weir_dur partition_hold; /* how long unused permits stay reserved; default 100 ms */

	/*
	 * Load shedding by priority. The fraction of recent calls that was served determines the
	 * priority from which on calls may use every permit. Calls of the priority just below leave
	 * a margin of sqrt(limit) permits free, and calls of lower priorities leave twice that.
	 * A fraction shed_floor of the latter leaves no margin, so that no priority starves. Calls
	 * that leave a margin do not wait in a queue: they are admitted at once or refused. With
	 * partitions, each partition sheds by itself. shed: 0 means false. shed_floor: default
	 * 0.01; WEIR_SHED_STRICT: none, so that low priorities may starve.
	 */
	uint32_t shed;
	double shed_floor;

	/*
	 * Permits above the limit, for bursts, while the backend's queue is short. They are
	 * withdrawn after a window that reached the limit and had drops or timeouts, or had a
	 * latency 1.5 times that of the last window that did not reach it, or was the fifth such
	 * window in a row. They come back after the next window that does not reach the limit.
	 * Default 0: none.
	 */
	uint32_t burst;

	/*
	 * Shadow mode: the limit is learned and published, but no call is refused and none waits.
	 * Calls that would have been refused are let through and counted. (weir_enqueue() still
	 * needs a free slot in the queue, and returns -EAGAIN without one.) 0 means false.
	 */
	uint32_t shadow;

	uint32_t stripes; /* default one per CPU; rounded up to a power of two, at most 256 */
	uint32_t track;   /* record where up to this many tokens were acquired; default 0 */
	uint64_t seed;    /* seed of the random numbers */
	const struct weir_clock *clock; /* default CLOCK_MONOTONIC; if set, no weir_acquire() */
	struct weir_random *random;     /* default: numbers from seed */
	const struct weir_observer *observer; /* default none */

	/*
	 * CPU utilization, for limits that use it (WEIR_LIMIT_CPU). It is read when a window
	 * closes, by the thread that closes it. A value that is not a number counts as not known.
	 */
	const struct weir_gauge *cpu; /* default none: weir_window.cpu is 0 */

	/*
	 * Samples a second that are enough: default 40000, which cost about 1 % of a CPU. While
	 * calls come at a lower rate, each that ends as WEIR_SUCCESS is a sample. At a higher rate
	 * some are, chosen by chance, and the others are counted without reading the clock. All
	 * totals stay exact, and the limit hears of each drop and timeout.
	 *
	 * A call for which the program reads the clock itself (functions that end in _at) is always
	 * a sample, unless this field is set; so is each call of a limiter with a clock of its own.
	 * WEIR_SAMPLE_ALL: each call is a sample. So it is with tracking, and for a limit with
	 * WEIR_LIMIT_EVERY_CALL.
	 */
	uint32_t sample_rate;

	/*
	 * Nanoseconds from 1970 to the zero of `clock`, for limits that use real time
	 * (WEIR_LIMIT_REAL_TIME); default 0. That of the default clock is measured.
	 */
	weir_time clock_zero;
};

/* weir_config.sample_rate: each call is a sample. */
#define WEIR_SAMPLE_ALL UINT32_MAX

#define WEIR_SHED_STRICT (-1.0)

/* Zero *config and set its size, by which a newer library recognizes an older program. */
#define weir_config_init(config) weir_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_config_init_sized(struct weir_config *config, size_t size);

/*
 * Check a configuration. If it is not valid, why (may be NULL) gets a sentence that says what is
 * wrong, cut at why_size bytes.
 * Returns 0, or a negative errno:
 * -EINVAL: it is not valid.
 */
WEIR_API int weir_config_check(const struct weir_config *config, char *why, size_t why_size);

/* Alignment of a limiter's memory, in bytes: two cache lines, because CPUs prefetch pairs. */
#define WEIR_ALIGN 128

/* The number of bytes that weir_limiter_init() needs; 0 if the configuration is not valid. */
WEIR_API size_t weir_limiter_size(const struct weir_config *config);

/*
 * Make a limiter. weir_limiter_init() makes it in the caller's memory, which must be aligned to
 * WEIR_ALIGN and outlive it. weir_limiter_create() allocates the memory; end the limiter with
 * weir_limiter_destroy().
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is not valid, or the memory is too small or misaligned.
 * -ENOMEM: there is not enough memory (weir_limiter_create() only).
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_init(void *mem, size_t size,
					       const struct weir_config *config,
					       struct weir_limiter **limiter);
WEIR_API WEIR_MUST_CHECK int weir_limiter_create(const struct weir_config *config,
						 struct weir_limiter **limiter);

/*
 * End a limiter made by weir_limiter_create(). No function of it may be running and no call may
 * wait. Tokens still in use are forgotten and must not be released afterwards. NULL is allowed.
 * A limiter made by weir_limiter_init() need not be ended.
 */
WEIR_API void weir_limiter_destroy(struct weir_limiter *limiter);

/*
 * Admit a call now, or refuse it. On success *token holds a permit; on failure it holds nothing.
 * The _at forms take the time from the caller and read no clock. Where the limiter reads one
 * itself, as in weir_limit_set(), it should be the same one: weir_config.clock.
 * Returns 0, or a negative errno:
 * -EAGAIN: the limit is reached, or calls are waiting. In the _for forms also: the partition is at
 * its cap, the free permits are reserved for other partitions, or the call's priority is shed.
 * -EINVAL: there is no such partition, or the call is not valid (_for forms only).
 */
WEIR_API WEIR_MUST_CHECK int weir_try_acquire(struct weir_limiter *limiter,
					      struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_try_acquire_at(struct weir_limiter *limiter, weir_time now,
						 struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_try_acquire_for(struct weir_limiter *limiter,
						  const struct weir_call *call,
						  struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_try_acquire_for_at(struct weir_limiter *limiter,
						     const struct weir_call *call, weir_time now,
						     struct weir_token *token);

/*
 * Admit a call, waiting in the queue until deadline (on weir_now()'s clock) if necessary. With a
 * deadline in the past, a free permit is still taken. Not for signal handlers, observers and grant
 * callbacks.
 * Returns 0, or a negative errno:
 * -EAGAIN: there is no queue, or it is full, or the call's priority is shed.
 * -ETIMEDOUT: the deadline passed first.
 * -EINVAL: the limiter has a clock of its own, or as for weir_try_acquire_for().
 */
WEIR_API WEIR_MUST_CHECK int weir_acquire(struct weir_limiter *limiter, weir_time deadline,
					  struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_acquire_for(struct weir_limiter *limiter,
					      const struct weir_call *call, weir_time deadline,
					      struct weir_token *token);

/*
 * Return a permit and report how the call ended. The token is emptied. Releasing an emptied token
 * only adds to weir_snapshot.double_released. A second release through a copy of the token is
 * detected too if nothing is in flight, or if the token is tracked (weir_config.track). Otherwise
 * it releases another call's permit.
 */
WEIR_API void weir_release(struct weir_limiter *limiter, struct weir_token *token,
			   enum weir_outcome outcome);
WEIR_API void weir_release_at(struct weir_limiter *limiter, weir_time now, struct weir_token *token,
			      enum weir_outcome outcome);

/*
 * Exclude a call from the latencies because it has become long-lived, such as a stream or a
 * subscription. It keeps its permits until it is released, and its outcome still counts. With a
 * limit that asks for it (WEIR_LIMIT_DETACHED, for example weir_elastic), the limit is raised by
 * the call's permits until then, so that it takes no room from other calls. limit_max and a
 * partition's cap bound such calls too. The raised limit may admit waiters.
 * Returns 0, or a negative errno:
 * -EINVAL: the token holds nothing, or belongs to another process.
 */
WEIR_API int weir_detach(struct weir_limiter *limiter, struct weir_token *token);

/*
 * Report how long the backend's own queue delayed this call before work on it began: the accept
 * queue, run queue or task queue of the service. (The limiter's own queue is not meant; that wait
 * ends before there is a token.) Report it once a call, before its release, as soon as it is known.
 * Report 0 too: it means that there was no queue. The delay counts in the window that is open now,
 * for a limit that asks for it (WEIR_LIMIT_QUEUE, for example weir_codel). With any other limit
 * this function returns at once. Nothing is counted for a token that holds no permit or is
 * detached, nor for a delay of more than 292 years, which means that the clock went back. Delays
 * above 18 minutes count as 18 minutes. It takes no lock, and may be called from a signal handler.
 */
WEIR_API void weir_queued(struct weir_limiter *limiter, const struct weir_token *token,
			  weir_dur delay);

/*
 * Add a sample of a call that this limiter did not admit, for example from a recorded trace or
 * from another admission mechanism. The call began at start, ended at end and found inflight
 * permits in flight, its own included. It counts in windows and totals like a call that was
 * admitted and has ended, and holds no permit.
 */
WEIR_API void weir_sample_at(struct weir_limiter *limiter, weir_time start, weir_time end,
			     uint32_t inflight, enum weir_outcome outcome);

/*
 * Set a settable limit, at once. A raised limit admits waiters. The value is clamped to limit_min
 * and limit_max. If another thread is putting a limit into force, this function waits briefly for
 * it. If the limiter is shared and that thread's process is dead or stopped, the function waits at
 * most about 20 ms and then puts the value into force itself. Not for signal handlers.
 * Returns 0, or a negative errno:
 * -EINVAL: the value is 0 or above WEIR_LIMIT_MAX.
 * -ENOTSUP: the limit is not settable.
 */
WEIR_API int weir_limit_set(struct weir_limiter *limiter, uint32_t value);

/*
 * Set an upper bound on the limit, at once, whichever algorithm it has: for example this process's
 * share of a limit common to many processes. The algorithm goes on learning, and the lower of the
 * two is in force, bursts and detached calls included. A raised bound admits waiters. A bound of 0
 * admits no call; WEIR_LIMIT_MAX, the default, is no bound. The bound is not part of the saved
 * state (weir/saved.h). This function waits as weir_limit_set() does. Not for signal handlers.
 * Returns 0, or a negative errno:
 * -EINVAL: most is above WEIR_LIMIT_MAX.
 */
WEIR_API int weir_limit_cap(struct weir_limiter *limiter, uint32_t most);

/* Begin or end shadow mode (weir_config.shadow), at once. Waiting calls are let through. */
WEIR_API void weir_shadow_set(struct weir_limiter *limiter, bool shadow);

/*
 * The present state: the limit in force, without any burst but with the permits that detached
 * calls add (0 while the limit pauses: WEIR_LIMIT_PAUSES, until the first call after that); permits
 * in flight; calls waiting; calls that may wait at once (weir_config.queue).
 */
WEIR_API uint32_t weir_limit(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_inflight(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_waiting(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_queue_size(const struct weir_limiter *limiter);

#ifdef __cplusplus
}
#endif
#endif
