/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scores.h - the scores of all limits in all scenarios with all seeds.
 */
#ifndef SCORES_H
#define SCORES_H

#include "choice.h"
#include "bench/sim/score.h"

struct scores {
	const struct choice *choice; /* of random scenarios: also against one limit for each */
	struct oracle *oracles;      /* by scenario */
	struct score *all;
};

const struct score *scores_at(const struct scores *scores, size_t limit, size_t scenario,
			      size_t seed);

/* The numbers of a score that are averaged. */
enum part { POWER, GOODPUT, LATENCY, SINGLE_POWER, SINGLE_GOODPUT, SINGLE_LATENCY };

double score_part(const struct score *score, enum part part);

/* Geometric mean of a limit in a scenario over the seeds; NaN if there is no score. */
double scores_mean(const struct scores *scores, size_t limit, size_t scenario, enum part part);

/* Geometric mean over scenarios, for one seed, or for all if seed is negative. */
double scores_total(const struct scores *scores, size_t limit, long seed, enum part part);

/* Sort scenarios by a part of a limit's score, the worst first. Returns their number. */
size_t scores_rank(const struct scores *scores, size_t limit, enum part part, size_t *order);

/* Mean over scenarios and seeds for which it is defined; NaN if there are none. */
double scores_false_rejects(const struct scores *scores, size_t limit);

/*
 * Find the oracles, run everything with progress on standard error, call print with the scores
 * (unless NULL), and write them to the file tsv (unless NULL), one line each. If that is standard
 * output, print is not called. A limiter that lost a permit, or granted one above its limit, is
 * reported on standard error and is a failure. Returns an exit status.
 */
int scores_report(const struct choice *choice, bool use_cache, const char *tsv,
		  void (*print)(const struct scores *scores, const void *arg), const void *arg);

#endif
