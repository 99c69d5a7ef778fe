/*
 * Log-linear buckets for latencies: each power of two is cut in BUCKETS_PER_OCTAVE
 * equal parts, so a bucket is at most 1/16 of its values wide. After the
 * arithmetic of HdrHistogram (G. Tene).
 *
 * Latencies from 0 to 2^MAX_OCTAVE ns (18 minutes) have buckets; the last takes what is longer.
 * A word tells the octaves in use: mostly they are few, and to look at all buckets takes longer
 * than all the rest.
 */
#ifndef WEIR_LIB_HISTOGRAM_H
#define WEIR_LIB_HISTOGRAM_H

#include <stdint.h>

#define OCTAVE_BITS        4
#define BUCKETS_PER_OCTAVE (1u << OCTAVE_BITS)
#define MAX_OCTAVE         40
#define OCTAVES            (MAX_OCTAVE - OCTAVE_BITS + 1) /* the first from 0, the others double */
#define BUCKETS            (OCTAVES * BUCKETS_PER_OCTAVE)
#define ALL_OCTAVES        ((UINT64_C(1) << OCTAVES) - 1)
_Static_assert(OCTAVES < 64, "a word has a bit for each octave");

struct histogram {
	uint64_t octaves; /* that have been added to, a bit each */
	uint64_t count;   /* in all buckets */
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

/* The octaves' word with the one of this bucket alone. */
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

/* Empty again. Zeroed memory is an empty one too. */
void histogram_clear(struct histogram *h);

/* The least latency of a bucket; for BUCKETS, the end of the last. */
uint64_t bucket_floor(uint32_t bucket);

/*
 * The latency of rank (from 1 to count) in the histogram, of which some are
 * known by value too: values[0..known), in any order, which get reordered. Exact
 * where all of the bucket's values are known, else interpolated in the bucket.
 */
double histogram_at_rank(const struct histogram *h, uint64_t rank, uint64_t *values,
			 uint32_t known);

#endif
