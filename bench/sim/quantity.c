/* SPDX-License-Identifier: BSD-2-Clause */
#include "quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nanoseconds, three hundred years: well within 63 bits. */
#define LONGEST 9.2e18

bool duration_read(const char *text, double *nanoseconds)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {
		{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9},
	};
	char *end;
	double value = strtod(text, &end);

	if (end == text)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0) {
			*nanoseconds = value * units[i].factor;
			return value >= 0 && *nanoseconds <= LONGEST;
		}
	*nanoseconds = 0;
	return *end == '\0' && value == 0;
}

struct name {
	const char *text;
	enum law_kind kind;
	unsigned numbers; /* parameters after the mean */
};

static const struct name names[] = {
	{"constant", LAW_CONSTANT, 0}, {"exponential", LAW_EXPONENTIAL, 0},
	{"uniform", LAW_UNIFORM, 0},   {"lognormal", LAW_LOGNORMAL, 1},
	{"pareto", LAW_PARETO, 1},     {"bimodal", LAW_BIMODAL, 2},
};

static const struct name *name_of(const char *text)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].text, text) == 0)
			return &names[i];
	return NULL;
}

static bool number_read(const char *text, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*number);
}

static const char *check(const struct law *law)
{
	switch (law->kind) {
	case LAW_LOGNORMAL:
		return law->shape >= 0 && law->shape <= 5 ? NULL : "sigma is not from 0 to 5";
	case LAW_PARETO:
		return law->shape > 1 && law->shape <= 100 ? NULL
							   : "alpha is not above 1 and at most 100";
	case LAW_BIMODAL:
		if (!(law->share > 0 && law->share < 1))
			return "the share is not between 0 and 1";
		return law->factor > 0 && law->factor <= 1e6
			       ? NULL
			       : "the factor is not above 0 and at most 1e6";
	default:
		return NULL;
	}
}

const char *law_read(const char *text, struct law *law)
{
	char words[4][32], rest;
	int count = sscanf(text, "%31s %31s %31s %31s %c", words[0], words[1], words[2], words[3],
			   &rest);
	const struct name *name = count > 0 ? name_of(words[0]) : NULL;
	int mean = name == NULL ? 0 : 1;
	double numbers[2] = {0, 0};
	unsigned given;

	*law = (struct law){.kind = LAW_CONSTANT};
	if (count <= mean || !duration_read(words[mean], &law->mean))
		return "it is not a law: write \"10ms\", \"exponential 10ms\" or \"lognormal 10ms 2\"";
	given = (unsigned)(count - mean - 1);
	if (given != (name == NULL ? 0 : name->numbers))
		return "it has too many numbers, or too few";
	for (unsigned i = 0; i < given; i++)
		if (!number_read(words[mean + 1 + (int)i], &numbers[i]))
			return "one of its values is not a number";
	if (name != NULL)
		law->kind = name->kind;
	law->shape = law->share = numbers[0];
	law->factor = numbers[1];
	return check(law);
}
