/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * score.h - how good a run was, compared with the oracle's run of the same seed.
 *
 *	power = (goodput / the oracle's) / (mean latency / the oracle's)
 *
 * All phases of a scenario except warm-ups have equal weight: goodput, latency and power are
 * geometric means over them. Phases in which no call can be served are left out.
 *
 * The oracle has the best limit of each phase. Goodput and latency may also be compared with those of
 * the single limit that is best for the whole scenario.
 */
#ifndef SCORE_H
#define SCORE_H

#include "oracle.h"

/* A value that is undefined for the scenario is NaN. */
struct score {
	double goodput, latency, power; /* relative to the oracle's: 1 is equal */
	double single_goodput, single_latency, single_power; /* to those of its single limit */
	double p50, p99, p999; /* milliseconds, over all phases that count */
	double false_rejects;  /* fraction of calls refused while the load was below 0.7 */
	double settled; /* seconds to within 20 % of the oracle's limit after a step; the worst */
	double drift;   /* of the limit in steady phases of 10 minutes or more, fraction an hour */
	double jain;    /* fairness between limiters under test, once all started; 1 is even */
	double least_class; /* goodput of the worst class, relative to the oracle's */
	bool leaks;         /* a permit was lost, or granted above the limit */
};

/*
 * Run the limit in the scenario, and score it against best, the oracle's run of the same seed, and
 * against single, its run with one limit; NULL: not against that.
 */
int score_run(struct score *score, const struct scenario *scenario, const struct oracle *oracle,
	      const struct run_result *best, const struct run_result *single,
	      const struct weir_config *limiter, uint64_t seed);

/*
 * The same for limits that are wrong by a known factor: those of the oracle times that, rounded. A
 * limiter admits one call at least.
 */
void score_times(struct score *score, const struct scenario *scenario, const struct oracle *oracle,
		 const struct run_result *best, const struct run_result *single, double times,
		 uint64_t seed);

/* The oracle's runs, with the limits of phases, and with the single one. */
void score_best(struct run_result *best, const struct scenario *scenario,
		const struct oracle *oracle, uint64_t seed);
void score_single(struct run_result *single, const struct scenario *scenario,
		  const struct oracle *oracle, uint64_t seed);

/* Score one run against the oracle's, and not against the single limit. */
void score_from(struct score *score, const struct scenario *scenario, const struct oracle *oracle,
		const struct run_result *best, const struct run_result *result);

#endif
