/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bars.h - a number as a bar of one character, and numbers and durations in a few columns.
 */
#ifndef BARS_H
#define BARS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the locale's character set has block characters. Otherwise bars are drawn in ASCII. */
bool bars_unicode(void);

/* The bar for value on a scale from 0 to highest, as a string. A value above 0 is never blank. */
const char *bars_one(double value, double highest, bool unicode);

/*
 * Format a number in at most five columns: 0.12, 1.5, 999, 12.3k, 4.1M. size is at least 16.
 */
const char *bars_number(double value, char *text, size_t size);

/* Format a duration in nanoseconds in at most seven columns: 950ns, 1.25ms, 12.3s; "-" for 0. */
const char *bars_duration(double ns, char *text, size_t size);

#endif
