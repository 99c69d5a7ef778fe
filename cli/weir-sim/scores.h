/*
 * scores.h - the scores of all limits in all scenarios with all seeds.
 */
#ifndef SCORES_H
#define SCORES_H

#include "choice.h"
#include "bench/sim/score.h"

struct scores {
	const struct choice *choice;
	struct oracle *oracles; /* by scenario */
	struct score *all;
};

const struct score *scores_at(const struct scores *scores, size_t limit, size_t scenario,
			      size_t seed);

/* Which of a score's numbers is meant. */
enum part { POWER, GOODPUT, LATENCY };

double score_part(const struct score *score, enum part part);

/* Geometric mean of a limit in a scenario, over the seeds; NaN if it has none. */
double scores_mean(const struct scores *scores, size_t limit, size_t scenario, enum part part);

/* Geometric mean over scenarios with one seed, or, where that is negative, with all. */
double scores_total(const struct scores *scores, size_t limit, long seed, enum part part);

/* Scenarios by that part of a limit's score, the worst first; how many there are. */
size_t scores_rank(const struct scores *scores, size_t limit, enum part part, size_t *order);

/* Means over scenarios and seeds where it can be said: NaN if nowhere. */
double scores_false_rejects(const struct scores *scores, size_t limit);

/*
 * All of it: find the oracles and make every run, showing progress; have the scores printed (NULL:
 * nothing is), and written to a file if there is to be one, a line of TSV each; if that is standard
 * output, they are not printed. If a limiter has lost a permit, or gone above its limit, it is said
 * on standard error, and a failure. An exit status.
 */
int scores_report(const struct choice *choice, bool use_cache, const char *tsv,
		  void (*print)(const struct scores *scores, const void *arg), const void *arg);

#endif
