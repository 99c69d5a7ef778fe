/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC, which Linux reads without a system call. Inline, because admitting and releasing
 * a call takes little longer than reading the clock twice. And CLOCK_REALTIME: machines that
 * synchronise their clocks agree on it.
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

/* Nanoseconds since 1970, by the system's clock. It may be set, so it can jump. */
weir_time clock_real(void);

/* What clock_real() was when clock_monotonic() was 0. */
weir_time clock_zero(void);

#endif
