/*
 * An errand: work that many threads may ask for and one at a time does, with
 * nobody waiting for it.
 *
 *   bits  0..31  askings that have not been answered; 0: nobody is at it
 *   bits 32..63  whose process is at it (lib/layout.h)
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ------------------------------------------
 * pending  begin: CAS, +1     acq_rel  each other: what one who does it leaves
 * pending  end: -n            acq_rel  behind, and what was done before each asking,
 *                                      passes on to whoever does it next
 * pending  inherit: CAS       acq_rel  the same, but for what its dead owner had in hand
 *
 * The thread that raises pending from zero does the errand, and goes on until it has
 * brought pending back to zero; all others leave at once. So what was done before an
 * asking is seen by a run that begins after it. Its process may die in the middle: then who finds
 * that out inherits the errand, with all that was asked, and mends what lies about first.
 */
#ifndef WEIR_LIB_ERRAND_H
#define WEIR_LIB_ERRAND_H

#include <stdbool.h>

#include "lib/layout.h"

#define ERRAND_OWNER_SHIFT 32

static inline uint32_t errand_asked(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t errand_owner(uint64_t word)
{
	return (uint32_t)(word >> ERRAND_OWNER_SHIFT);
}

/* Ask. True: it is for the caller to do; *asked is for errand_done(). */
static inline bool errand_begin(_Atomic uint64_t *pending, uint32_t owner, uint32_t *asked)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed), next;

	*asked = 1;
	do {
		next = errand_asked(word) == 0 ? (uint64_t)owner << ERRAND_OWNER_SHIFT | 1
					       : word + 1;
	} while (!atomic_compare_exchange_weak_explicit(pending, &word, next, memory_order_acq_rel,
							memory_order_relaxed));
	return errand_asked(word) == 0;
}

/* It has been done. False: others have asked meanwhile, so do it again. */
static inline bool errand_done(_Atomic uint64_t *pending, uint32_t *asked)
{
	uint32_t before = errand_asked(
		atomic_fetch_sub_explicit(pending, *asked, memory_order_acq_rel));

	if (before == *asked)
		return true;
	*asked = before - *asked;
	return false;
}

/* Whether somebody is at it. Acquire: what he has done, if not. */
static inline bool errand_pending(const _Atomic uint64_t *pending)
{
	return errand_asked(atomic_load_explicit(pending, memory_order_acquire)) != 0;
}

/* If it is that owner's, who is dead, it is the caller's from now on: as errand_begin(). */
static inline bool errand_inherit(_Atomic uint64_t *pending, uint32_t dead, uint32_t owner,
				  uint32_t *asked)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);

	do {
		if (errand_asked(word) == 0 || errand_owner(word) != dead)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		pending, &word, (uint64_t)owner << ERRAND_OWNER_SHIFT | errand_asked(word),
		memory_order_acq_rel, memory_order_relaxed));
	*asked = errand_asked(word);
	return true;
}

#endif
