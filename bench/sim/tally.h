/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.h - what is counted over a stretch of virtual time.
 *
 * Each event counts when it happens: a call that arrives in one phase and ends in the next is
 * offered in the first and served in the second. The latency of a call that timed out is the
 * timeout, since that is how long its caller waited.
 */
#ifndef TALLY_H
#define TALLY_H

#include <weir/base.h>

/* Latency buckets: 32 for each power of two, 3 % wide, from 1 us to 18 minutes. */
#define TALLY_BUCKETS (30 * 32)

struct tally {
	weir_dur length;
	uint64_t offered, admitted, rejected;
	uint64_t good;                         /* served within the deadline */
	uint64_t late;                         /* served after the deadline */
	uint64_t timed_out, cancelled, failed; /* given up by the client; failed, or sent back */
	uint64_t waits;                        /* calls that were served or timed out */
	double latency_sum;                    /* of these, in nanoseconds */

	/* Summed over all limiters. */
	double limit_area;    /* limit times nanoseconds */
	double inflight_area; /* calls in flight times nanoseconds */
	uint64_t limit_last;
	uint32_t inflight_max;

	uint32_t latencies[TALLY_BUCKETS];
};

/* inflight includes the admitted call. */
void tally_admitted(struct tally *tally, uint32_t inflight);
void tally_served(struct tally *tally, weir_dur latency, bool in_time);
void tally_timed_out(struct tally *tally, weir_dur latency);

/* Add a later tally to sum. */
void tally_add(struct tally *sum, const struct tally *tally);

double tally_per_second(const struct tally *tally, uint64_t count);
double tally_rejected_share(const struct tally *tally); /* of calls offered, 0 to 1 */
double tally_limit_mean(const struct tally *tally);     /* over time */
double tally_inflight_mean(const struct tally *tally);  /* over time */

/* Of calls that were served or timed out, in nanoseconds; 0 if there were none. */
double tally_latency_mean(const struct tally *tally);
double tally_latency_quantile(const struct tally *tally, double q);

#endif
