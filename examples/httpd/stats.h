/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of the limiter, for reading and for plots.
 */
#ifndef HTTPD_STATS_H
#define HTTPD_STATS_H

#include <stdio.h>
#include <weir/weir.h>

/* One "name value" per line. Returns the length, and cuts at size, like snprintf(). */
int stats_text(const struct weir_limiter *limiter, char *text, size_t size);

/* Metrics for a scraper, to be freed by the caller; NULL: out of memory. */
char *stats_metrics(const struct weir_limiter *limiter, enum weir_metrics_format format);

/* One tab-separated line, and the line that names its columns. */
void stats_header(FILE *file);
void stats_line(FILE *file, const struct weir_limiter *limiter, unsigned connections);

#endif
