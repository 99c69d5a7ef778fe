/*
 * board.h - what the parent knows of its workers: a page that they inherit and write on.
 *
 * The limiter needs none of it. It is how the parent tells what died with a worker, and how it is
 * shown that all workers together never have more at work than the limit.
 *
 * A worker counts on its own place first and on the sum after it, so what a dead one had at work
 * can be taken off the sum. If it dies in between, the sum is one too low, and never too high.
 */
#ifndef PREFORK_BOARD_H
#define PREFORK_BOARD_H

#include <stdatomic.h>
#include <sys/types.h>

#define WORKERS_MAX 256

struct place {
	atomic_uint connections; /* open ones */
	atomic_uint at_work;     /* requests that hold a permit */
};

struct board {
	atomic_uint at_work; /* of all workers */
	atomic_uint most;    /* that there ever were */
	atomic_bool burying; /* the sum has the dead in it, whose permits are given back */
	struct place places[WORKERS_MAX];
};

/* Shared with children. NULL: there is no memory. */
struct board *board_create(void);

/* A worker begins, and ends, a request that has a permit. */
void board_begin(struct board *board, unsigned place);
void board_end(struct board *board, unsigned place);

/* Take the dead worker of that place off. */
void board_clear(struct board *board, unsigned place);

#endif
