/*
 * worker.h - a worker process: HTTP on the socket that all workers share.
 */
#ifndef PREFORK_WORKER_H
#define PREFORK_WORKER_H

#include <weir/weir.h>

#include "../httpd/store.h"
#include "board.h"

struct worker {
	int listener;
	struct store *store;
	struct board *board;
	unsigned place;
	const char *name;                 /* of the shared limiter */
	const struct weir_config *config; /* and what it was made with */
	weir_dur wait;                    /* that a request may wait for a permit */
};

/* In a child, with SIGTERM blocked: serve until it comes. The exit status. */
int worker_run(struct worker *worker);

#endif
