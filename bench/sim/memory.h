/*
 * memory.h - memory or the end: a simulation has no use for half its calls.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

void *memory_new(size_t size); /* zeroed */
void *memory_grow(void *memory, size_t size);
char *memory_copy(const char *text);

#endif
