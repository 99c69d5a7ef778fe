/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log-linear buckets for latencies: each power of two is divided into BUCKETS_PER_OCTAVE equal
 * parts, so a bucket is at most 1/16 of its values wide. After HdrHistogram (G. Tene).
 *
 * Latencies from 0 to 2^MAX_OCTAVE ns (18 minutes) have buckets; the last one also counts longer
 * ones. A word has a bit for each octave in use. Mostly these are few, and reading all buckets
 * would take longer than everything else.
 */
#ifndef WEIR_LIB_HISTOGRAM_H
#define WEIR_LIB_HISTOGRAM_H

#include <stdint.h>

#define OCTAVE_BITS        4
#define BUCKETS_PER_OCTAVE (1u << OCTAVE_BITS)
#define MAX_OCTAVE         40
#define OCTAVES            (MAX_OCTAVE - OCTAVE_BITS + 1) /* the first starts at 0 */
#define BUCKETS            (OCTAVES * BUCKETS_PER_OCTAVE)
#define ALL_OCTAVES        ((UINT64_C(1) << OCTAVES) - 1)
_Static_assert(OCTAVES < 64, "a word has a bit for each octave");

struct histogram {
	uint64_t octaves; /* octaves in use, one bit each */
	uint64_t count;   /* latencies in all buckets */
	uint64_t bucket[BUCKETS];
};

/* The bucket of a latency. */
static inline uint32_t bucket_of(uint64_t rtt)
{
	uint32_t octave, part;

	if (rtt < BUCKETS_PER_OCTAVE)
		return (uint32_t)rtt;
	octave = 63 - (uint32_t)__builtin_clzll(rtt);
	if (octave >= MAX_OCTAVE)
		return BUCKETS - 1;
	part = (uint32_t)(rtt >> (octave - OCTAVE_BITS)) & (BUCKETS_PER_OCTAVE - 1);
	return (octave - OCTAVE_BITS + 1) * BUCKETS_PER_OCTAVE + part;
}

/* The bit of a bucket's octave. */
static inline uint64_t octave_of(uint32_t bucket)
{
	return UINT64_C(1) << bucket / BUCKETS_PER_OCTAVE;
}

/* The first bucket of the lowest octave in the word, which is not 0. */
static inline uint32_t first_bucket(uint64_t octaves)
{
	return (uint32_t)__builtin_ctzll(octaves) * BUCKETS_PER_OCTAVE;
}

static inline void histogram_add(struct histogram *h, uint32_t bucket, uint64_t count)
{
	h->octaves |= octave_of(bucket);
	h->count += count;
	h->bucket[bucket] += count;
}

/* Make the histogram empty. Zeroed memory is an empty histogram too. */
void histogram_clear(struct histogram *h);

/* The lowest latency of a bucket; for BUCKETS, the end of the last bucket. */
uint64_t bucket_floor(uint32_t bucket);

/*
 * The latency of a rank, from 1 to count. Some latencies are also known by value: values[0..known),
 * in any order; they get reordered. The result is exact if all values of the rank's bucket are
 * known, and interpolated within the bucket otherwise.
 */
double histogram_at_rank(const struct histogram *h, uint64_t rank, uint64_t *values,
			 uint32_t known);

#endif
