/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - print two tables: each limit in each scenario, and the rank correlations.
 */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

/* The results of one scenario, or the means over all. */
struct heat {
	const char *name;
	struct standing standings[LIMITS_MAX];
	struct tally lateness;
};

/* heats: one for each scenario, and room for one more, which is set to the means. */
void report(const struct options *options, struct heat *heats);

#endif
