/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clocks, and the version.
 */

#include "lib/base/clock.h"

weir_time weir_now(void)
{
	return clock_monotonic();
}

weir_time clock_real(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (weir_time)now.tv_sec * WEIR_S + (weir_time)now.tv_nsec;
}

/* The thread may be suspended between the readings: of several, the one in the shortest time is best. */
weir_time clock_zero(void)
{
	weir_time zero = 0, shortest = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		const weir_time before = clock_monotonic(), real = clock_real();
		const weir_time took = clock_monotonic() - before;

		if (took < shortest) {
			shortest = took;
			zero = real - (before + took / 2);
		}
	}
	return zero;
}

uint32_t weir_version(void)
{
	return WEIR_VERSION_HEX;
}
