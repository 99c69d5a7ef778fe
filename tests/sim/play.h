/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * play.h - run a scenario in a test.
 */
#ifndef PLAY_H
#define PLAY_H

#include "run.h"
#include "scenario_read.h"

#include <criterion/criterion.h>

#define MS 1e6

/*
 * Run a limit, given as text, through a scenario. The test fails if it cannot be run, and if a
 * permit was granted above the limit, a permit was not returned, or a call was lost: these must not
 * happen with any limit and scenario.
 */
void play(struct run_result *result, const char *limit, const struct scenario *scenario,
	  uint64_t seed);

/* The same with at most two rounds, and phases of at most length. */
void play_cut(struct run_result *result, const char *limit, const struct scenario *scenario,
	      weir_dur length);

/* The same for a scenario as text. */
void play_text(struct run_result *result, const char *limit, const char *text, uint64_t seed);

/* Find a built-in scenario. Free it with scenario_free(). */
void play_find(struct scenario *scenario, const char *name);

/* The same for a complete setup. */
void play_setup(struct run_result *result, const struct run_setup *setup);

#endif
