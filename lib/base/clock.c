/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public clock and version.
 */

#include "lib/base/clock.h"

weir_time weir_now(void)
{
	return clock_monotonic();
}

uint32_t weir_version(void)
{
	return WEIR_VERSION_HEX;
}
