/*
 * contest.h - the same limits through the same scenario, simulated and for real.
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

/* Over the phases that count. */
struct figures {
	double good;    /* calls a second that were served within the deadline */
	double latency; /* mean, in nanoseconds */
	double limit;   /* mean over time */
	double score;
};

struct standing {
	struct figures sim, real; /* of sim: the mean over seeds */
	double scores[SEEDS_MAX]; /* of sim, by seed */
};

struct contest {
	const struct scenario *scenario;
	const struct entrant *entrants;
	unsigned count;
	uint64_t seed;  /* of the real run, and the first of the simulated ones */
	unsigned seeds; /* simulated runs */
	unsigned side;  /* real runs at a time */
};

/*
 * The standings, of each entrant, are filled. The score is power as score.h has it: against what
 * the oracle's limits, by phase, made in the same world of the same seed. lateness: as
 * real_run(), of all real runs. 0, or a negative errno: a limiter cannot be made.
 */
int contest(const struct contest *contest, struct standing *standings, struct tally *lateness);

#endif
