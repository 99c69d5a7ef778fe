/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * state.h - compare the observable state of a limit with the recorded one.
 */
#ifndef CONFORM_STATE_H
#define CONFORM_STATE_H

#include "setup.h"

/* A limit as the reference stores it: truncated to 32 bits; `before` if it is NaN. */
int64_t state_whole(double limit, int64_t before);

/* Find a named number of the limit. Without one, sets *value to 0 and returns false. */
bool state_number(const char *const *names, const double *values, const char *name, double *value);

/* The random number for the next update, which depends on the number of probes so far. */
double state_chance(const struct setup *setup, const double *values);

/* Compare the state after the last row with the final.* keys of the header. */
bool state_match_final(const struct setup *setup, const struct trace *trace, int64_t limit,
		       const double *values, struct verdict *verdict);

#endif
