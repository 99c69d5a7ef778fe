/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passing the window from owner to owner. window_owner.h has the ledger.
 */

#include "lib/sample/window_owner.h"

void window_let_go(const struct sampling *s, uint64_t due)
{
	window_set_closing(s, 0);
	/* This ends the ownership. */
	atomic_store_explicit(&s->sampler->due, due, memory_order_release);
}

void sampler_open(const struct sampling *s, weir_time now)
{
	s->sampler->start = now;
	window_let_go(s, s->config.each_sample ? DUE_AT_ONCE : (now + s->sampler->length) << 1);
}

bool sampler_recover(const struct sampling *s, uint32_t dead)
{
	uint64_t due = window_busy(dead);

	return atomic_compare_exchange_strong_explicit(&s->sampler->due, &due,
						       window_busy(s->owner), memory_order_acquire,
						       memory_order_relaxed) &&
	       window_is_ours(s);
}

bool sampler_hold(const struct sampling *s, uint64_t *due, uint32_t *owner)
{
	struct sampler *sampler = s->sampler;

	*due = atomic_load_explicit(&sampler->due, memory_order_relaxed);
	if (atomic_load_explicit(s->closing, memory_order_relaxed) == window_thread()) {
		*due |= DUE_BUSY; /* even if another process has stored that it has no owner */
		return true;
	}
	do {
		*owner = (uint32_t)(*due >> 1);
		if ((*due & DUE_BUSY) != 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&sampler->due, due, window_busy(s->owner),
							memory_order_acquire,
							memory_order_relaxed));
	if (!window_is_ours(s)) {
		*owner = s->owner;
		return false;
	}
	window_set_closing(s, window_thread());
	return true;
}

void sampler_let_go(const struct sampling *s, uint64_t due)
{
	if ((due & DUE_BUSY) != 0)
		return; /* it was this thread's before */
	window_let_go(s, due);
}
