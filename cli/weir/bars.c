/* SPDX-License-Identifier: BSD-2-Clause */
#include "bars.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEVELS 8

bool bars_unicode(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *bars_one(double value, double highest, bool unicode)
{
	static const char *const blocks[LEVELS + 1] = {" ",      "\u2581", "\u2582",
						       "\u2583", "\u2584", "\u2585",
						       "\u2586", "\u2587", "\u2588"};
	static const char *const signs[LEVELS + 1] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
	double level = 0;

	if (value > 0 && highest > 0)
		level = fmin(fmax(ceil(value / highest * LEVELS), 1), LEVELS);
	return unicode ? blocks[(int)level] : signs[(int)level];
}

/* Three significant digits. */
static void three_digits(double value, const char *unit, char *text, size_t size)
{
	const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(text, size, "%.*f%s", decimals, value, unit);
}

const char *bars_number(double value, char *text, size_t size)
{
	static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
	unsigned unit = 0;

	if (value < 999.5) {
		snprintf(text, size, "%.*f",
			 value == floor(value) || value >= 99.95 ? 0
			 : value < 9.995                         ? 2
								 : 1,
			 value);
		return text;
	}
	for (value /= 1000; value >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1000;
	three_digits(value, units[unit], text, size);
	return text;
}

const char *bars_duration(double ns, char *text, size_t size)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};

	if (!(ns > 0)) {
		snprintf(text, size, "-");
		return text;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns < 0.9995 * units[i].ns)
			continue;
		three_digits(ns / units[i].ns, units[i].name, text, size);
		return text;
	}
	snprintf(text, size, "%.0fns", ns);
	return text;
}
