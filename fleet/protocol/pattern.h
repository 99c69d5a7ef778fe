/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patterns of names: which are patterns, what they match, and which of two is closer to a name.
 */
#ifndef WEIR_FLEET_PATTERN_H
#define WEIR_FLEET_PATTERN_H

#include <stdbool.h>

/* Whether text is 1 to WEIR_FLEET_PATTERN_MAX characters of names, * and ?. NULL is not. */
bool is_pattern(const char *text);

/* Whether all of the name matches: * stands for any characters, also none, and ? for one. */
bool pattern_matches(const char *pattern, const char *name);

/*
 * Which of two patterns that match a name is taken. Below 0: a; above 0: b; 0: they are the same. It
 * is the one with more characters other than * and ?; if these are as many, the one with fewer *; then
 * the first in the order of bytes. So a pattern without * and ? comes before all others.
 */
int pattern_order(const char *a, const char *b);

#endif
