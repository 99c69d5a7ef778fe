/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quantity.h - parse durations and distributions as people write them.
 */
#ifndef QUANTITY_H
#define QUANTITY_H

#include "draw.h"

#include <stdbool.h>
#include <weir/base.h>

/* "250us", "10ms", "1.5s", "2min", "1h", to nanoseconds. False if the text is not a duration. */
bool duration_read(const char *text, double *nanoseconds);

/*
 * Parse a distribution: "10ms", "constant 10ms", "exponential 10ms", "uniform 10ms", "lognormal
 * 10ms 2" (sigma), "pareto 10ms 1.5" (alpha), "bimodal 10ms 0.1 10" (share and factor of the large
 * values). The duration is the mean. Returns NULL, or what is wrong.
 */
const char *law_read(const char *text, struct law *law);

#endif
