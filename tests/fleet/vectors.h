/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases published for other systems, or derived from these, by their ids. */
#ifndef WEIR_TESTS_FLEET_VECTORS_H
#define WEIR_TESTS_FLEET_VECTORS_H

#include <stddef.h>

#include "test_store.h"

/*
 * A case: run here, contained in another test, or not applicable. play is called once for each
 * store; it aborts the program on failure.
 */
struct vector {
	const char *id;
	void (*play)(const char *id, struct test_store *test_store);
	const char *in;   /* the file of the test that contains it */
	const char *note; /* how it differs here; for one that is not applicable: why */
};

struct family {
	const struct vector *rows;
	size_t count;
};

struct family vectors_allot(void);
struct family vectors_doorman(void);
struct family vectors_partitions(void);
struct family vectors_others(void);

#endif
