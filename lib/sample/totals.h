/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Totals: what a limiter has counted over its life. A stripe's counters only grow. Their sums are
 * read by snapshots, and by the owner of a window for what has happened since the last one.
 *
 * word      written by                    order    pairs with
 * --------  ----------------------------  -------  -----------------------------------
 * total[i]  anyone: add                   release  sampler_total(): a call that is counted has
 *           collect: store, of COLLECTED           left the gate
 */
#ifndef WEIR_LIB_TOTALS_H
#define WEIR_LIB_TOTALS_H

#include "lib/sample/sampling.h"

static inline void stripe_count(struct stripe *stripe, enum total which)
{
	atomic_fetch_add_explicit(&stripe->total[which], 1, memory_order_release);
}

/* Samples with a latency were collected. Only the window's owner writes this total. */
static inline void stripe_collected(struct stripe *stripe, uint64_t count)
{
	_Atomic uint64_t *total = &stripe->total[TOTAL_COLLECTED];

	/* There is one writer, so a load and a store are enough. */
	atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + count,
			      memory_order_release);
}

/* The sum of one total over the stripes. */
uint64_t sampler_total(const struct sampling *s, enum total which);

/* How much that sum has grown since it was *seen, which becomes the sum. */
uint64_t sampler_total_since(const struct sampling *s, enum total which, uint64_t *seen);

#endif
