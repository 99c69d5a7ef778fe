/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.c - sums and a histogram of latencies, so that a simulated hour takes no more memory than a
 * second.
 */
#include "tally.h"

#include <math.h>

#define SUB_BITS 5
#define SUB      (1u << SUB_BITS)
#define UNIT     1024 /* nanoseconds; the least latency that is resolved */

static unsigned bucket_of(weir_dur latency)
{
	uint64_t units = latency / (UNIT / SUB);
	unsigned octave, bucket;

	if (units < SUB)
		return 0;
	octave = 63u - (unsigned)__builtin_clzll(units) - SUB_BITS;
	bucket = octave * SUB + (unsigned)((units >> octave) - SUB);
	return bucket < TALLY_BUCKETS ? bucket : TALLY_BUCKETS - 1;
}

static double middle_of(unsigned bucket)
{
	double low = SUB + bucket % SUB;

	return ldexp((low + 0.5) * (double)UNIT / SUB, (int)(bucket / SUB));
}

static void add_latency(struct tally *tally, weir_dur latency)
{
	tally->waits++;
	tally->latency_sum += (double)latency;
	tally->latencies[bucket_of(latency)]++;
}

void tally_admitted(struct tally *tally, uint32_t inflight)
{
	tally->admitted++;
	if (inflight > tally->inflight_max)
		tally->inflight_max = inflight;
}

void tally_served(struct tally *tally, weir_dur latency, bool in_time)
{
	if (in_time)
		tally->good++;
	else
		tally->late++;
	add_latency(tally, latency);
}

void tally_timed_out(struct tally *tally, weir_dur latency)
{
	tally->timed_out++;
	add_latency(tally, latency);
}

void tally_add(struct tally *sum, const struct tally *tally)
{
	sum->length += tally->length;
	sum->offered += tally->offered;
	sum->admitted += tally->admitted;
	sum->rejected += tally->rejected;
	sum->good += tally->good;
	sum->late += tally->late;
	sum->timed_out += tally->timed_out;
	sum->cancelled += tally->cancelled;
	sum->failed += tally->failed;
	sum->waits += tally->waits;
	sum->latency_sum += tally->latency_sum;
	sum->limit_area += tally->limit_area;
	sum->inflight_area += tally->inflight_area;
	sum->limit_last = tally->limit_last;
	if (tally->inflight_max > sum->inflight_max)
		sum->inflight_max = tally->inflight_max;
	for (unsigned i = 0; i < TALLY_BUCKETS; i++)
		sum->latencies[i] += tally->latencies[i];
}

double tally_per_second(const struct tally *tally, uint64_t count)
{
	if (tally->length == 0)
		return 0;
	return (double)count * (double)WEIR_S / (double)tally->length;
}

double tally_rejected_share(const struct tally *tally)
{
	return tally->offered == 0 ? 0 : (double)tally->rejected / (double)tally->offered;
}

double tally_limit_mean(const struct tally *tally)
{
	return tally->length == 0 ? 0 : tally->limit_area / (double)tally->length;
}

double tally_inflight_mean(const struct tally *tally)
{
	return tally->length == 0 ? 0 : tally->inflight_area / (double)tally->length;
}

double tally_latency_mean(const struct tally *tally)
{
	return tally->waits == 0 ? 0 : tally->latency_sum / (double)tally->waits;
}

double tally_latency_quantile(const struct tally *tally, double q)
{
	double rank = q * (double)tally->waits;
	uint64_t seen = 0;

	if (tally->waits == 0)
		return 0;
	for (unsigned i = 0; i < TALLY_BUCKETS; i++) {
		seen += tally->latencies[i];
		if (seen != 0 && (double)seen >= rank)
			return middle_of(i);
	}
	return middle_of(TALLY_BUCKETS - 1);
}
