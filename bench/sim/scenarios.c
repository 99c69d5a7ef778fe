/*
 * scenarios.c - the one table of them.
 */
#include "scenario.h"

#include <stddef.h>
#include <string.h>

/* 10 ms of work a call: 16 workers serve 1600 a second, and 512 serve 51200. */
#define ORDINARY                                                                                   \
	.gaps = LAW_EXPONENTIAL, .work = {.kind = LAW_EXPONENTIAL, .mean = 10e6},                  \
	.deadline = 100 * WEIR_MS

static const struct scenario scenarios[] = {
	{
		.name = "healthy",
		.about = "load 0.6: a limiter should not be noticed",
		ORDINARY,
		.rounds = 1,
		.phases = {{"warm-up", 10 * WEIR_S, 960, 16, 1},
			   {"steady", 120 * WEIR_S, 960, 16, 1}},
	},
	{
		.name = "regular",
		.about = "load 0.6 of calls that all take 10 ms",
		.gaps = LAW_EXPONENTIAL,
		.work = {.kind = LAW_CONST, .mean = 10e6},
		.deadline = 100 * WEIR_MS,
		.rounds = 1,
		.phases = {{"warm-up", 10 * WEIR_S, 960, 16, 1},
			   {"steady", 120 * WEIR_S, 960, 16, 1}},
	},
	{
		.name = "overload",
		.about = "twice what can be served, for two minutes",
		ORDINARY,
		.rounds = 1,
		.phases = {{"warm-up", 10 * WEIR_S, 960, 16, 1},
			   {"onset", 10 * WEIR_S, 3200, 16, 1},
			   {"steady", 110 * WEIR_S, 3200, 16, 1},
			   {"after", 20 * WEIR_S, 960, 16, 1}},
	},
	{
		.name = "timeouts",
		.about = "the same, with clients that give up after 100 ms",
		ORDINARY,
		.timeout = 100 * WEIR_MS,
		.rounds = 1,
		.phases = {{"warm-up", 10 * WEIR_S, 960, 16, 1},
			   {"onset", 10 * WEIR_S, 3200, 16, 1},
			   {"steady", 110 * WEIR_S, 3200, 16, 1},
			   {"after", 20 * WEIR_S, 960, 16, 1}},
	},
	{
		.name = "step",
		.about = "load 0.8; for a minute 4 workers instead of 16",
		ORDINARY,
		.rounds = 1,
		.phases = {{"before", 30 * WEIR_S, 1280, 16, 1},
			   {"few", 60 * WEIR_S, 1280, 4, 1},
			   {"recovery", 5 * WEIR_S, 1280, 16, 1},
			   {"after", 55 * WEIR_S, 1280, 16, 1}},
	},
	{
		.name = "burst",
		.about = "load 0.5; load 2 for a second of every ten",
		ORDINARY,
		.rounds = 12,
		.phases = {{"calm", 9 * WEIR_S, 800, 16, 1}, {"burst", 1 * WEIR_S, 3200, 16, 1}},
	},
	{
		.name = "cold-start",
		.about = "load 0.9 of 512 workers from the first moment on",
		ORDINARY,
		.rounds = 1,
		.phases = {{"first", 5 * WEIR_S, 46080, 512, 1},
			   {"second", 10 * WEIR_S, 46080, 512, 1},
			   {"steady", 15 * WEIR_S, 46080, 512, 1}},
	},
};

const struct scenario *scenario_at(unsigned index)
{
	return index < sizeof(scenarios) / sizeof(scenarios[0]) ? &scenarios[index] : NULL;
}

const struct scenario *scenario_by_name(const char *name)
{
	const struct scenario *scenario;

	for (unsigned i = 0; (scenario = scenario_at(i)) != NULL; i++)
		if (strcmp(scenario->name, name) == 0)
			return scenario;
	return NULL;
}
