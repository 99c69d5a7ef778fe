/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_or_abort.h - allocation that ends the program when memory runs out: a simulation that lost
 * some of its calls would be of no use.
 */
#ifndef ALLOC_OR_ABORT_H
#define ALLOC_OR_ABORT_H

#include <stddef.h>

void *alloc_or_abort(size_t size); /* zeroed */
void *realloc_or_abort(void *memory, size_t size);
char *strdup_or_abort(const char *text);

#endif
