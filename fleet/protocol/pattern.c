/* SPDX-License-Identifier: BSD-2-Clause */

#include "fleet/protocol/pattern.h"

#include <string.h>

#include <weir/fleet.h>

static const char pattern_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@*?";

bool is_pattern(const char *text)
{
	const size_t length = text != NULL ? strnlen(text, WEIR_FLEET_PATTERN_MAX + 1) : 0;

	return length > 0 && length <= WEIR_FLEET_PATTERN_MAX &&
	       strspn(text, pattern_characters) == length;
}

/*
 * Only the last * is ever tried again: what an earlier one could take instead, the last one can take
 * too. So the time is that of the product of the lengths at most, whatever the pattern.
 */
bool pattern_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *taken = NULL; /* the last *, and the end of what it stands for */

	while (*name != '\0') {
		if (*pattern == '*') {
			star = pattern++;
			taken = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star != NULL) {
			pattern = star + 1;
			name = ++taken;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == c;
	return n;
}

int pattern_order(const char *a, const char *b)
{
	const size_t stars_a = count(a, '*'), stars_b = count(b, '*');
	const size_t literal_a = strlen(a) - stars_a - count(a, '?');
	const size_t literal_b = strlen(b) - stars_b - count(b, '?');

	if (literal_a != literal_b)
		return literal_a > literal_b ? -1 : 1;
	if (stars_a != stars_b)
		return stars_a < stars_b ? -1 : 1;
	return strcmp(a, b);
}
