/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet/store/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Without FUTEX_PRIVATE_FLAG, as it is between processes. */
void futex_sleep(const _Atomic uint32_t *word, uint32_t seen, weir_time until)
{
	const struct timespec end = {
		.tv_sec = (time_t)(until / WEIR_S),
		.tv_nsec = (long)(until % WEIR_S),
	};

	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, &end, NULL, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(_Atomic uint32_t *word)
{
	const int before = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = before;
}
