/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the capacity of a processor ten times per second, for a plot. It has a thread of its own,
 * so that it also writes while the other threads wait.
 */
#ifndef INGEST_STATS_H
#define INGEST_STATS_H

#include "capacity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct stats {
	FILE *file; /* NULL: no thread */
	const struct capacity *capacity;
	pthread_t thread;
	atomic_bool ending;
};

/* 0; -1 on failure, after an error message. */
int stats_start(struct stats *stats, const char *path, const struct capacity *capacity);
void stats_end(struct stats *stats);

#endif
