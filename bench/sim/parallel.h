/*
 * parallel.h - many independent pieces of work on all processors.
 */
#ifndef PARALLEL_H
#define PARALLEL_H

#include <stddef.h>

struct parallel {
	void (*work)(void *arg, size_t index); /* each once, in any thread */
	void *arg;
	size_t count;
	unsigned threads;  /* 0: as many as there are processors */
	const char *title; /* of progress on standard error, if that is a terminal; or NULL */
};

/* Returns when all is done. */
void parallel_run(const struct parallel *job);

#endif
