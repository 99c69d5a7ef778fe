/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantiles of a window's latencies, for limiters that need one. Each stripe has a lane: it logs
 * its first latencies by value, and counts further ones in buckets. The window's owner merges the
 * lanes in a pool, and finds the latency of a rank there.
 *
 * word       written by                          order    pairs with
 * ---------  ----------------------------------  -------  --------------------------
 * log[i]     record: store; collect: exchange    relaxed  nothing: a number
 * bucket[i]  record: add; collect: exchange 0    relaxed  nothing: a number
 * octaves    record: or, for good                relaxed  nothing: an owner that misses a bit
 *                                                         sees it in the next window
 */
#ifndef WEIR_LIB_QUANTILE_H
#define WEIR_LIB_QUANTILE_H

#include <stdatomic.h>

#include "lib/base/layout.h"
#include "lib/sample/histogram.h"

/* Latencies of a window that a lane stores by value; further ones are only counted in buckets. */
#define LOG_MAX 256

/* The latencies of a stripe's window. */
struct lane {
	_Alignas(LINE) _Atomic uint64_t log[LOG_MAX];
	_Atomic uint64_t octaves; /* octaves ever used, one bit each */
	_Atomic uint32_t bucket[BUCKETS];
};

/* Where the owner merges the lanes. Private to the process, as it is indexed without checks. */
struct pool {
	struct histogram histogram;
	uint64_t value[]; /* LOG_MAX for each stripe */
};

size_t pool_size(uint32_t stripes);

void pool_init(struct pool *pool);
void lane_init(struct lane *lane);

/*
 * Store the latency with that index, from 0, in the window. If a thread is preempted between
 * counting its sample and this store while the window is closed, its value goes into the next
 * window's log, and the quantiles of two windows are off by one sample.
 */
static inline void lane_log(struct lane *lane, uint64_t index, uint64_t rtt)
{
	atomic_store_explicit(&lane->log[index], rtt, memory_order_relaxed);
}

/* Count a latency that has no place in the log. */
static inline void lane_count(struct lane *lane, uint64_t rtt)
{
	const uint32_t bucket = bucket_of(rtt);
	const uint64_t octave = octave_of(bucket);

	atomic_fetch_add_explicit(&lane->bucket[bucket], 1, memory_order_relaxed);
	if (UNLIKELY((atomic_load_explicit(&lane->octaves, memory_order_relaxed) & octave) == 0))
		atomic_fetch_or_explicit(&lane->octaves, octave, memory_order_relaxed);
}

/* Empty the pool, before the lanes of a window are collected. */
void pool_clear(struct pool *pool);

/*
 * Move a lane's latencies into the pool. At most logged of them are in the log. *known is the
 * number of latencies in the pool that are known by value.
 */
void pool_collect(struct pool *pool, struct lane *lane, uint64_t logged, uint32_t *known);

/* The latency at that quantile, in nanoseconds; 0: there is none. The pool is reordered. */
double pool_quantile(struct pool *pool, double quantile, uint32_t known);

#endif
