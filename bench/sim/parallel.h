/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parallel.h - run independent pieces of work on all processors.
 */
#ifndef PARALLEL_H
#define PARALLEL_H

#include <stddef.h>

struct parallel {
	void (*work)(void *arg, size_t index); /* called once for each index, in any thread */
	void *arg;
	size_t count;
	unsigned threads; /* 0: one per processor */
	const char
		*title; /* shown with progress on standard error if that is a terminal; or NULL */
};

/* Returns when all work is done. */
void parallel_run(const struct parallel *job);

#endif
