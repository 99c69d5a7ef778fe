/*
 * oracle.h - the fixed limits that all others are measured by.
 *
 * For each phase of a scenario it is the smallest fixed limit whose goodput is within 3 % of the
 * best that any fixed limit gets in that phase. It is found by trying.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "run.h"

struct oracle {
	uint32_t limits[PHASES_MAX];
	double best[PHASES_MAX]; /* goodput of the best fixed limit, calls a second */
};

/* What is within this of the best is good enough. */
#define ORACLE_WITHIN 0.03

/* Search for it; the limit is the same for any number of threads and on any machine. */
void oracle_find(struct oracle *oracle, const struct scenario *scenario);

/*
 * The same for several scenarios at once, on so many threads (0: all processors), keeping in a file
 * what was found: NULL: none. A file that cannot be read or written is done without.
 */
void oracles_find(struct oracle *oracles, const struct scenario *scenarios, size_t count,
		  unsigned threads, const char *cache);

/* Where the oracles of this user are kept, in a buffer of the caller's; NULL: nowhere. */
const char *oracle_cache(char *path, size_t size);

#endif
