/*
 * CLOCK_MONOTONIC, which Linux reads without a system call. Inline, since a call is
 * admitted and released in little more time than reading it twice takes.
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
