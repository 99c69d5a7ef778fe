/*
 * CLOCK_MONOTONIC, which Linux reads without a system call.
 */

#include <time.h>

#include <weir/base.h>

weir_time weir_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (weir_time)now.tv_sec * WEIR_S + (weir_time)now.tv_nsec;
}

uint32_t weir_version(void)
{
	return WEIR_VERSION_HEX;
}
