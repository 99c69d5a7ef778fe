/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle.h - the fixed limits that scores compare all others with.
 *
 * For each phase of a scenario it is the smallest fixed limit whose goodput is within 3 % of the
 * best that any fixed limit gets in that phase. The single limit is the same for the whole scenario,
 * whose goodput is the geometric mean over the phases that count. Both are found by simulating one
 * limit after another.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "run.h"

struct oracle {
	uint32_t limits[PHASES_MAX];
	double best[PHASES_MAX]; /* goodput of the best fixed limit, calls a second */
	uint32_t single;
	double single_best;
};

/* Accepted loss of goodput against the best fixed limit, as a fraction. */
#define ORACLE_WITHIN 0.03

/* Search for the oracle; the result is the same with any number of threads and on any machine. */
void oracle_find(struct oracle *oracle, const struct scenario *scenario);

/*
 * The same for several scenarios at once, on the given number of threads (0: one per processor).
 * Results are cached in the file cache (NULL: not cached). A file that cannot be read or written is
 * ignored.
 */
void oracles_find(struct oracle *oracles, const struct scenario *scenarios, size_t count,
		  unsigned threads, const char *cache);

/* Write the path of this user's cache of oracles to path; NULL if there is none. */
const char *oracle_cache(char *path, size_t size);

#endif
