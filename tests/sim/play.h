/*
 * play.h - one run, for a test.
 */
#ifndef PLAY_H
#define PLAY_H

#include "run.h"
#include "scenario_read.h"

#include <criterion/criterion.h>

#define MS 1e6

/*
 * The limit, as text, through the scenario. The test fails if this
 * cannot be run, and whenever a permit was given above the limit, a permit was not
 * given back or a call was lost: that holds for all limits and scenarios.
 */
void play(struct run_result *result, const char *limit, const struct scenario *scenario,
	  uint64_t seed);

/* Two rounds at most, of phases that are at most so long. */
void play_cut(struct run_result *result, const char *limit, const struct scenario *scenario,
	      weir_dur length);

/* The same for a scenario as text. */
void play_text(struct run_result *result, const char *limit, const char *text, uint64_t seed);

/* The built-in scenario of that name. It is for scenario_free(). */
void play_find(struct scenario *scenario, const char *name);

/* The same for a setup and a limiter of which more is said. */
void play_setup(struct run_result *result, const struct run_setup *setup);

#endif
