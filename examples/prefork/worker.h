/* SPDX-License-Identifier: BSD-2-Clause */
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
	unsigned slot;
	const char *name;                 /* of the shared limiter */
	const struct weir_config *config; /* its configuration */
	weir_dur wait;                    /* the longest wait of a request for a permit */
};

/* Run in a child, with SIGTERM blocked, until SIGTERM. Returns the exit status. */
int worker_run(struct worker *worker);

#endif
