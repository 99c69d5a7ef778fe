/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantiles of a histogram, made exact by values that are known.
 */

#include "lib/sample/histogram.h"

#include <stddef.h>
#include <string.h>

uint64_t bucket_floor(uint32_t bucket)
{
	uint32_t octave = bucket / BUCKETS_PER_OCTAVE;
	uint64_t part = bucket % BUCKETS_PER_OCTAVE;

	if (octave == 0)
		return part;
	return (BUCKETS_PER_OCTAVE + part) << (octave - 1);
}

void histogram_clear(struct histogram *h)
{
	for (uint64_t left = h->octaves; left != 0; left &= left - 1)
		memset(&h->bucket[first_bucket(left)], 0,
		       BUCKETS_PER_OCTAVE * sizeof(h->bucket[0]));
	h->octaves = h->count = 0;
}

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t t = *a;

	*a = *b;
	*b = t;
}

/* Move the values of one bucket to the front. Returns their number. */
static uint32_t gather(uint64_t *values, uint32_t known, uint32_t bucket)
{
	uint32_t in = 0;

	for (uint32_t i = 0; i < known; i++)
		if (bucket_of(values[i]) == bucket)
			swap(&values[in++], &values[i]);
	return in;
}

/*
 * The k-th smallest (from 0) of n values: C. A. R. Hoare, "Algorithm 65: Find", 1961. In place,
 * because a limiter allocates nothing while it runs.
 */
static uint64_t select_kth(uint64_t *values, uint32_t n, uint32_t k)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, want = k;

	while (low < high) {
		uint64_t pivot = values[low + (high - low) / 2];
		ptrdiff_t i = low, j = high;

		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (pivot < values[j])
				j--;
			if (i <= j)
				swap(&values[i++], &values[j--]);
		}
		if (want <= j)
			high = j;
		else if (want >= i)
			low = i;
		else
			break;
	}
	return values[want];
}

/* The bucket that contains the rank. *below is the number of latencies in lower buckets. */
static uint32_t bucket_at_rank(const struct histogram *h, uint64_t rank, uint64_t *below)
{
	uint32_t bucket = 0;

	*below = 0;
	for (uint64_t left = h->octaves; left != 0; left &= left - 1) {
		const uint32_t first = first_bucket(left);

		for (bucket = first; bucket < first + BUCKETS_PER_OCTAVE; bucket++) {
			if (*below + h->bucket[bucket] >= rank)
				return bucket;
			*below += h->bucket[bucket];
		}
	}
	return bucket;
}

double histogram_at_rank(const struct histogram *h, uint64_t rank, uint64_t *values, uint32_t known)
{
	uint64_t below;
	const uint32_t bucket = bucket_at_rank(h, rank, &below);
	const uint32_t in = gather(values, known, bucket);
	double floor, width;

	if (in > 0 && in >= h->bucket[bucket])
		return (double)select_kth(values, in, (uint32_t)(rank - below - 1) % in);

	floor = (double)bucket_floor(bucket);
	width = (double)bucket_floor(bucket + 1) - floor;
	return floor + width * ((double)(rank - below) - 0.5) / (double)h->bucket[bucket];
}
