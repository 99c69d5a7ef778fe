/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that share a limiter, one for each thread of a scene. The block and the processes' own
 * pages are static memory, and what the library asks the system of a process is answered here.
 */
#ifndef WEIR_TESTS_INTERLEAVE_PROCESSES_H
#define WEIR_TESTS_INTERLEAVE_PROCESSES_H

#include "lib/shm/shm.h"

#define PROCESSES 4

/* The handles, on one block that all of them have mapped. */
extern struct weir_limiter *process[PROCESSES];

/*
 * For setup: make a limiter with leases for that many members, and attach them; those above the
 * number of threads have no thread. As long as these two stay the same, the block and the handles
 * are a copy of the first ones.
 */
void processes_begin(const struct weir_config *config, uint32_t members);

/* For setup: a process without a thread has died. */
void processes_died(unsigned number);

#endif
