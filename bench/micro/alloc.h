/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.h - count the heap allocations of a section of code.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* Set whether the calling thread's allocations count. They do not at first. */
void alloc_watch(bool on);

/* Allocations of all threads while they were watched. */
uint64_t alloc_count(void);

/* Whether allocations are counted at all; otherwise a count of zero would prove nothing. */
bool alloc_noticed(void);

#endif
