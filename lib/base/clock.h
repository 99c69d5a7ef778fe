/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC, which Linux reads without a system call. Inline, because admitting and releasing
 * a call takes little longer than reading the clock twice.
 */
#ifndef WEIR_LIB_CLOCK_H
#define WEIR_LIB_CLOCK_H

#include <time.h>

#include <weir/base.h>

static inline weir_time clock_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (weir_time)now.tv_sec * WEIR_S + (weir_time)now.tv_nsec;
}

#endif
