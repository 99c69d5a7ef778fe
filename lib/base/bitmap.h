/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of free slots, from which threads take a slot and to which they return it.
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ----------------------------------------
 * bits[i]  take: CAS, bit 0   acquire  put: what the slot's last owner did
 *                                      is visible to the next
 * bits[i]  put: or            release  take, bitmap_taken()
 *
 * A set bit is a free slot. There are no links between slots, so there is no list whose head could
 * change and change back meanwhile (no ABA problem). take() fails only after it has seen every word
 * without a free slot.
 *
 * In shared memory a bit beyond the last slot may be set. It is never taken.
 */
#ifndef WEIR_LIB_BITMAP_H
#define WEIR_LIB_BITMAP_H

#include "lib/base/layout.h"

#define NO_SLOT UINT32_MAX

static inline uint32_t bitmap_words(uint32_t slots)
{
	return (slots + 63) / 64;
}

/* The bits of word i that stand for slots. */
static inline uint64_t bitmap_mask(uint32_t slots, uint32_t i)
{
	const uint32_t left = slots - i * 64;

	return left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
}

static inline void bitmap_init(_Atomic uint64_t *bits, uint32_t slots)
{
	for (uint32_t i = 0; i < bitmap_words(slots); i++)
		atomic_init(&bits[i], bitmap_mask(slots, i));
}

/* The slots of word k that are not free. */
static inline uint64_t bitmap_taken(const _Atomic uint64_t *bits, uint32_t slots, uint32_t k)
{
	const uint32_t left = slots - k * 64;
	const uint64_t all = left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);

	return all & ~atomic_load_explicit(&bits[k], memory_order_acquire);
}

/* Take a free slot. Returns its number or NO_SLOT. The hint spreads threads over the words. */
static inline uint32_t bitmap_take(_Atomic uint64_t *bits, uint32_t slots, uint32_t hint)
{
	uint32_t words = bitmap_words(slots);

	for (uint32_t k = 0; k < words; k++) {
		const uint32_t i = (hint + k) % words;
		const uint64_t mask = bitmap_mask(slots, i);
		uint64_t word = atomic_load_explicit(&bits[i], memory_order_relaxed);

		while ((word & mask) != 0) {
			const uint32_t bit = (uint32_t)__builtin_ctzll(word & mask);

			if (atomic_compare_exchange_weak_explicit(
				    &bits[i], &word, word & ~(UINT64_C(1) << bit),
				    memory_order_acquire, memory_order_relaxed))
				return i * 64 + bit;
		}
	}
	return NO_SLOT;
}

static inline void bitmap_put(_Atomic uint64_t *bits, uint32_t slot)
{
	atomic_fetch_or_explicit(&bits[slot / 64], UINT64_C(1) << slot % 64, memory_order_release);
}

#endif
