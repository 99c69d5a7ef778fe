/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz.h - common parts of all fuzzers. Each is a libFuzzer program: see CMakeLists.txt. */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A violated condition is found by a sanitizer or by this. */
static inline void must(bool good)
{
	if (!good)
		abort();
}

static inline void *allocate(size_t size)
{
	void *memory = calloc(1, size > 0 ? size : 1);

	must(memory != NULL);
	return memory;
}

/* The bytes as a text of its own, so that a read past its end is detected. NULL: it is too long. */
static inline char *text_of(const uint8_t *data, size_t size, size_t max)
{
	char *text;

	if (size > max)
		return NULL;
	text = allocate(size + 1);
	memcpy(text, data, size);
	return text;
}

/* Whether it is a sentence for a person; it may quote the input, and be cut. */
static inline bool is_sentence(const char *why)
{
	return why[0] != '\0';
}

#endif
