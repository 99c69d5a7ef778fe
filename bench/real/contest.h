/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contest.h - run the same limits through the same scenario, simulated and with real threads.
 */
#ifndef CONTEST_H
#define CONTEST_H

#include "run.h"

#define SEEDS_MAX 100

struct entrant {
	const char *text; /* as for weir_limit_from_text() */
	const struct weir_limit_ops *limit;
	_Alignas(max_align_t) char config[WEIR_LIMIT_CONFIG_MAX];
};

/* Over the phases that count in a score. */
struct figures {
	double good;    /* calls a second served within the deadline */
	double latency; /* mean, in nanoseconds */
	double limit;   /* mean over time */
	double score;
};

struct standing {
	struct figures sim, real; /* sim: means over seeds */
	double scores[SEEDS_MAX]; /* of sim, by seed */
};

struct contest {
	const struct scenario *scenario;
	const struct entrant *entrants;
	unsigned count;
	uint64_t seed;  /* of the real runs, and the first of the simulated runs */
	unsigned seeds; /* number of simulated runs */
	unsigned side;  /* real runs in parallel */
};

/*
 * Fill standings, one for each entrant. The score is power as in score.h: relative to a run of the
 * oracle's limits with the same seed, also simulated or real. lateness: as in real_run(), of all
 * real runs. Returns 0, or a negative errno if a limiter cannot be created.
 */
int contest(const struct contest *contest, struct standing *standings, struct tally *lateness);

#endif
