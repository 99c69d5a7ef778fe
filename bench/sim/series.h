/*
 * series.h - a run as it goes, as TSV for plots.
 */
#ifndef SERIES_H
#define SERIES_H

#include "tally.h"

#include <stdio.h>
#include <weir/weir.h>

void series_head(FILE *out, const struct weir_limit_ops *ops);

/* What was counted up to now since the line before. */
void series_line(FILE *out, weir_time now, const char *phase, const struct tally *tally,
		 const struct weir_limiter *limiter, const struct weir_limit_ops *ops);

#endif
