/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - the command line of weir-real.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "contest.h"

#define LIMITS_MAX    64
#define SCENARIOS_MAX 32
#define REPEATS_MAX   20

struct options {
	struct entrant limits[LIMITS_MAX];
	struct scenario scenarios[SCENARIOS_MAX];
	unsigned limit_count, scenario_count;
	uint64_t seed;
	unsigned seeds, side;
	unsigned processes; /* number of callers for spread(); 0: no such comparison */
	unsigned repeats;
};

/* Parse the arguments. Ends the program on an error, and after --help or --list. */
void options_read(struct options *options, int argc, char **argv);
void options_free(struct options *options);

/* The text of a built-in scenario of weir-real; NULL past the last. */
const char *real_scenario_text(unsigned index);

#endif
