/*
 * options.h - what the command line asks for.
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
	unsigned processes; /* callers, of spread(); 0: it is not asked for */
	unsigned repeats;
};

/* Ends the program itself if there is something wrong, or only to be printed. */
void options_read(struct options *options, int argc, char **argv);
void options_free(struct options *options);

/* The scenarios that are there for this; NULL past the last. */
const char *real_scenario_text(unsigned index);

#endif
