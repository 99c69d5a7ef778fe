/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the explored code gets in place of the system: parks, mutexes, threads, the clock, the CPU
 * and the heap. The functions have the names of those that they replace.
 */
#ifndef WEIR_TESTS_INTERLEAVE_SYSTEM_H
#define WEIR_TESTS_INTERLEAVE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* Before each run. */
void system_reset(void);

/* A thread has died: it leaves its robust mutexes to the others. */
void system_died(unsigned thread);

/* A plain access, and an atomic one: memory that was freed must not be accessed. */
void system_access(void *address, size_t size, bool writes, const void *pc);
void system_touch(void *address, size_t size, const void *pc);

#endif
