/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.h - the parent's view of its workers: shared memory that they inherit and write to.
 *
 * The limiter does not need it. The parent uses it to report what died with a worker, and tests use
 * it to check that all workers together never exceed the limit.
 *
 * A worker counts in its own slot first, and then in the sum, so the parent can subtract what a
 * dead worker had in progress. If the worker dies in between, the sum is one too low, never too
 * high.
 */
#ifndef PREFORK_BOARD_H
#define PREFORK_BOARD_H

#include <stdatomic.h>
#include <sys/types.h>

#define WORKERS_MAX 256

struct slot {
	atomic_uint connections; /* open ones */
	atomic_uint at_work;     /* requests with a permit */
};

struct board {
	atomic_uint at_work;  /* of all workers */
	atomic_uint most;     /* the maximum so far */
	atomic_bool removing; /* the sum still includes dead workers; their permits are recovered */
	struct slot slots[WORKERS_MAX];
};

/* Shared with children. NULL: out of memory. */
struct board *board_create(void);

/* A worker starts, or ends, a request with a permit. */
void board_begin(struct board *board, unsigned slot);
void board_end(struct board *board, unsigned slot);

/* Subtract a dead worker's slot. */
void board_clear(struct board *board, unsigned slot);

#endif
