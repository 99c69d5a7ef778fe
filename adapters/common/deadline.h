/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a wait.
 */
#ifndef ADAPTERS_DEADLINE_H
#define ADAPTERS_DEADLINE_H

#include <weir/base.h>

/* Now plus wait, which may be WEIR_FOREVER. */
static inline weir_time deadline_after(weir_dur wait)
{
	const weir_time now = weir_now();

	return wait < WEIR_FOREVER - now ? now + wait : WEIR_FOREVER;
}

#endif
