/*
 * play.h - one run, for a test.
 */
#ifndef PLAY_H
#define PLAY_H

#include "run.h"

#include <criterion/criterion.h>

#define MS 1e6

/*
 * The limit, as text, through the scenario of that name. The test fails if this
 * cannot be run, and whenever a permit was given above the limit, a permit was not
 * given back or a call was lost: that holds for all limits and scenarios.
 */
void play(struct run_result *result, const char *limit, const char *scenario, uint64_t seed);

/* The same for a setup and a limiter of which more is said. */
void play_setup(struct run_result *result, const struct run_setup *setup);

#endif
