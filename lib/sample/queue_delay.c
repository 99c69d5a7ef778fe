/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counting delays of the backend's queue, and collecting them. queue_delay.h has the ledger.
 */

#include "lib/sample/queue_delay.h"

#include "lib/sample/take.h"

/*
 * The number of a stripe's queue delays, and the lowest of them in nanoseconds. A delay above
 * QUEUE_DELAY_MAX (18 minutes) counts as that. The number stops at DELAYS_MAX (16 million).
 */
#define QUEUE_BITS      40
#define QUEUE_DELAY_MAX ((UINT64_C(1) << QUEUE_BITS) - 1)
#define ONE_DELAY       (UINT64_C(1) << QUEUE_BITS)
#define DELAYS_MAX      (UINT64_MAX >> QUEUE_BITS)

/* The word after one more delay. */
static uint64_t queue_after(uint64_t word, uint64_t delay)
{
	uint64_t count = word >> QUEUE_BITS, min = word & QUEUE_DELAY_MAX;

	if (count == 0 || delay < min)
		min = delay;
	return (count < DELAYS_MAX ? count + 1 : count) << QUEUE_BITS | min;
}

void stripe_queued(struct stripe *stripe, uint64_t delay)
{
	uint64_t word = atomic_load_explicit(&stripe->queue, memory_order_relaxed);

	if (delay > QUEUE_DELAY_MAX)
		delay = QUEUE_DELAY_MAX;
	while (!atomic_compare_exchange_weak_explicit(&stripe->queue, &word,
						      queue_after(word, delay),
						      memory_order_relaxed, memory_order_relaxed))
		;
}

void sampler_collect_queue(const struct sampling *s, struct weir_window *w)
{
	uint64_t count = 0, min = QUEUE_DELAY_MAX;

	for (uint32_t i = 0; i < s->config.stripes; i++) {
		uint64_t word = take(&s->stripes[i].queue, 0);

		if (word == 0)
			continue;
		count += word >> QUEUE_BITS;
		min = (word & QUEUE_DELAY_MAX) < min ? word & QUEUE_DELAY_MAX : min;
	}
	w->queued = narrow(count);
	w->queue_min = count > 0 ? (double)min : 0;
}
