/*
 * series.h - a run as it goes, as TSV for plots.
 */
#ifndef SERIES_H
#define SERIES_H

#include "tally.h"

#include <stdio.h>
#include <weir/weir.h>

/* Since the line before; limit and in flight as they are now, of all limiters together. */
struct series_point {
	weir_time now;
	const char *phase;
	const struct tally *tally;
	uint32_t limit, inflight, target;
	const struct weir_limiter *limiter; /* the first */
};

void series_head(FILE *out, const struct weir_limiter *limiter);
void series_line(FILE *out, const struct series_point *point);

#endif
