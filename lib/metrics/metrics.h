/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of metrics, inside. */
#ifndef WEIR_LIB_METRICS_METRICS_H
#define WEIR_LIB_METRICS_METRICS_H

#include <locale.h>
#include <stdbool.h>

#include <weir/metrics.h>
#include <weir/observe.h>
#include <weir/partition.h>
#include <weir/rate.h>

#include "lib/metrics/families.h"

struct part {
	struct weir_partition_snapshot numbers;
	char *label;
};

/* Snapshot of one limiter or rate. Labels are stored as they are written: a="b",c="d". */
struct source {
	struct source *next;
	char *labels;
	bool is_rate; /* it is a rate */
	struct weir_rate_snapshot rate;
	char *quota_labels[WEIR_QUOTAS_MAX];
	struct weir_snapshot numbers;
	char *number_labels[WEIR_NUMBERS_MAX];
	unsigned part_count;
	struct part parts[];
};

/* A value of a metric of the program's own. */
struct value {
	struct value *next;
	const struct own *metric;
	char *labels;
	double number;
};

/* A metric of the program's own, with its values. Its family has no owner. */
struct own {
	struct own *next;
	struct family family;
	struct value *first, **end;
	char text[]; /* name, unit and help */
};

struct weir_metrics {
	struct source *first, **end;
	void *known;    /* sources by their labels: a tree of tsearch() */
	bool has_rates; /* there are rates in the set */
	struct own *own, **own_end;
	void *values; /* of the program's own metrics, by metric and labels: likewise */
	locale_t c;
};

void source_free(struct source *source);
void own_free(struct own *own); /* with its values */

#endif
