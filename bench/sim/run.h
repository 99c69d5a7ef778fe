/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.h - run a scenario from its first call to its last.
 *
 *	source, clients -> limiters -> stations of the server
 *
 * The limiters are the library's, driven through their _at functions: the limiter is the code that
 * ships, and only the world around it is a model.
 */
#ifndef RUN_H
#define RUN_H

#include "scenario.h"
#include "tally.h"

#include "series.h"
#include <weir/weir.h>

/* Number of equal parts of a phase; the limit is averaged over each. */
#define SLICES 10

struct run_setup {
	const struct scenario *scenario;
	const struct weir_config *limiter; /* the seed in it is not used */
	uint64_t seed;
	bool sweep; /* cut phases to the scenario's sweep length, for the search for an oracle */

	/* By phase, or NULL: values for limits of kind settable; the right value for each limit. */
	const uint32_t *limits, *targets;

	/* Called with the first limiter when a phase begins, before its first call. Optional. */
	void (*phase_begins)(void *arg, struct weir_limiter *limiter, unsigned phase);
	void *arg;

	struct series *series; /* TSV, a line each series_every; NULL: none */
	weir_dur series_every; /* nanoseconds */
};

struct phase_result {
	struct tally tally;
	uint64_t class_good[CLASSES_MAX], limiter_good[LIMITERS_MAX];
	double slices[SLICES]; /* limit times nanoseconds in each part, then its mean over time */
	double settled;        /* seconds until a limit was within 20 % of its target, in the worst
			   round; infinite: never */
};

struct run_result {
	struct phase_result phases[PHASES_MAX];
	uint64_t hash;    /* of every arrival's time, limit and decision: equal for equal runs */
	uint64_t windows; /* closed by all limiters */
	uint64_t samples; /* calls that succeeded, were dropped or timed out */
	uint64_t above;   /* admissions above the limit; must be 0 */
	uint32_t leaked;  /* permits not returned at the end; must be 0 */
};

/* Returns 0, or a negative errno if a limiter cannot be created. */
int run(const struct run_setup *setup, struct run_result *result);

#endif
