/*
 * report.h - two tables: how each limit stands in each scenario, and how alike the orders are.
 */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

/* What came of one scenario, or of all in the mean. */
struct heat {
	const char *name;
	struct standing standings[LIMITS_MAX];
	struct tally lateness;
};

/* One heat a scenario, and room for one more: their mean. */
void report(const struct options *options, struct heat *heats);

#endif
