/*
 * weir/limiter.h - admit a call, or not, and learn from how it went.
 *
 *	struct weir_token token;
 *
 *	if (weir_try_acquire(limiter, &token) != 0)
 *		return reject(request);
 *	ok = serve(request);
 *	weir_release(limiter, &token, ok ? WEIR_SUCCESS : WEIR_IGNORE);
 *
 * Thread safety. Every function here may be called from any thread at any
 * time, except those that say otherwise. A call that is admitted takes no lock,
 * allocates nothing and makes no system call beside reading the clock; nor does
 * its release where nobody waits. Where somebody waits, any function that makes
 * room, or notices some, hands it on: it wakes threads and runs grant callbacks.
 * weir_try_acquire() and weir_release() never block, and may be called from a
 * signal handler, if the observer and the grant callbacks may.
 *
 * Ownership. Configurations are copied. The ops table, the clock, the random
 * source, the gauge and the observer must outlive the limiter. A limiter never frees or
 * keeps anything else of the caller's.
 *
 * Fork. A limiter belongs to the process that made it. A child must not use its
 * copy: the tokens in it are the parent's. One that processes share is made by weir/shm.h.
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
 * Proof of admission. A value: keep it with the call, release it once. A token
 * whose bytes are all zero holds nothing.
 */
struct weir_token {
	weir_time start; /* when the call was admitted */
	/*
	 * Permits out at that moment, its own included. While less than half of the limit is out, it
	 * may be told too high, but not above that half.
	 */
	uint32_t inflight;
	uint32_t cost;      /* permits it holds; 0: none, it was let through */
	uint32_t track;     /* opaque */
	uint32_t serial;    /* opaque */
	uint16_t partition; /* its partition's index */
	uint16_t state;     /* opaque; 0: holds nothing */
	uint32_t home;      /* opaque */
};

/*
 * How a call went. weir/limits.h says of every limit what each means to it. What
 * is no sample does not close a window; a limit sees it as a count, or not at all.
 */
enum weir_outcome {
	WEIR_SUCCESS,   /* it was served: its latency counts */
	WEIR_IGNORE,    /* it tells nothing about load: no sample */
	WEIR_DROPPED,   /* overload: the callee shed it, or refused it for being full */
	WEIR_TIMED_OUT, /* nobody waited any longer: overload, with a latency of at least so much */
	WEIR_CANCELLED, /* its caller gave it up for reasons of his own: no sample */
	WEIR_FAILED,    /* it failed fast, before the work was done: no sample */
};

/* Bounds of weir_call.priority: the lower, the sooner shed. With weir_config.shed only. */
#define WEIR_PRIORITY_MIN (-16)
#define WEIR_PRIORITY_MAX 15

enum {
	WEIR_CALL_BYPASS = 1u << 0, /* let it through: counted, but neither limited nor sampled */
};

/* What kind of call asks for a permit. All zero is an ordinary one, and so is a null pointer. */
struct weir_call {
	uint16_t partition; /* from weir_partition_find(); 0: the place for everything else */
	int16_t priority;   /* WEIR_PRIORITY_MIN to WEIR_PRIORITY_MAX; 0 is in the middle */
	uint32_t cost;      /* 1; permits it takes. More than the limit: as many as the limit */
	uint32_t flags;     /* 0, or WEIR_CALL_BYPASS: let it through, counted and no more */
	uint32_t reserved;  /* 0 */
};

/* Whom a free permit goes to. */
enum weir_order {
	WEIR_FIFO,     /* who has waited longest. Fair; under lasting overload, all wait long */
	WEIR_LIFO,     /* who came last. Serves some in time, and the others not at all */
	WEIR_ADAPTIVE, /* FIFO; but LIFO while the queue has not been empty for queue_stand */
};

/* A source of time. now() must be cheap, and safe in any thread. */
struct weir_clock {
	weir_time (*now)(const struct weir_clock *self);
};

/*
 * A measure of how busy something is, from 0 to 1; 0: idle, or not known. read() must be
 * cheap, and safe in any thread. weir/cpu.h has one of the processors.
 */
struct weir_gauge {
	double (*read)(const struct weir_gauge *self);
};

/* A source of chance: uniform in [0, 1). Called by one thread at a time. */
struct weir_random {
	double (*next)(struct weir_random *self);
};

/*
 * How a limiter is to be. weir_config_init() first, then what should differ;
 * zero always means the default. A null pointer in place of a whole configuration means
 * all defaults.
 */
struct weir_config {
	size_t size; /* set by weir_config_init() */

	const struct weir_limit_ops *limit; /* weir_elastic */
	const void *limit_config;           /* the limit's own; NULL: its defaults */
	size_t limit_config_size;           /* of *limit_config; ops->config_size */
	uint32_t limit_min, limit_max; /* 1 and WEIR_LIMIT_MAX: bounds whatever the limit says */

	/* The defaults of windows are the limit's, if it has wishes (weir_sampling), else these. */
	enum weir_windowing windowing; /* WEIR_WINDOW_TIME */
	/* A window lasts 2 * its lowest rtt, within these. 100 ms and 1 s. */
	weir_dur window_min, window_max;
	uint32_t window_samples; /* 10: samples that a window should have */
	enum weir_sparse sparse; /* WEIR_SPARSE_EXTEND */
	weir_dur rtt_threshold;  /* 0: a faster call is no sample; a drop still counts as one */
	enum weir_rtt rtt;       /* WEIR_RTT_MEAN */
	double quantile;         /* 0.5; above 0, below 1; with WEIR_RTT_QUANTILE only */
	double rtt_smoothing;    /* 1; above 0, to 1: weight of a new window's rtt */

	uint32_t queue;        /* calls that may wait at once, at most 65535; 0: nobody may wait */
	enum weir_order order; /* WEIR_FIFO */
	weir_dur queue_stand;  /* 100 ms; with WEIR_ADAPTIVE only */

	/*
	 * Shares of the limit: weir/partition.h. The array and its names are copied. At
	 * most WEIR_PARTITIONS_MAX. Default: none.
	 */
	const struct weir_partition *partitions;
	uint32_t partition_count;
	uint32_t delayed_max;    /* 100: refusals that may be delayed at once */
	weir_dur partition_hold; /* 100 ms: so long room is kept that a partition has used */

	/*
	 * Shed by priority. How large a part of the recent calls could be served says down to
	 * which priority calls use all the room; that priority itself leaves a margin of
	 * root(limit) permits to them, lower ones twice that, but for shed_floor of their calls, so
	 * that none starves. Calls that leave a margin do not wait in a queue: they are
	 * admitted at once, or refused. With partitions, each has priorities of its own. shed: 0
	 * means false. shed_floor: 0 means 0.01; WEIR_SHED_STRICT: let them starve.
	 */
	uint32_t shed;
	double shed_floor;

	/*
	 * Permits above the limit, for bursts: while the callee's queue is short. They are
	 * withdrawn by a window that reached the limit and had drops or timeouts, or a latency
	 * half as long again as that of the last window that did not reach it, or was
	 * the fifth such in a row; and come back with the next one that does not. 0: none.
	 */
	uint32_t burst;

	/*
	 * Shadow mode: the limit is learned and published, but nothing is refused and nobody
	 * waits. What would have been refused is let through, and counted. (weir_enqueue() still
	 * needs a place in the queue: with none it is -EAGAIN.) 0 means false.
	 */
	uint32_t shadow;

	uint32_t stripes;               /* one per CPU; rounded up to a power of two, at most 256 */
	uint32_t track;                 /* 0: remember where up to this many tokens were acquired */
	uint64_t seed;                  /* of the limiter's random numbers */
	const struct weir_clock *clock; /* CLOCK_MONOTONIC; with another, no weir_acquire() */
	struct weir_random *random;     /* numbers from seed */
	const struct weir_observer *observer; /* none */

	/*
	 * How busy the processors are, for limits that ask for it (WEIR_LIMIT_CPU); read as a window
	 * closes, by the thread that closes it. What is not a number counts as not known.
	 */
	const struct weir_gauge *cpu; /* none: weir_window.cpu is 0 */
};

#define WEIR_SHED_STRICT (-1.0)

/* Zero *config and note its size, so that a newer library knows what an older program does not. */
#define weir_config_init(config) weir_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_config_init_sized(struct weir_config *config, size_t size);

/*
 * Check a configuration. 0 if a limiter can be made of it, else -EINVAL and one sentence
 * in why (may be NULL), cut at why_size.
 */
WEIR_API int weir_config_check(const struct weir_config *config, char *why, size_t why_size);

/* Alignment of the memory a limiter lives in: two cache lines, since processors fetch pairs. */
#define WEIR_ALIGN 128

/* The bytes that weir_limiter_init() needs; 0 if the configuration is no good. */
WEIR_API size_t weir_limiter_size(const struct weir_config *config);

/*
 * Make a limiter. weir_limiter_init() makes it in memory of the caller's, aligned to
 * WEIR_ALIGN, which stays the caller's; weir_limiter_create() in memory of the library's,
 * to be ended with weir_limiter_destroy(). 0; -EINVAL: the configuration is no good, or the
 * memory is too small or misaligned; -ENOMEM: weir_limiter_create() only.
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_init(void *mem, size_t size,
					       const struct weir_config *config,
					       struct weir_limiter **limiter);
WEIR_API WEIR_MUST_CHECK int weir_limiter_create(const struct weir_config *config,
						 struct weir_limiter **limiter);

/*
 * End a limiter made by weir_limiter_create(). No call on it may be going on and
 * nobody may wait; tokens still out are forgotten, and must not be released
 * afterwards. NULL is allowed. Not needed after weir_limiter_init().
 */
WEIR_API void weir_limiter_destroy(struct weir_limiter *limiter);

/*
 * Admit now or refuse. 0: *token holds a permit; -EAGAIN: the limit is reached, or
 * others are waiting; in the forms for a certain call also: its partition is at its cap,
 * the room is kept for others' shares, or its priority is being shed; -EINVAL, in those
 * forms: there is no such partition, or the call is not well-formed. On failure *token holds
 * nothing. The _at forms take the time from the caller: no clock is read. Where the limiter
 * itself reads one, as weir_limit_set() does, it should be the same: weir_config.clock.
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
 * Admit, waiting in the queue until deadline (on weir_now()'s clock) if need be.
 * 0; -EAGAIN: the queue is full, or there is none, or the call's priority is being shed;
 * -ETIMEDOUT: the deadline came first; -EINVAL: the limiter has a clock of its own,
 * or as weir_try_acquire_for(). A deadline that is past still gets a permit that
 * is free. Not for signal handlers, observers and grant callbacks.
 */
WEIR_API WEIR_MUST_CHECK int weir_acquire(struct weir_limiter *limiter, weir_time deadline,
					  struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_acquire_for(struct weir_limiter *limiter,
					      const struct weir_call *call, weir_time deadline,
					      struct weir_token *token);

/*
 * Give a permit back and say how the call went. The token is emptied. Releasing
 * an emptied token does nothing but count (weir_snapshot.double_released). A copy of
 * a released token is caught likewise when nothing is in flight, and always
 * while it is tracked (weir_config.track); at other times it takes the permit of another call.
 */
WEIR_API void weir_release(struct weir_limiter *limiter, struct weir_token *token,
			   enum weir_outcome outcome);
WEIR_API void weir_release_at(struct weir_limiter *limiter, weir_time now, struct weir_token *token,
			      enum weir_outcome outcome);

/*
 * Take a call out of the latencies: it has become a long one, a stream or a subscription. It
 * keeps its permits until it is released, and how it went still counts. With a limit that asks
 * for it (WEIR_LIMIT_DETACHED, as weir_elastic) the limit is raised by its permits for as long, so
 * that it takes no room from others; limit_max, and a partition's cap, bound such calls too. A
 * raised limit admits who waits. 0; -EINVAL: the token holds nothing, or is another process's.
 */
WEIR_API int weir_detach(struct weir_limiter *limiter, struct weir_token *token);

/*
 * Tell how long the callee's own queue let this call wait before work on it began: the accept
 * queue, the run queue or the task queue of the service. (The limiter's own queue is not
 * meant: it is over when there is a token.) Tell it once a call, before its release, as soon as it
 * is known; 0 too, which says that there was no queue. It counts in the window that is open
 * now, for a limit that asks for it (WEIR_LIMIT_QUEUE, as weir_codel); with any other this returns
 * at once. Nothing is counted for a token that holds no permit or is detached, nor for a delay of
 * more than 292 years: the clock went back. Above 18 minutes it counts as that. It takes no
 * lock, and may be called from a signal handler.
 */
WEIR_API void weir_queued(struct weir_limiter *limiter, const struct weir_token *token,
			  weir_dur delay);

/*
 * Feed one sample of a call that this limiter did not admit: a replayed trace, a
 * call that somebody else admitted. It began at start, ended at end and found
 * inflight calls, itself included. It counts in windows and totals as a call that was
 * admitted and has ended, and holds no permit.
 */
WEIR_API void weir_sample_at(struct weir_limiter *limiter, weir_time start, weir_time end,
			     uint32_t inflight, enum weir_outcome outcome);

/*
 * Move a settable limit, at once; a raised limit admits waiters. 0; -EINVAL: the value is 0 or
 * above WEIR_LIMIT_MAX; -ENOTSUP: the limit is not settable. The value is clamped to limit_min and
 * limit_max. If another thread is putting a limit in force, this function waits for it for an
 * instant. Where the limiter is shared and that thread's process is dead or stopped, the function
 * waits no longer than about 20 ms, and then puts the value in force itself. Not for signal
 * handlers.
 */
WEIR_API int weir_limit_set(struct weir_limiter *limiter, uint32_t value);

/*
 * Bound the limit from outside, at once, whatever it is: by a share of a limit that many processes
 * have, say. The algorithm goes on learning, and the lesser of both is in force, with bursts and
 * what is detached; a raised bound admits waiters. most: 0: no call is admitted; WEIR_LIMIT_MAX: no
 * bound, as at first. The bound is no part of a memory (weir/saved.h). This function waits as
 * weir_limit_set() does. 0; -EINVAL: it is above WEIR_LIMIT_MAX. Not for signal handlers.
 */
WEIR_API int weir_limit_cap(struct weir_limiter *limiter, uint32_t most);

/* Begin or end shadow mode (weir_config.shadow), at once. Who waits is let through. */
WEIR_API void weir_shadow_set(struct weir_limiter *limiter, bool shadow);

/*
 * How it stands: the present limit without any burst, but with what detached calls raise it by;
 * permits in flight; calls waiting; how many may wait at once (weir_config.queue).
 */
WEIR_API uint32_t weir_limit(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_inflight(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_waiting(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_queue_size(const struct weir_limiter *limiter);

#ifdef __cplusplus
}
#endif
#endif
