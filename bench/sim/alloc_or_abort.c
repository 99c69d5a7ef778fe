/* SPDX-License-Identifier: BSD-2-Clause */
#include "alloc_or_abort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
	if (memory == NULL) {
		perror("memory");
		abort();
	}
	return memory;
}

void *alloc_or_abort(size_t size)
{
	return must(calloc(1, size > 0 ? size : 1));
}

void *realloc_or_abort(void *memory, size_t size)
{
	return must(realloc(memory, size));
}

char *strdup_or_abort(const char *text)
{
	return must(strdup(text));
}
