/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meter.h - a store that counts the requests to another one, and their bytes of keys and values.
 */
#ifndef METER_H
#define METER_H

#include <stdatomic.h>
#include <weir/fleet.h>

/* Requests of all members together. */
struct count {
	_Atomic uint64_t keeps, reads, commits, conflicts;
	_Atomic uint64_t sent, got; /* bytes of keys and values */
};

struct meter {
	struct weir_store store; /* must be the first member */
	struct weir_store *to;
	struct count *count;
	/* Called before each request; may be NULL. */
	void (*before)(void);
};

struct meter meter_of(struct weir_store *to, struct count *count, void (*before)(void));

void count_clear(struct count *count);

/* Exit with a message, unless error is 0 or memory is not NULL. */
void must_do(int error, const char *what, const char *why);
void *must(void *memory);

#endif
