/*
 * series.h - runs as they go, as TSV for plots.
 */
#ifndef SERIES_H
#define SERIES_H

#include "tally.h"

#include <stdio.h>
#include <weir/weir.h>

/* Where to, and what each line begins with; begun once, for runs one after another. */
struct series {
	FILE *out;
	const char *prefix_head, *prefix; /* NULL: nothing; else with a tabulator at the end */
	bool numbers;                     /* those that the limit shows of itself, too */
	bool headed;
};

/* Since the line before; limit and in flight as they are now, of all limiters together. */
struct series_point {
	weir_time now;
	const char *phase;
	const struct tally *tally;
	uint64_t limit, target;
	unsigned inflight;
	const struct weir_limiter *limiter; /* the first */
};

void series_line(struct series *series, const struct series_point *point);

#endif
