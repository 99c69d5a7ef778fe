/*
 * A set of free places, from which threads take and to which they return.
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ----------------------------------------
 * bits[i]  take: CAS, bit 0   acquire  put: what the last owner of the place did
 *                                      is visible to the next
 * bits[i]  put: or            release  take, and a look at what is taken
 *
 * A set bit is a free place. Bits are flipped, never chained, so there is no
 * list whose head could have come back in between (no ABA). take() fails only
 * after it has seen every word without a free place.
 *
 * In shared memory a bit may be set that stands for no place. It never yields one.
 */
#ifndef WEIR_LIB_BITMAP_H
#define WEIR_LIB_BITMAP_H

#include "lib/base/layout.h"

#define NO_SLOT UINT32_MAX

static inline uint32_t bitmap_words(uint32_t places)
{
	return (places + 63) / 64;
}

/* The bits of word i that stand for places. */
static inline uint64_t bitmap_mask(uint32_t places, uint32_t i)
{
	const uint32_t left = places - i * 64;

	return left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
}

static inline void bitmap_init(_Atomic uint64_t *bits, uint32_t places)
{
	for (uint32_t i = 0; i < bitmap_words(places); i++)
		atomic_init(&bits[i], bitmap_mask(places, i));
}

/* The places of word k that are not free. */
static inline uint64_t bitmap_taken(const _Atomic uint64_t *bits, uint32_t places, uint32_t k)
{
	const uint32_t left = places - k * 64;
	const uint64_t all = left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);

	return all & ~atomic_load_explicit(&bits[k], memory_order_acquire);
}

/* A place of ours, or NO_SLOT. The hint spreads threads over the words. */
static inline uint32_t bitmap_take(_Atomic uint64_t *bits, uint32_t places, uint32_t hint)
{
	uint32_t words = bitmap_words(places);

	for (uint32_t k = 0; k < words; k++) {
		const uint32_t i = (hint + k) % words;
		const uint64_t mask = bitmap_mask(places, i);
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

static inline void bitmap_put(_Atomic uint64_t *bits, uint32_t place)
{
	atomic_fetch_or_explicit(&bits[place / 64], UINT64_C(1) << place % 64,
				 memory_order_release);
}

#endif
