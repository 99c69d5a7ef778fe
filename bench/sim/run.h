/*
 * run.h - a scenario, from its first call to its last.
 *
 *	source, clients -> limiters -> stations of the server
 *
 * The limiters are the library's, driven through their _at functions: what is
 * simulated is the code that ships, and only the world around it is a model.
 */
#ifndef RUN_H
#define RUN_H

#include "scenario.h"
#include "tally.h"

#include "series.h"
#include <weir/weir.h>

/* Parts of a phase in which the limit is averaged. */
#define SLICES 10

struct run_setup {
	const struct scenario *scenario;
	const struct weir_config *limiter; /* the seed in it is not used */
	uint64_t seed;
	bool sweep; /* phases are cut, as the scenario says, for the search of an oracle */

	/* By phase, if there is one: limits of settable limits; what is right for each limit. */
	const uint32_t *limits, *targets;

	/* Told when a phase begins, before its first call, of the first limiter. Optional. */
	void (*phase_begins)(void *arg, struct weir_limiter *limiter, unsigned phase);
	void *arg;

	struct series *series; /* a line of TSV every so often; NULL: none */
	weir_dur series_every;
};

struct phase_result {
	struct tally tally;
	uint64_t class_good[CLASSES_MAX], limiter_good[LIMITERS_MAX];
	double slices[SLICES]; /* limit times nanoseconds; its mean over time in each part */
	double settled; /* seconds until a limit was within a fifth of its target, in the worst
			   round; infinite: never */
};

struct run_result {
	struct phase_result phases[PHASES_MAX];
	uint64_t hash;    /* over every arrival's time, limit and fate: equal if the runs were */
	uint64_t windows; /* that the limits saw */
	uint64_t samples; /* calls that ended, served or given up, in the end */
	uint64_t above;   /* admissions above the limit: there are none */
	uint32_t leaked;  /* permits still out when all was over: none */
};

/* 0, or a negative errno if a limiter cannot be made. */
int run(const struct run_setup *setup, struct run_result *result);

#endif
