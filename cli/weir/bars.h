/*
 * bars.h - numbers as a row of bars, a character each.
 */
#ifndef BARS_H
#define BARS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the terminal's characters have bars; else they are drawn in ASCII. */
bool bars_unicode(void);

/* The bar for a part of the highest: a string. What is above zero is never drawn as nothing. */
const char *bars_one(double value, double highest, bool unicode);

/*
 * A number in five columns at most: 0.12, 1.5, 999, 12.3k, 4.1M. size is 16 at least.
 */
const char *bars_number(double value, char *text, size_t size);

/* A duration in nanoseconds, in seven columns at most: 950ns, 1.25ms, 12.3s; "-" for 0. */
const char *bars_duration(double ns, char *text, size_t size);

#endif
