/*
 * What is published of other systems, and what follows from it: each case by its id.
 */
#ifndef WEIR_TESTS_FLEET_VECTORS_H
#define WEIR_TESTS_FLEET_VECTORS_H

#include <stddef.h>

#include "test_store.h"

/*
 * A case: played here, or in another test, or without a meaning here. play is asked once for each
 * store, id by id; what it does not find as it should be ends the program.
 */
struct vector {
	const char *id;
	void (*play)(const char *id, struct test_store *test_store);
	const char *in;   /* the file of the test that has it */
	const char *note; /* what is other here than there; of what has no meaning: why */
};

struct family {
	const struct vector *rows;
	size_t count;
};

struct family vectors_allot(void);
struct family vectors_doorman(void);
struct family vectors_parts(void);
struct family vectors_others(void);

#endif
