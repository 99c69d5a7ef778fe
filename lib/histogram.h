/*
 * Log-linear buckets for latencies: each power of two is cut in BUCKETS_PER_OCTAVE
 * equal parts, so a bucket is at most 1/16 of its values wide. After the
 * arithmetic of HdrHistogram (G. Tene).
 *
 * Latencies from 0 to 2^MAX_OCTAVE ns (18 minutes) have buckets; the last takes what is longer.
 */
#ifndef WEIR_LIB_HISTOGRAM_H
#define WEIR_LIB_HISTOGRAM_H

#include <stdint.h>

#define OCTAVE_BITS        4
#define BUCKETS_PER_OCTAVE (1u << OCTAVE_BITS)
#define MAX_OCTAVE         40
#define BUCKETS            ((MAX_OCTAVE - OCTAVE_BITS + 1) * BUCKETS_PER_OCTAVE)

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

/* The least latency of a bucket; for BUCKETS, the end of the last. */
uint64_t bucket_floor(uint32_t bucket);

/*
 * The latency of rank (from 1) among those counted in buckets, of which some are
 * known by value too: values[0..known), in any order, which get reordered. Exact
 * where all of the bucket's values are known, else interpolated in the bucket.
 */
double histogram_at_rank(const uint64_t *buckets, uint64_t rank, uint64_t *values, uint32_t known);

#endif
