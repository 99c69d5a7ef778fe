/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buckets and ranks: every latency is in the bucket that covers it, and the value at a rank is
 * exact, or off by at most the width of a bucket.
 */

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/sample/histogram.h"

Test(histogram, every_latency_is_in_its_bucket)
{
	for (uint64_t rtt = 0; rtt < UINT64_C(1) << MAX_OCTAVE; rtt += 1 + rtt / 97) {
		uint32_t bucket = bucket_of(rtt);

		cr_assert(bucket < BUCKETS);
		cr_assert(bucket_floor(bucket) <= rtt, "%lu", (unsigned long)rtt);
		cr_assert(rtt < bucket_floor(bucket + 1), "%lu", (unsigned long)rtt);
	}
	cr_assert_eq(bucket_of(UINT64_MAX), BUCKETS - 1);
	cr_assert_eq(bucket_of((UINT64_C(1) << MAX_OCTAVE) - 1), BUCKETS - 1);
}

Test(histogram, a_bucket_is_at_most_a_sixteenth_of_its_values_wide)
{
	for (uint32_t bucket = BUCKETS_PER_OCTAVE; bucket < BUCKETS; bucket++) {
		uint64_t floor = bucket_floor(bucket);

		cr_assert((bucket_floor(bucket + 1) - floor) * BUCKETS_PER_OCTAVE <= floor);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#define VALUES 500

static void fill(uint64_t *values, struct histogram *h, unsigned spread)
{
	histogram_clear(h);
	for (int i = 0; i < VALUES; i++) {
		values[i] = 1 + (uint64_t)rand() % spread;
		histogram_add(h, bucket_of(values[i]), 1);
	}
}

Test(histogram, ranks_are_exact_if_all_values_are_known)
{
	static uint64_t values[VALUES], sorted[VALUES];
	static struct histogram h;

	srand(7);
	for (unsigned spread = 1; spread < 100000000; spread *= 7) {
		fill(values, &h, spread);
		memcpy(sorted, values, sizeof(values));
		qsort(sorted, VALUES, sizeof(sorted[0]), by_value);
		for (uint32_t rank = 1; rank <= VALUES; rank++)
			cr_assert_eq(histogram_at_rank(&h, rank, values, VALUES),
				     (double)sorted[rank - 1]);
	}
}

Test(histogram, ranks_are_within_a_bucket_if_no_value_is_known)
{
	static uint64_t values[VALUES];
	static struct histogram h;

	srand(7);
	fill(values, &h, 100000000);
	qsort(values, VALUES, sizeof(values[0]), by_value);
	for (uint32_t rank = 1; rank <= VALUES; rank++) {
		double true_value = (double)values[rank - 1];
		double read = histogram_at_rank(&h, rank, values, 0);

		cr_assert(read > true_value * 15 / 16 && read < true_value * 17 / 16);
	}
}
