/*
 * alloc.h - counts what a stretch of code allocates on the heap.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the calling thread's allocations count. No thread's do at first. */
void alloc_watch(bool on);

/* Of all threads, while they were watched. */
uint64_t alloc_count(void);

/* Whether an allocation is noticed at all: else a count of zero would prove nothing. */
bool alloc_noticed(void);

#endif
