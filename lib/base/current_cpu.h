/*
 * The CPU that runs this, if it is the same by the time anybody knows.
 *
 * The kernel keeps it up to date in memory of the thread (restartable sequences), and glibc says
 * where; sched_getcpu() reads it there too. As it stands between a call and its permit, it
 * is read in place: three calls less, a tenth of what a pair costs.
 */
#ifndef WEIR_LIB_CURRENT_CPU_H
#define WEIR_LIB_CURRENT_CPU_H

#include <sched.h>
#include <stdint.h>

#include "lib/base/layout.h"

/* One inside the other: calling what another libc does not define is an error, not false. */
#if defined(__GLIBC__) && defined(__has_builtin)
#if __GLIBC_PREREQ(2, 35) && __has_builtin(__builtin_thread_pointer)
#define CPU_IN_MEMORY
#include <sys/rseq.h>
#endif
#endif

/* A sandbox may forbid the call: then all threads seem to run on one, the last. */
static inline uint32_t current_cpu(void)
{
#ifdef CPU_IN_MEMORY
	const char *self = __builtin_thread_pointer();
	const struct rseq *area = (const struct rseq *)(const void *)(self + __rseq_offset);

	if (LIKELY(__rseq_size != 0))
		return *(const volatile uint32_t *)&area->cpu_id;
#endif
	return (uint32_t)sched_getcpu();
}

#endif
