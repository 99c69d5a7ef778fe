/*
 * weir/rate.h - so many a second: pace calls, bytes or cost to what is allowed.
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
 * A limiter bounds how many calls are in progress, a rate how many begin in a period. Units are
 * whatever is counted: calls, bytes, request units. A rate has one quota of them, or several: then
 * a call takes units of all that it asks for, or of none.
 *
 * Pace. Time is cut into slots. With each slot some units fall due, so that R units a period P have
 * fallen due by the end of it: when slot k begins, counted from 0, that is the whole part of
 * (k + 1) * slot * R / P in all. So 100 a second in slots of 200 ms are 20, 20, 20, 20, 20, 9 a
 * second in slots of 100 ms are 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, and nothing is ever lost or won by
 * rounding. What is not taken stays, up to what a slot is worth (but at least one unit) and burst:
 * this is a quota's depth. So in any row of slots no more is taken than falls due in them, but
 * for the depth at their beginning.
 *
 * Debt. A call may begin when anything at all is left of what it asks for, and takes all that it
 * asks for. What it takes beyond is debt, which is paid by what falls due next, before anybody else
 * has his turn. So a call may cost more than a slot or a period is worth; the row of slots in which
 * it begins is exceeded by less than its own cost, and the long run by nothing.
 *
 * Order. Who waits is served first come, first served, and nobody overtakes who waits: while
 * somebody does, a call that will not wait is refused.
 *
 * Thread safety. Every function may be called from any thread at any time, except
 * weir_rate_destroy(). A call that is admitted at once takes no lock, allocates nothing and makes
 * no system call beside reading the clock; nor does a refusal, unless the call gives back what it
 * got of some of its quotas while somebody waits. A refusal reads the clock twice: nobody is
 * refused because a slot began since the first look. All else may take a lock, for some instants.
 * weir_rate_try() may be called from a signal handler.
 *
 * Fork. A rate belongs to the process that made it.
 *
 * Cancellation. Nothing here is a cancellation point.
 */
#ifndef WEIR_RATE_H
#define WEIR_RATE_H

#include <weir/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_rate;

#define WEIR_QUOTAS_MAX 4                   /* quotas of a rate */
#define WEIR_UNITS_MAX  (UINT64_C(1) << 53) /* units in a quota, a burst or a cost */

enum {
	WEIR_QUOTA_UNLIMITED = 1u << 0, /* it limits nothing, and only counts */
};

/* So many units a period. */
struct weir_quota {
	uint64_t units;    /* 0: nothing may pass; at most 64 for each nanosecond of the period */
	weir_dur period;   /* 1 s; at most 52 days */
	uint64_t burst;    /* 0: units that may be saved up beyond what a slot is worth */
	uint32_t flags;    /* 0, or WEIR_QUOTA_UNLIMITED */
	uint32_t reserved; /* 0 */
};

/* What a call takes of each quota. Where it takes nothing, it is not limited. */
struct weir_cost {
	uint64_t units[WEIR_QUOTAS_MAX]; /* at most WEIR_UNITS_MAX each */
};

/*
 * How a rate is to be. weir_rate_config_init() first; zero means the default, but in units.
 * Everything but the clock is copied.
 */
struct weir_rate_config {
	size_t size; /* set by weir_rate_config_init() */

	struct weir_quota quotas[WEIR_QUOTAS_MAX];
	uint32_t quota_count; /* 1 */
	uint32_t queue;       /* calls that may wait at once, at most 65535; 0: nobody may wait */

	/*
	 * How long a slot is: a fifth of the shortest period, but no less than 1 ms and no more
	 * than 200 ms, nor than that period. Short slots are even, long ones wake waiters seldom.
	 */
	weir_dur slot;

	/* 5 s: how long the pace stays as it is after weir_rate_throttled(), and at each step back. */
	weir_dur recovery;

	const struct weir_clock *clock; /* CLOCK_MONOTONIC; with another, no weir_rate_take() */

	/*
	 * Told when somebody who waits may be served sooner than weir_rate_serve() said last, by
	 * weir_rate_set(), weir_rate_settle(), who leaves the queue, or a refused call that gives
	 * back what it got of some of its quotas, in the thread that did it: for an event loop, which
	 * serves again. It may call the rate, but neither destroy it nor wait in weir_rate_take().
	 * NULL: nobody is.
	 */
	void (*sooner)(void *arg);
	void *sooner_arg;
};

#define weir_rate_config_init(config) weir_rate_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_rate_config_init_sized(struct weir_rate_config *config, size_t size);

/*
 * Check a configuration. 0 if a rate can be made of it, else -EINVAL and one sentence in why (may
 * be NULL), cut at why_size.
 */
WEIR_API int weir_rate_config_check(const struct weir_rate_config *config, char *why,
				    size_t why_size);

/*
 * Make a rate. Its first slot begins now, and what it is worth may be taken at once. 0; -EINVAL:
 * the configuration is no good; -ENOMEM. End with weir_rate_destroy().
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_create(const struct weir_rate_config *config,
					      struct weir_rate **rate);

/* End a rate. No call on it may be going on, and nobody may wait. NULL is allowed. */
WEIR_API void weir_rate_destroy(struct weir_rate *rate);

/*
 * Take units of the first quota, or of each, now or not at all. 0: they are taken; -EAGAIN:
 * nothing is left, or others are waiting; -EINVAL: a cost is above WEIR_UNITS_MAX, or is of a quota
 * that there is not. Of several quotas they are taken one after the other; if one has nothing
 * left after all, what was taken goes back, and for that instant others may be refused.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_try(struct weir_rate *rate, uint64_t units);
WEIR_API WEIR_MUST_CHECK int weir_rate_try_for(struct weir_rate *rate,
					       const struct weir_cost *cost);

/*
 * The same, waiting until deadline (on weir_now()'s clock) if need be. 0; -EAGAIN: the queue is
 * full, or there is none; -ETIMEDOUT: the deadline came first; -EINVAL: the rate has a clock of its
 * own, or as weir_rate_try(). A deadline that is past still gets what is left.
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_take(struct weir_rate *rate, uint64_t units,
					    weir_time deadline);
WEIR_API WEIR_MUST_CHECK int weir_rate_take_for(struct weir_rate *rate,
						const struct weir_cost *cost, weir_time deadline);

/*
 * Say what a call that took units of a quota has come to: the difference is charged as debt, or
 * given back, to who waits first. With an actual cost of 0 it gives all back. 0; -EINVAL: there is
 * no such quota, or a number is above WEIR_UNITS_MAX, and nothing was done. Debt grows up to 2^61.
 */
WEIR_API int weir_rate_settle(struct weir_rate *rate, unsigned quota, uint64_t taken,
			      uint64_t actual);

/*
 * Stand in the queue without a thread, as in weir/wait.h: granted(arg), which may be NULL, is
 * called once, when the units are taken, in whichever thread served, in any function of this rate.
 * What is said of it there holds here too. Waiters are served by a thread in weir_rate_take(),
 * which serves all of them, or by a loop that calls weir_rate_serve(). 0; -EAGAIN: the queue is
 * full, or there is none; -EINVAL: as weir_rate_try_for().
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_enqueue(struct weir_rate *rate, const struct weir_cost *cost,
					       weir_granted_fn *granted, void *arg,
					       struct weir_wait *wait);

/*
 * Whether the turn has come. 0: it has, and the waiter is no more; -EAGAIN: not yet; -EINVAL: this
 * is no waiter (any more).
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_poll(struct weir_rate *rate, struct weir_wait *wait);

/*
 * Leave the queue. 0: gone, and granted() will not be called; -EALREADY: the turn came first, and
 * the units are taken: give them back by weir_rate_settle(), if need be; -EINVAL: this is no waiter
 * (any more).
 */
WEIR_API WEIR_MUST_CHECK int weir_rate_cancel(struct weir_rate *rate, struct weir_wait *wait);

/*
 * Serve those whose turn it is, and tell when that of the next one comes: call it again then, and
 * after weir_rate_enqueue(). One timer a rate is enough, however many wait. WEIR_FOREVER: nobody
 * waits, or nothing may pass.
 */
WEIR_API weir_time weir_rate_serve(struct weir_rate *rate);

/*
 * Change a quota. A higher one counts from the next slot on, and slots stay where they are, so
 * that however often it is set, no unit is won; a lower one holds at once, and of what is left no
 * more stays than its depth. Debt stays. 0; -EINVAL: there is no such quota, or it is not
 * well-formed, or its period is shorter than a slot: nothing was done.
 */
WEIR_API int weir_rate_set(struct weir_rate *rate, unsigned quota, const struct weir_quota *value);

/*
 * The callee says that it is too much: a 429, or whatever its protocol has. What is left lapses;
 * nothing passes for retry_after (0: it did not say); and the pace falls to 70 % of what it was,
 * for all quotas, not below 10 %, and once in weir_rate_config.recovery at most. Without further
 * complaints it rises by 5 % of the quotas in every such time. As a duration, 36 years and more
 * are 36 years.
 */
WEIR_API void weir_rate_throttled(struct weir_rate *rate, weir_dur retry_after);

/* How a quota stands. */
struct weir_quota_snapshot {
	struct weir_quota quota;
	uint64_t available; /* units that are left; of one that is unlimited, 0 */
	uint64_t debt;      /* units that were taken and have not fallen due */
	uint64_t taken;     /* units, in all: as they were asked for, before they were settled */
};

/*
 * Numbers of a rate. Totals are counted without locks: each is right, but they may be some calls
 * apart from each other.
 */
struct weir_rate_snapshot {
	size_t size;          /* set by weir_rate_snapshot_init() */
	uint32_t quota_count; /* of quotas */
	uint32_t waiting;     /* calls in the queue */
	uint32_t percent; /* the pace: 100 but after weir_rate_throttled(); 0: nothing passes yet */
	uint32_t reserved;
	uint64_t admitted;  /* calls, with those that have waited */
	uint64_t refused;   /* at once */
	uint64_t abandoned; /* left the queue: deadline or cancel */
	uint64_t throttled; /* times that weir_rate_throttled() was called */
	weir_dur slot;
	weir_time
		next; /* when a call has, or had, its turn: who waits first, else one unit of each */
	struct weir_quota_snapshot quotas[WEIR_QUOTAS_MAX];
};

#define weir_rate_snapshot_init(snapshot)                                                          \
	weir_rate_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_rate_snapshot_init_sized(struct weir_rate_snapshot *snapshot, size_t size);

/* Fill a snapshot that weir_rate_snapshot_init() has prepared, as often as you like. */
WEIR_API void weir_rate_snapshot_take(struct weir_rate *rate, struct weir_rate_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
