/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of a run, to be printed as a table with a column for each thread.
 */
#ifndef WEIR_TESTS_INTERLEAVE_TRACE_H
#define WEIR_TESTS_INTERLEAVE_TRACE_H

#include <stdint.h>

struct step {
	unsigned thread;
	const char *what;             /* "load", "CAS", "sleeps", ... */
	const volatile void *address; /* NULL: none */
	uint64_t before, after;       /* values; after is only shown of steps that write */
	const char *note;             /* "stale", "acquire", ...; may be NULL */
	const void *pc;
	int writes;
};

void trace_reset(void);
void trace_add(const struct step *step);
void trace_print(void);
void trace_name(const volatile void *address, const char *text);

#endif
