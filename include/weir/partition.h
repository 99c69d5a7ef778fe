/*
 * weir/partition.h - shares of one limit for classes of traffic.
 *
 *	static const struct weir_partition partitions[] = {
 *		{.name = "live", .share = 0.7},
 *		{.name = "batch", .share = 0.2, .cap = 0.5},
 *		{.name = "crawler"},
 *	};
 *	config.partitions = partitions;
 *	config.partition_count = 3;
 *	...
 *	live.partition = weir_partition_find(limiter, "live");	once
 *	...
 *	if (weir_try_acquire_for(limiter, &live, &token) != 0)	for each call
 *
 * A share is a guarantee, not a bound. While there is room anybody may use it; when
 * there is none, who is below its share gets the next that comes free, before
 * everybody who is above. Nothing is ever admitted above the limit, so a share
 * that others have borrowed comes back as their calls end. What a partition has lately used of
 * its share is kept for it; the rest others may borrow, and it takes one refusal for each
 * permit that it wants more.
 *
 * Precisely. A partition is guaranteed its share of the limit, rounded up; where
 * all of these together would exceed the limit, those with the smallest fraction are
 * rounded down. A call that leaves its partition within its guarantee is admitted if
 * the limit has room. Any other is admitted if the limit has room beside
 * what is kept, nobody waits for that room, and its partition's cap allows it. Kept is,
 * of each partition's guarantee, what it has had in flight at once, or has been
 * refused, in the last weir_config.partition_hold or twice that, less what it has now.
 *
 * A call of a name that is no partition goes to partition 0, "unknown". It has no
 * share and no cap, unless a partition of that name is configured.
 *
 * With a queue, each partition has its own: those who wait in one do not stand before those of
 * another, and who waits for his partition's cap is in nobody's way. Room goes to partitions
 * below their guarantee first, then to the one that has borrowed least; while it comes
 * together for one call of a higher cost, the others wait.
 */
#ifndef WEIR_PARTITION_H
#define WEIR_PARTITION_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PARTITIONS_MAX     64 /* that a limiter can have, beside partition 0 */
#define WEIR_PARTITION_NAME_MAX 63 /* bytes */

/* A partition, as it is to be. */
struct weir_partition {
	const char *name; /* unique, not empty, at most WEIR_PARTITION_NAME_MAX bytes */
	double share;     /* 0 to 1, of the limit, together at most 1; 0: what others leave */
	double cap;       /* 1; above 0, to 1: of the limit, never more; at least one permit */
	uint32_t max;     /* WEIR_LIMIT_MAX: permits, never more. The lower of cap and max counts */
	weir_dur reject_delay; /* 0: what weir_delay_begin() answers */
};

/*
 * The index of the partition of that name; 0 if there is none, or name is NULL. Call
 * it once, and keep the index. Any thread.
 */
WEIR_API uint16_t weir_partition_find(const struct weir_limiter *limiter, const char *name);

/*
 * The number of partitions, with partition 0; 0 if the limiter was made without any. Indices
 * lie below it. Any thread.
 */
WEIR_API unsigned weir_partition_count(const struct weir_limiter *limiter);

/*
 * Change shares, caps and delays at run time. partitions are those the limiter was made with,
 * in any order, under their names; those left out keep what they have. The changes take effect at
 * once, all or none; only if the process dies in this function may some of them take effect. 0; or
 * a negative errno, with one sentence in why (may be NULL), cut at why_size, and nothing is
 * changed. -EINVAL; -EAGAIN, where the limiter is shared: another process is in this function, and
 * has been stopped there for about 20 ms. Any thread may call it, and calls at the same time take
 * effect one after the other; not for signal handlers.
 */
WEIR_API int weir_partitions_set(struct weir_limiter *limiter,
				 const struct weir_partition *partitions, uint32_t count, char *why,
				 size_t why_size);

/* One partition. Totals are as those of struct weir_snapshot. */
struct weir_partition_snapshot {
	size_t size;        /* set by weir_partition_snapshot_init() */
	const char *name;   /* lives as long as the limiter */
	double share;       /* as configured */
	uint32_t guarantee; /* permits, of the present limit */
	uint32_t cap;       /* permits */
	uint32_t inflight;  /* permits */
	uint32_t waiting;   /* calls in its queue */
	uint32_t kept;      /* permits kept for it, beside those in flight */
	uint32_t delayed;   /* refusals being delayed */
	uint64_t admitted;  /* with those in flight; of waiters, when they take up their permit */
	uint64_t rejected;  /* refused at once */
	uint64_t shed;      /* of the rejected: for their priority */
	uint64_t abandoned; /* left the queue without a permit */
	uint64_t succeeded; /* ended as WEIR_SUCCESS */
	uint64_t dropped;   /* with those that timed out */
	uint64_t other;     /* ignored, cancelled or failed */
	double cap_share;   /* as configured: struct weir_partition.cap */
	uint32_t max;       /* as configured */
	weir_dur delay;     /* as configured: reject_delay */
};

#define weir_partition_snapshot_init(snapshot)                                                     \
	weir_partition_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_partition_snapshot_init_sized(struct weir_partition_snapshot *snapshot,
						 size_t size);

/*
 * Fill a snapshot that weir_partition_snapshot_init() has prepared. 0; -EINVAL: there is no
 * partition of that index. Any thread.
 */
WEIR_API int weir_partition_snapshot_take(const struct weir_limiter *limiter, unsigned index,
					  struct weir_partition_snapshot *snapshot);

/*
 * Delay a refusal, to slow down callers who come back at once. begin answers how long:
 * the partition's reject_delay; or 0, when it has none or weir_config.delayed_max are
 * being delayed already. Above 0, call end when the time is over. A thread that may
 * sleep does so in between; an event loop sets a timer. Any thread.
 */
WEIR_API weir_dur weir_delay_begin(struct weir_limiter *limiter, unsigned index);
WEIR_API void weir_delay_end(struct weir_limiter *limiter, unsigned index);

#ifdef __cplusplus
}
#endif
#endif
