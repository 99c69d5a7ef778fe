/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.h - time series of runs, as TSV for plots.
 */
#ifndef SERIES_H
#define SERIES_H

#include "tally.h"

#include <stdio.h>
#include <weir/weir.h>

/* Where lines go, and what each begins with. One series may hold several runs in turn. */
struct series {
	FILE *out;
	const char *prefix_head, *prefix; /* NULL: nothing; else ends with a tab */
	bool numbers;                     /* include the values that the limit exports */
	bool headed;
};

/* Counts since the previous line; limit and inflight are current, summed over limiters. */
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
