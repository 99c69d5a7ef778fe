/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * team.h - run one loop in several threads at once, each pinned to a processor.
 */
#ifndef TEAM_H
#define TEAM_H

#include <stdbool.h>
#include <stdint.h>

#define TEAM_MAX 64

struct job {
	/* Called by each member with its number; the results are summed. */
	uint64_t (*run)(void *arg, unsigned member);
	void *arg;
	bool allocates; /* whether work may allocate */
};

struct outcome {
	double ns;    /* from the common start, mean over the members */
	uint64_t sum; /* of the results */
};

/* Number of processors that this process may use. */
unsigned team_processors(void);

struct outcome team_run(const struct job *job, unsigned members);

#endif
