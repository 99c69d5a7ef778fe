/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking what calls have put into a word. The word is exchanged with its empty value. Most words of
 * most windows are empty, and a load costs less than an exchange. Acquire is needed for words that
 * count samples; other numbers would do without.
 */
#ifndef WEIR_LIB_TAKE_H
#define WEIR_LIB_TAKE_H

#include <stdatomic.h>
#include <stdint.h>

static inline uint64_t take(_Atomic uint64_t *word, uint64_t none)
{
	if (atomic_load_explicit(word, memory_order_relaxed) == none)
		return none;
	return atomic_exchange_explicit(word, none, memory_order_acquire);
}

static inline uint32_t take_32(_Atomic uint32_t *word)
{
	if (atomic_load_explicit(word, memory_order_relaxed) == 0)
		return 0;
	return atomic_exchange_explicit(word, 0, memory_order_relaxed);
}

/* A count, as a field of a window has it. */
static inline uint32_t narrow(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

#endif
