/*
 * What a processor may use, written down ten times a second, for a plot. By a thread of its own:
 * how things stand while the others wait for something is what is wanted.
 */
#ifndef INGEST_STATS_H
#define INGEST_STATS_H

#include "capacity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct stats {
	FILE *file; /* NULL: there is no thread */
	const struct capacity *capacity;
	pthread_t thread;
	atomic_bool ending;
};

/* 0; -1 after saying why not. */
int stats_start(struct stats *stats, const char *path, const struct capacity *capacity);
void stats_end(struct stats *stats);

#endif
