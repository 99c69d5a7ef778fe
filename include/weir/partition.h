/* SPDX-License-Identifier: BSD-2-Clause */
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
 * A share is a guarantee, not a bound. While there is room, any partition may use it. When there is
 * none, the next free permits go to partitions below their share, before all partitions above
 * theirs. Nothing is ever admitted above the limit, so a share that others have borrowed comes back
 * as their calls end. The part of its share that a partition has used lately is reserved for it.
 * Others may borrow the rest; to get it back, the partition has one call refused for each permit.
 *
 * Precisely: a partition is guaranteed its share of the limit, rounded up. Where all guarantees
 * together would exceed the limit, those with the smallest fractions are rounded down. A call that
 * stays within its partition's guarantee is admitted if the limit has room. Any other call is
 * admitted if the limit has room beside what is reserved, no call waits for that room, and its
 * partition's cap allows it. The permits reserved for a partition are the peak of what it has had
 * in flight or has been refused in the last one to two weir_config.partition_hold, up to its
 * guarantee, less what it has in flight now.
 *
 * A call with an unknown partition name goes to partition 0, "unknown", which has no share and no
 * cap, unless a partition of that name is configured.
 *
 * With a queue, each partition has a queue of its own. Waiters of one do not delay those of
 * another, and a call that waits for its partition's cap delays no other partition. Room goes first
 * to partitions below their guarantee, then to the one that has borrowed least. While permits are
 * collected for one call of a higher cost, the others wait.
 */
#ifndef WEIR_PARTITION_H
#define WEIR_PARTITION_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PARTITIONS_MAX     64 /* partitions of a limiter, beside partition 0 */
#define WEIR_PARTITION_NAME_MAX 63 /* bytes, without the final 0 */

/* Configuration of a partition. */
struct weir_partition {
	const char *name; /* unique, not empty, at most WEIR_PARTITION_NAME_MAX bytes */
	double share;     /* guaranteed fraction of the limit; sum at most 1; 0: no guarantee */
	double cap;       /* upper bound, a fraction of the limit; default 1; at least 1 permit */
	uint32_t max;     /* upper bound in permits, beside cap; default WEIR_LIMIT_MAX */
	weir_dur reject_delay; /* what weir_delay_begin() returns; default 0 */
};

/*
 * The index of the partition of that name; 0 if there is none, or name is NULL. Look it up once and
 * keep the index. Any thread.
 */
WEIR_API uint16_t weir_partition_find(const struct weir_limiter *limiter, const char *name);

/*
 * The number of partitions, including partition 0; 0 if the limiter was made without any. Indices
 * are below it. Any thread.
 */
WEIR_API unsigned weir_partition_count(const struct weir_limiter *limiter);

/*
 * Change shares, caps and delays at run time. partitions lists partitions that the limiter was made
 * with, by name and in any order; those left out stay as they are. The changes take effect at once,
 * all or none, unless the process dies in this function: then some of them may. On failure nothing
 * is changed, and why (may be NULL) gets one sentence, cut at why_size bytes. Calls from several
 * threads take effect one after the other. Not for signal handlers.
 * Returns 0, or a negative errno:
 * -EINVAL: a setting is not valid, or there is no partition of that name.
 * -EAGAIN: the limiter is shared, and another process has been stopped in this function for about
 * 20 ms.
 */
WEIR_API int weir_partitions_set(struct weir_limiter *limiter,
				 const struct weir_partition *partitions, uint32_t count, char *why,
				 size_t why_size);

/* One partition. Totals are counted as in struct weir_snapshot. */
struct weir_partition_snapshot {
	size_t size;        /* set by weir_partition_snapshot_init() */
	const char *name;   /* lives as long as the limiter */
	double share;       /* as configured */
	uint32_t guarantee; /* permits, at the present limit */
	uint32_t cap;       /* permits */
	uint32_t inflight;  /* permits */
	uint32_t waiting;   /* calls in its queue */
	uint32_t reserved;  /* permits reserved for it, beside those in flight */
	uint32_t delayed;   /* refusals being delayed */
	uint64_t
		admitted; /* including those in flight; waiters count when they take their permit */
	uint64_t rejected;  /* refused at once */
	uint64_t shed;      /* part of rejected: shed because of their priority */
	uint64_t abandoned; /* left the queue without a permit */
	uint64_t succeeded; /* ended as WEIR_SUCCESS */
	uint64_t dropped;   /* ended as WEIR_DROPPED or WEIR_TIMED_OUT */
	uint64_t other;     /* ended as WEIR_IGNORE, WEIR_CANCELLED or WEIR_FAILED */
	double cap_share;   /* as configured: struct weir_partition.cap */
	uint32_t max;       /* as configured */
	weir_dur delay;     /* as configured: reject_delay */
};

#define weir_partition_snapshot_init(snapshot)                                                     \
	weir_partition_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_partition_snapshot_init_sized(struct weir_partition_snapshot *snapshot,
						 size_t size);

/*
 * Fill a snapshot that weir_partition_snapshot_init() has prepared. Any thread.
 * Returns 0, or a negative errno:
 * -EINVAL: there is no partition of that index.
 */
WEIR_API int weir_partition_snapshot_take(const struct weir_limiter *limiter, unsigned index,
					  struct weir_partition_snapshot *snapshot);

/*
 * Delay a refusal, to slow down callers that retry at once. weir_delay_begin() returns how long to
 * delay it: the partition's reject_delay; or 0 if it has none, or if weir_config.delayed_max
 * refusals are being delayed already. If it is above 0, call weir_delay_end() when the time is
 * over. A thread that may sleep does so in between; an event loop sets a timer. Any thread.
 */
WEIR_API weir_dur weir_delay_begin(struct weir_limiter *limiter, unsigned index);
WEIR_API void weir_delay_end(struct weir_limiter *limiter, unsigned index);

#ifdef __cplusplus
}
#endif
#endif
