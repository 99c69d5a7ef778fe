/*
 * spread.h - whether a limiter that processes share does as well as one that threads share.
 */
#ifndef SPREAD_H
#define SPREAD_H

#include "options.h"

/* Run it, and print two tables; README.md says how to read them. 0, or a negative errno. */
int spread(const struct options *options);

#endif
