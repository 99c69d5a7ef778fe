/*
 * An errand: work that many threads may ask for and one at a time does, with
 * nobody waiting for it.
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ------------------------------------------
 * pending  begin: +1          acq_rel  each other: what one who does it leaves
 * pending  end: -n            acq_rel  behind, and what was done before each asking,
 *                                      passes on to whoever does it next
 *
 * The thread that raises pending from zero does the errand, and goes on until it has
 * brought pending back to zero; all others leave at once. So what was done before an
 * asking is seen by a run that begins after it.
 */
#ifndef WEIR_LIB_ERRAND_H
#define WEIR_LIB_ERRAND_H

#include <stdbool.h>

#include "lib/layout.h"

/* Ask. True: it is for the caller to do; *asked is for errand_done(). */
static inline bool errand_begin(_Atomic uint32_t *pending, uint32_t *asked)
{
	*asked = 1;
	return atomic_fetch_add_explicit(pending, 1, memory_order_acq_rel) == 0;
}

/* It has been done. False: others have asked meanwhile, so do it again. */
static inline bool errand_done(_Atomic uint32_t *pending, uint32_t *asked)
{
	uint32_t before = atomic_fetch_sub_explicit(pending, *asked, memory_order_acq_rel);

	if (before == *asked)
		return true;
	*asked = before - *asked;
	return false;
}

#endif
