/*
 * team.h - runs one loop in several threads at once, each on its processor.
 */
#ifndef TEAM_H
#define TEAM_H

#include <stdbool.h>
#include <stdint.h>

#define TEAM_MAX 64

struct job {
	/* Called by each member with its number; what it answers is added up. */
	uint64_t (*run)(void *arg, unsigned member);
	void *arg;
	bool allocates; /* whether it may */
};

struct outcome {
	double ns;    /* from the common start, mean over the members */
	uint64_t sum; /* of what they answered */
};

/* Processors that this process may use. */
unsigned team_processors(void);

struct outcome team_run(const struct job *job, unsigned members);

#endif
