/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/rate.h - rate limiting: pace calls, bytes or cost to what is allowed in a period.
 *
 *	struct weir_rate_config config;
 *	struct weir_rate *rate;
 *
 *	weir_rate_config_init(&config);
 *	config.quotas[0] = (struct weir_quota){.units = 300, .period = 60 * WEIR_S};
 *	config.queue = 100;
 *	if (weir_rate_create(&config, &rate) != 0)
 *		return -1;
 *	...
 *	if (weir_rate_take(rate, 1, weir_now() + 5 * WEIR_S) == 0)
 *		status = call();
 *	if (status == 429)
 *		weir_rate_throttled(rate, retry_after);
 *
 * A limiter bounds how many calls are in progress; a rate bounds how many begin in a period. Units
 * are whatever is counted: calls, bytes, request units. A rate has one or more quotas of units.
 * With several quotas, a call takes its units of all of them or of none. Each quota is a token
 * bucket that fills at the beginning of each slot of time.
 *
 * Pace. Time is divided into slots, and each slot adds units. A quota of R units in a period P adds
 * exactly R units by the end of the period: at the beginning of slot k, counted from 0, the total
 * added is the whole part of (k + 1) * slot * R / P. So 100 units a second in slots of 200 ms are
 * added as 20, 20, 20, 20, 20, and 9 units a second in slots of 100 ms as 0, 1, 1, 1, 1, 1, 1, 1,
 * 1, 1. Rounding never loses or gains a unit. Units that are not taken remain, up to the depth of
 * the quota: what one slot adds (but at least one unit), plus burst. So in any sequence of slots,
 * no more units are taken than these slots add, plus the depth at their beginning.
 *
 * Debt. A call may begin if at least one unit is left of each quota that it takes from, and takes
 * its whole cost. What it takes beyond the units left is debt. Units added later pay the debt
 * before any other call begins. So a call may cost more than a slot or a period adds. The sequence
 * of slots in which it begins is exceeded by less than the call's own cost, and the long-term rate
 * is not exceeded at all.
 *
 * Order. Waiters are served first come, first served. While calls wait, a call that does not want
 * to wait is refused, so no call overtakes the queue.
 *
 * Thread safety. Every function may be called from any thread at any time, except
 * weir_rate_destroy(). A call that is admitted at once takes no lock, allocates nothing and makes
 * no system call besides reading the clock. The same holds for a refusal, unless the call returns
 * what it got of some of its quotas while other calls wait. A refusal reads the clock twice, so
 * that no call is refused because a slot began after the first reading. All other functions may
 * take a lock for a short time. weir_rate_try() may be called from a signal handler.
 *
 * Fork. A rate belongs to the process that created it.
 *
 * Cancellation. No function here is a cancellation point.
 */
#ifndef WEIR_RATE_H
#define WEIR_RATE_H

#include <weir/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_rate;

#define WEIR_QUOTAS_MAX 4                   /* the most quotas of a rate */
#define WEIR_UNITS_MAX  (UINT64_C(1) << 53) /* the most units in a quota, a burst or a cost */

enum {
	WEIR_QUOTA_UNLIMITED = 1u << 0, /* the quota limits nothing, and only counts */
};

/* An amount of units in each period. */
struct weir_quota {
	uint64_t units; /* units in a period; 0: no call passes; at most 64 for each ns of period */
	weir_dur period;   /* default 1 s; at most 52 days */
	uint64_t burst;    /* units that may be saved up beyond what a slot adds; default 0 */
	uint32_t flags;    /* 0, or WEIR_QUOTA_UNLIMITED */
	uint32_t reserved; /* must be 0 */
};

/* What a call takes of each quota. A quota of which it takes 0 does not limit it. */
struct weir_cost {
	uint64_t units[WEIR_QUOTAS_MAX]; /* at most WEIR_UNITS_MAX each */
};

/*
 * Configuration of a rate. Call weir_rate_config_init() first; zero means the default, except in
 * weir_quota.units. Everything but the clock is copied.
 */
struct weir_rate_config {
	size_t size; /* set by weir_rate_config_init() */

	struct weir_quota quotas[WEIR_QUOTAS_MAX];
	uint32_t quota_count; /* default 1 */
	uint32_t queue;       /* calls that may wait at once, at most 65535; default 0 */

	/*
	 * The length of a slot. Default: a fifth of the shortest period, but at least 1 ms and at
	 * most 200 ms, and no longer than that period. Short slots pace calls evenly; long slots
	 * wake waiters less often.
	 */
	weir_dur slot;

	/*
	 * How long the pace is kept after weir_rate_throttled(), and at each step back up; default
	 * 5 s.
	 */
	weir_dur recovery;

	const struct weir_clock *clock; /* default CLOCK_MONOTONIC; if set, no weir_rate_take() */

	/*
	 * Called when a waiter may be served sooner than weir_rate_serve() last returned, in the
	 * thread that caused it: by weir_rate_set(), by weir_rate_settle(), by a waiter that leaves
	 * the queue, or by a refused call that returns what it got of some of its quotas. An event
	 * loop then serves again. The callback may call the rate, but must neither destroy it nor
	 * wait in weir_rate_take(). May be NULL.
	 */
	void (*sooner)(void *arg);
	void *sooner_arg;
};

#define weir_rate_config_init(config) weir_rate_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_rate_config_init_sized(struct weir_rate_config *config, size_t size);

/*
 * Check a configuration. Returns 0 if a rate can be made of it, else -EINVAL and one sentence in
 * why (may be NULL), cut at why_size.
 */
WEIR_API int weir_rate_config_check(const struct weir_rate_config *config, char *why,
				    size_t why_size);

/*
 * Create a rate. Its first slot begins now, and the units of that slot are available at once. End
 * it with weir_rate_destroy().
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid.
 * -ENOMEM: out of memory.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_create(const struct weir_rate_config *config,
					      struct weir_rate **rate);

/* End a rate. No call on it may be in progress, and no call may wait. NULL is allowed. */
WEIR_API void weir_rate_destroy(struct weir_rate *rate);

/*
 * Take units of the first quota, or of each quota, now or not at all. Units of several quotas are
 * taken one quota after the other. If one of them has nothing left after all, what was taken is
 * returned, and other calls may be refused for that instant.
 *
 * Returns 0 if the units were taken, or a negative errno:
 * -EAGAIN: nothing is left, or other calls are waiting.
 * -EINVAL: a cost is above WEIR_UNITS_MAX, or is given for a quota that does not exist.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_try(struct weir_rate *rate, uint64_t units);
WEIR_API WEIR_MUST_CHECK int weir_rate_try_for(struct weir_rate *rate,
					       const struct weir_cost *cost);

/*
 * Take units, waiting until deadline (on weir_now()'s clock) if necessary. Otherwise as
 * weir_rate_try() and weir_rate_try_for(). With a deadline in the past, the call still gets what is
 * left.
 *
 * Returns 0, or a negative errno:
 * -EAGAIN: the queue is full, or there is none.
 * -ETIMEDOUT: the deadline came first.
 * -EINVAL: the rate has a clock of its own, or as for weir_rate_try().
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_take(struct weir_rate *rate, uint64_t units,
					    weir_time deadline);
WEIR_API WEIR_MUST_CHECK int weir_rate_take_for(struct weir_rate *rate,
						const struct weir_cost *cost, weir_time deadline);

/*
 * Report the actual cost of a call that took units of a quota. The difference is charged as debt,
 * or returned, to the first waiter first. An actual cost of 0 returns all units. Debt grows up to
 * 2^61 units.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: there is no such quota, or a number is above WEIR_UNITS_MAX, and nothing was done.
 */
WEIR_API int weir_rate_settle(struct weir_rate *rate, unsigned quota, uint64_t taken,
			      uint64_t actual);

/*
 * Wait in the queue without a thread, as in weir/wait.h. granted(arg), which may be NULL, is called
 * once, when the units have been taken, in whichever thread served the waiter, in any function of
 * this rate. The rules for callbacks in weir/wait.h hold here too. Waiters are served by a thread
 * in weir_rate_take(), which serves all of them, or by an event loop that calls weir_rate_serve().
 *
 * Returns 0, or a negative errno:
 * -EAGAIN: the queue is full, or there is none.
 * -EINVAL: as for weir_rate_try_for().
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_enqueue(struct weir_rate *rate, const struct weir_cost *cost,
					       weir_granted_fn *granted, void *arg,
					       struct weir_wait *wait);

/*
 * Check whether a waiter has been served; if so, it no longer exists.
 *
 * Returns 0 if it has been served, or a negative errno:
 * -EAGAIN: not yet.
 * -EINVAL: wait is not a waiter, or no longer one.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_poll(struct weir_rate *rate, struct weir_wait *wait);

/*
 * Leave the queue. If that succeeds, granted() will not be called.
 *
 * Returns 0 if the waiter left, or a negative errno:
 * -EALREADY: the waiter was served first, and the units are taken, so return them with
 *   weir_rate_settle() if necessary.
 * -EINVAL: wait is not a waiter, or no longer one.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_cancel(struct weir_rate *rate, struct weir_wait *wait);

/*
 * Serve the waiters whose turn it is. Returns the time at which the next one can be served. Call it
 * again at that time, and after weir_rate_enqueue(). One timer for each rate is enough, however
 * many calls wait. Returns WEIR_FOREVER if no call waits, or if nothing may pass.
 */
WEIR_API weir_time weir_rate_serve(struct weir_rate *rate);

/*
 * Change a quota. A higher one counts from the next slot on. Slots stay where they are, so setting
 * it often gains no unit. A lower one holds at once, and units left beyond its depth are dropped.
 * Debt stays.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: there is no such quota, the value is invalid, or its period is shorter than a slot, and
 *   nothing was done.
 */
WEIR_API int weir_rate_set(struct weir_rate *rate, unsigned quota, const struct weir_quota *value);

/*
 * Report that the backend throttled a call, with status 429 or its protocol's equivalent. Units
 * that are left expire. Nothing passes for retry_after (0: the backend gave no time). The pace of
 * all quotas falls to 70 % of what it was, but not below 10 % of the quotas, and at most once in
 * weir_rate_config.recovery. If the backend does not throttle again, the pace rises by 5 % of the
 * quotas in each such time. A retry_after above 36 years counts as 36 years.
 */
WEIR_API void weir_rate_throttled(struct weir_rate *rate, weir_dur retry_after);

/* State of a quota. */
struct weir_quota_snapshot {
	struct weir_quota quota;
	uint64_t available; /* units that are left; 0 if the quota is unlimited */
	uint64_t debt;      /* units that were taken and have not been added yet */
	uint64_t taken;     /* units taken in total, as requested, before they were settled */
};

/*
 * Numbers of a rate. Totals are counted without locks: each is exact, but they may be a few calls
 * apart from each other.
 */
struct weir_rate_snapshot {
	size_t size;          /* set by weir_rate_snapshot_init() */
	uint32_t quota_count; /* entries in quotas */
	uint32_t waiting;     /* calls in the queue */
	uint32_t percent;     /* the pace: 100, or less when throttled; 0: nothing passes yet */
	uint32_t reserved;
	uint64_t admitted;  /* calls, including those that have waited */
	uint64_t refused;   /* calls refused at once */
	uint64_t abandoned; /* calls that left the queue: deadline or cancel */
	uint64_t throttled; /* calls of weir_rate_throttled() */
	weir_dur slot;
	weir_time next; /* when the first waiter, or one unit of each quota, can be served */
	struct weir_quota_snapshot quotas[WEIR_QUOTAS_MAX];
};

#define weir_rate_snapshot_init(snapshot)                                                          \
	weir_rate_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_rate_snapshot_init_sized(struct weir_rate_snapshot *snapshot, size_t size);

/* Fill a snapshot, which weir_rate_snapshot_init() has prepared, as often as you like. */
WEIR_API void weir_rate_snapshot_take(struct weir_rate *rate, struct weir_rate_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
