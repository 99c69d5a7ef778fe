/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of the stripes' totals. totals.h has the ledger.
 */

#include "lib/sample/totals.h"

uint64_t sampler_total(const struct sampling *s, enum total which)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->config.stripes; i++)
		sum += atomic_load_explicit(&s->stripes[i].total[which], memory_order_acquire);
	return sum;
}

uint64_t sampler_total_since(const struct sampling *s, enum total which, uint64_t *seen)
{
	uint64_t total = sampler_total(s, which), before = *seen;

	*seen = total;
	return total - before;
}
