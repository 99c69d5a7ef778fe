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
 * time, except those that say otherwise. weir_try_acquire() never blocks, takes
 * no lock, allocates nothing and makes no system call beside reading the clock;
 * nor does weir_release() where nobody waits. Both may be called from a signal
 * handler, if the observer and the grant callbacks may.
 *
 * Ownership. Configurations are copied. The ops table, the clock, the random
 * source and the observer must outlive the limiter. A limiter never frees or
 * keeps anything else of the caller's.
 *
 * Fork. A limiter belongs to the process that made it. A child must not use its
 * copy: the tokens in it are the parent's.
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
struct weir_observer; /* weir/observe.h */

/*
 * Proof of admission. A value: keep it with the call, release it once. A token
 * whose bytes are all zero holds nothing.
 */
struct weir_token {
	weir_time start;   /* when the call was admitted */
	uint32_t inflight; /* calls in flight at that moment, itself included */
	uint32_t track;    /* opaque */
	uint32_t serial;   /* opaque */
	uint16_t reserved;
	uint16_t state; /* opaque; 0: holds nothing */
};

/* How a call went. */
enum weir_outcome {
	WEIR_SUCCESS, /* it was served: its latency counts */
	WEIR_IGNORE,  /* it tells nothing about load, like a bad request or a cancel: no sample */
	WEIR_DROPPED, /* overload: the callee shed it, or it timed out */
};

/* Whom a free permit goes to. */
enum weir_order {
	WEIR_FIFO,     /* who has waited longest. Fair; under lasting overload, all wait long */
	WEIR_LIFO,     /* who came last. Serves some in time, and the others not at all */
	WEIR_ADAPTIVE, /* FIFO; but LIFO while the queue has not been empty for queue_stand */
};

/* What a window's rtt is. */
enum weir_rtt {
	WEIR_RTT_MEAN,
	WEIR_RTT_MIN,
	WEIR_RTT_QUANTILE, /* weir_config.quantile of the window's latencies */
};

/* What becomes of a window that is due with too few samples. */
enum weir_sparse {
	WEIR_SPARSE_EXTEND,  /* it stays open until it has enough, or for window_max at most */
	WEIR_SPARSE_DISCARD, /* it is thrown away, drops and all, as in Netflix's WindowedLimit */
};

/* When samples go to the limit. */
enum weir_windowing {
	WEIR_WINDOW_TIME,   /* in windows of time, as configured */
	WEIR_WINDOW_SAMPLE, /* each by itself; those that collide go together */
};

/* A source of time. now() must be cheap, and safe in any thread. */
struct weir_clock {
	weir_time (*now)(const struct weir_clock *self);
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

	const struct weir_limit_ops *limit; /* weir_limit_by_name(NULL) */
	const void *limit_config;           /* the limit's own; NULL: its defaults */
	size_t limit_config_size;           /* of *limit_config; ops->config_size */
	uint32_t limit_min, limit_max; /* 1 and WEIR_LIMIT_MAX: bounds whatever the limit says */

	enum weir_windowing windowing;
	/* A window lasts 2 * its lowest rtt, within these. 100 ms and 1 s. */
	weir_dur window_min, window_max;
	uint32_t window_samples; /* 10: samples that a window should have */
	enum weir_sparse sparse;
	weir_dur rtt_threshold; /* 0: a faster call is no sample; a drop still counts as one */
	enum weir_rtt rtt;
	double quantile;      /* 0.5; above 0, below 1; with WEIR_RTT_QUANTILE only */
	double rtt_smoothing; /* 1; above 0, to 1: weight of a new window's rtt */

	uint32_t queue; /* calls that may wait at once, at most 65535; 0: nobody may wait */
	enum weir_order order;
	weir_dur queue_stand; /* 100 ms; with WEIR_ADAPTIVE only */

	uint32_t stripes;               /* one per CPU; rounded up to a power of two, at most 256 */
	uint32_t track;                 /* 0: remember where up to this many tokens were acquired */
	uint64_t seed;                  /* of the limiter's random numbers */
	const struct weir_clock *clock; /* CLOCK_MONOTONIC; with another, no weir_acquire() */
	struct weir_random *random;     /* numbers from seed */
	const struct weir_observer *observer; /* none */
};

/* Zero *config and note its size, so that a newer library knows what an older program does not. */
#define weir_config_init(config) weir_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_config_init_sized(struct weir_config *config, size_t size);

/* 0 if a limiter can be made of this, else -EINVAL and one sentence in why, cut at why_size. */
WEIR_API int weir_config_check(const struct weir_config *config, char *why, size_t why_size);

/* Alignment of the memory a limiter lives in: two cache lines, since processors fetch pairs. */
#define WEIR_ALIGN 128

/* Bytes that weir_limiter_init() needs; 0 if the configuration is no good. */
WEIR_API size_t weir_limiter_size(const struct weir_config *config);

/*
 * Make a limiter in memory of the caller's, aligned to WEIR_ALIGN, which stays
 * the caller's. 0, or -EINVAL: the configuration is no good, the memory is too
 * small or misaligned.
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_init(void *mem, size_t size,
					       const struct weir_config *config,
					       struct weir_limiter **limiter);

/* The same in memory of the library's. 0, -EINVAL, -ENOMEM. End with weir_limiter_destroy(). */
WEIR_API WEIR_MUST_CHECK int weir_limiter_create(const struct weir_config *config,
						 struct weir_limiter **limiter);

/*
 * End a limiter made by weir_limiter_create(). No call on it may be going on and
 * nobody may wait; tokens still out are forgotten, and must not be released
 * afterwards. NULL is allowed. Not needed after weir_limiter_init().
 */
WEIR_API void weir_limiter_destroy(struct weir_limiter *limiter);

/*
 * Admit now or refuse. 0 and a token, or -EAGAIN: the limit is reached, or
 * others are waiting. *token is set in either case, to nothing on a refusal.
 */
WEIR_API WEIR_MUST_CHECK int weir_try_acquire(struct weir_limiter *limiter,
					      struct weir_token *token);

/*
 * Admit, waiting in the queue until deadline (on weir_now()'s clock) if need be.
 * 0; -EAGAIN: the queue is full, or there is none; -ETIMEDOUT: the deadline
 * came first; -EINVAL: the limiter has a clock of its own. A deadline that is
 * past still gets a permit that is free. Not for signal handlers.
 */
WEIR_API WEIR_MUST_CHECK int weir_acquire(struct weir_limiter *limiter, weir_time deadline,
					  struct weir_token *token);

/*
 * Give a permit back and say how the call went. The token is emptied. Releasing
 * an emptied token does nothing but count (weir_snapshot.double_released). A copy of
 * a released token is caught likewise when nothing is in flight, and always
 * while it is tracked (weir_config.track).
 */
WEIR_API void weir_release(struct weir_limiter *limiter, struct weir_token *token,
			   enum weir_outcome outcome);

/* The same with the time given by the caller, from any clock of his: none is read. */
WEIR_API WEIR_MUST_CHECK int weir_try_acquire_at(struct weir_limiter *limiter, weir_time now,
						 struct weir_token *token);
WEIR_API void weir_release_at(struct weir_limiter *limiter, weir_time now, struct weir_token *token,
			      enum weir_outcome outcome);

/*
 * Feed one sample of a call that this limiter did not admit: a replayed trace, a
 * call that somebody else admitted. It began at start, ended at end and found
 * inflight calls, itself included. It counts in windows and totals as a call that was
 * admitted and has ended, and holds no permit.
 */
WEIR_API void weir_sample_at(struct weir_limiter *limiter, weir_time start, weir_time end,
			     uint32_t inflight, enum weir_outcome outcome);

/*
 * Move a settable limit, at once; a raised one admits who waits. 0; -EINVAL: the
 * value is 0 or above WEIR_LIMIT_MAX; -ENOTSUP: the limit is not settable. The value is
 * clamped to limit_min and limit_max.
 */
WEIR_API int weir_limit_set(struct weir_limiter *limiter, uint32_t value);

/* The present limit, and calls in flight and waiting. One load each. */
WEIR_API uint32_t weir_limit(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_inflight(const struct weir_limiter *limiter);
WEIR_API uint32_t weir_waiting(const struct weir_limiter *limiter);

#ifdef __cplusplus
}
#endif
#endif
