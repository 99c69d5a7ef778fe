/*
 * The limiter in numbers: for a reader, and for a plot.
 */
#ifndef HTTPD_STATS_H
#define HTTPD_STATS_H

#include <stdio.h>
#include <weir/weir.h>

/* One "name value" a line. The length, cut at size like snprintf()'s. */
int stats_text(const struct weir_limiter *limiter, char *text, size_t size);

/* What a scraper reads, to be freed by the caller; NULL: there is no memory. */
char *stats_metrics(const struct weir_limiter *limiter, enum weir_metrics_format format);

/* One tab-separated line, and the line that names its columns. */
void stats_header(FILE *file);
void stats_line(FILE *file, const struct weir_limiter *limiter, unsigned connections);

#endif
