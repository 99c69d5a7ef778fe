/*
 * state.h - what can be seen of a limit's state, against what the reference's was.
 */
#ifndef CONFORM_STATE_H
#define CONFORM_STATE_H

#include "setup.h"

/* A limit as the reference has it: the fraction dropped, within 32 bits, before if no number. */
int64_t state_whole(double limit, int64_t before);

/* One of the limit's named numbers; 0 if it shows none of that name. */
bool state_number(const char *const *names, const double *values, const char *name, double *value);

/* The random number that the next update must get, by the number of probes so far. */
double state_chance(const struct setup *setup, const double *values);

/* Compare the state after the last row with what the header says of it. */
bool state_match_final(const struct setup *setup, const struct trace *trace, int64_t limit,
		       const double *values, struct verdict *verdict);

#endif
