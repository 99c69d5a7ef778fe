/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collecting latencies, and finding a quantile of them. quantile.h has the ledger.
 */

#include "lib/sample/quantile.h"

#include <math.h>
#include <string.h>

#include "lib/sample/take.h"

size_t pool_size(uint32_t stripes)
{
	return sizeof(struct pool) + (size_t)stripes * LOG_MAX * sizeof(uint64_t);
}

void pool_init(struct pool *pool)
{
	memset(&pool->histogram, 0, sizeof(pool->histogram));
}

void lane_init(struct lane *lane)
{
	memset(lane, 0, sizeof(*lane));
}

void pool_clear(struct pool *pool)
{
	histogram_clear(&pool->histogram);
}

/* The latencies of a service are in few octaves: the buckets of the others are not read. */
static void collect_buckets(struct lane *lane, struct histogram *histogram)
{
	uint64_t left = atomic_load_explicit(&lane->octaves, memory_order_relaxed) & ALL_OCTAVES;

	for (; left != 0; left &= left - 1) {
		const uint32_t first = first_bucket(left);

		for (uint32_t i = first; i < first + BUCKETS_PER_OCTAVE; i++) {
			const uint32_t count = take_32(&lane->bucket[i]);

			if (count > 0)
				histogram_add(histogram, i, count);
		}
	}
}

void pool_collect(struct pool *pool, struct lane *lane, uint64_t logged, uint32_t *known)
{
	for (uint32_t i = 0; i < LOG_MAX && i < logged; i++) {
		uint64_t rtt = atomic_exchange_explicit(&lane->log[i], 0, memory_order_relaxed);

		if (rtt == 0)
			continue; /* counted, but not stored yet */
		pool->value[(*known)++] = rtt;
		histogram_add(&pool->histogram, bucket_of(rtt), 1);
	}
	collect_buckets(lane, &pool->histogram);
}

/* The rank is quantile * count, rounded to nearest, ties up, as Netflix's; at least 1. */
double pool_quantile(struct pool *pool, double quantile, uint32_t known)
{
	const struct histogram *h = &pool->histogram;
	uint64_t rank;

	if (h->count == 0)
		return 0;
	rank = (uint64_t)floor((double)h->count * quantile + 0.5);
	return histogram_at_rank(h, rank > 0 ? rank : 1, pool->value, known);
}
