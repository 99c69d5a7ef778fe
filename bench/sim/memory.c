#include "memory.h"

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

void *memory_new(size_t size)
{
	return must(calloc(1, size > 0 ? size : 1));
}

void *memory_grow(void *memory, size_t size)
{
	return must(realloc(memory, size));
}

char *memory_copy(const char *text)
{
	return must(strdup(text));
}
