/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.c - replace the C library's allocator for all libraries of the process: a function defined
 * in the program takes precedence. glibc also exports its allocator under a second name, so these
 * functions only count.
 */
#include "alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
int posix_memalign(void **memory, size_t alignment, size_t size);

static _Atomic uint64_t allocations;
static _Thread_local bool watched;

void alloc_watch(bool on)
{
	watched = on;
}

uint64_t alloc_count(void)
{
	return atomic_load_explicit(&allocations, memory_order_relaxed);
}

bool alloc_noticed(void)
{
	uint64_t before = alloc_count();
	void *volatile memory;
	bool noticed;

	alloc_watch(true);
	memory = malloc(1);
	alloc_watch(false);
	free(memory);
	noticed = alloc_count() == before + 1;
	atomic_store_explicit(&allocations, before, memory_order_relaxed);
	return noticed;
}

static void note(void)
{
	if (watched)
		atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
	note();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	note();
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	note();
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	note();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	note();
	*memory = __libc_memalign(alignment, size);
	return *memory == NULL ? ENOMEM : 0;
}
