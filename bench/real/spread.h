/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spread.h - compare a limiter shared by processes with one shared by threads.
 */
#ifndef SPREAD_H
#define SPREAD_H

#include "options.h"

/* Print two tables, explained in bench/README.md. Returns 0, or a negative errno. */
int spread(const struct options *options);

#endif
