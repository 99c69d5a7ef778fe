/*
 * score.h - how good a run was, beside the oracle's with the same seed.
 *
 *	power = (goodput / the oracle's) / (mean latency / the oracle's)
 *
 * Of a scenario's phases, but for those that are a warm-up, each counts alike: goodput, latency and
 * power are geometric means over them. Phases where nobody can be served are left out.
 */
#ifndef SCORE_H
#define SCORE_H

#include "oracle.h"

/* What cannot be said is NaN. */
struct score {
	double goodput, latency, power; /* against the oracle's; 1 is as good */
	double p50, p99, p999;          /* milliseconds, over all phases that count */
	double false_rejects;           /* the part refused while the load was below 0.7 */
	double settled; /* seconds to within 20 % of the oracle's limit after a step, the worst */
	double drift;   /* of the limit in a steady phase of ten minutes or more, a part an hour */
	double jain; /* fairness between limiters that are tried, once all are there; 1 is even */
	double least_class; /* goodput of the class that fares worst, against the oracle's */
	bool leaks;         /* a permit was lost, or one given above the limit */
};

/* Run scenario and limit against what the oracle's limits made of the same seed. */
int score_run(struct score *score, const struct scenario *scenario, const struct oracle *oracle,
	      const struct run_result *best, const struct weir_config *limiter, uint64_t seed);

/* The oracle's own run. */
void score_best(struct run_result *best, const struct scenario *scenario,
		const struct oracle *oracle, uint64_t seed);

/* Of two runs. */
void score_from(struct score *score, const struct scenario *scenario, const struct oracle *oracle,
		const struct run_result *best, const struct run_result *result);

#endif
