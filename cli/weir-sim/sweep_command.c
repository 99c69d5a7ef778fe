/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep_command.c - score a limit for several values of a parameter.
 */
#include "sweep_command.h"

#include "command.h"
#include "bench/sim/alloc_or_abort.h"
#include "output.h"
#include "bench/sim/quantity.h"
#include "scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS       9
#define WHOLE_STEPS 20
#define LONGEST     600

struct wanted {
	struct choice choice;
	const char *param, *tsv;
	unsigned steps;
};

/* The texts of the limits to score. */
struct values {
	const char *param;
	unsigned steps; /* 0: chosen to fit the range */
	char limits[SWEEP_STEPS_MAX][LONGEST];
	unsigned count;
};

/* "log10:1..6" or "10ms..1s" taken apart: the prefix, the numbers and their units. */
struct range {
	char before[64];
	double from, to;
	char from_unit[16], to_unit[16];
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &wanted->choice;
		return 0;
	case 'P':
		wanted->param = arg;
		return 0;
	case 'n':
		wanted->steps = choice_number(arg, 2, SWEEP_STEPS_MAX, state);
		return 0;
	case 't':
		wanted->tsv = arg;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (wanted->param == NULL)
			argp_error(state, "--param is required: the parameter to vary");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void add_value(struct values *values, const char *limit, const char *name, const char *value)
{
	char *to = values->limits[values->count];

	if (values->count == SWEEP_STEPS_MAX)
		return;
	snprintf(to, LONGEST, "%s%c%s=%s", limit, strchr(limit, ':') == NULL ? ':' : ',', name,
		 value);
	values->count++;
}

/* Parse a number and its unit; false if there is none. */
static bool number_read(const char *text, double *number, char *unit, size_t size)
{
	char *end;

	*number = strtod(text, &end);
	snprintf(unit, size, "%s", end);
	return end != text && isfinite(*number) && strlen(end) < size;
}

static bool range_read(struct range *range, const char *value)
{
	const char *dots = strstr(value, "..");
	const char *colon = strchr(value, ':');
	size_t before = colon == NULL ? 0 : (size_t)(colon - value) + 1;
	char first[64];

	if (dots == NULL || before >= sizeof(range->before) ||
	    (size_t)(dots - value) >= sizeof(first))
		return false;
	snprintf(range->before, sizeof(range->before), "%.*s", (int)before, value);
	snprintf(first, sizeof(first), "%.*s", (int)(dots - value), value);
	if (before >= strlen(first) ||
	    !number_read(first + before, &range->from, range->from_unit, sizeof(range->from_unit)))
		return false;
	if (!number_read(dots + 2, &range->to, range->to_unit, sizeof(range->to_unit)))
		return false;
	if (range->from_unit[0] == '\0')
		memcpy(range->from_unit, range->to_unit, sizeof(range->from_unit));
	return range->from < range->to || strcmp(range->from_unit, range->to_unit) != 0;
}

/* Spaced evenly, or by equal factors if the last is many times the first. */
static double step_of(const struct range *range, unsigned step, unsigned steps)
{
	double part = (double)step / (steps - 1);

	if (range->from > 0 && range->to > 4 * range->from)
		return range->from * draw_exp(part * draw_ln(range->to / range->from));
	return range->from + part * (range->to - range->from);
}

/* Bring both ends to one unit, which the steps between need. */
static bool same_unit(struct range *range)
{
	double from, to;
	char text[64];

	if (strcmp(range->from_unit, range->to_unit) == 0)
		return true;
	snprintf(text, sizeof(text), "%.17g%s", range->from, range->from_unit);
	if (!duration_read(text, &from))
		return false;
	snprintf(text, sizeof(text), "%.17g%s", range->to, range->to_unit);
	if (!duration_read(text, &to) || !(from < to))
		return false;
	range->from = from / 1e3;
	range->to = to / 1e3;
	strcpy(range->from_unit, "us");
	return true;
}

static bool add_range(struct values *values, const char *limit, const char *name,
		      struct range *range)
{
	unsigned steps = values->steps;
	char value[128];
	bool whole;
	double gap;

	if (!same_unit(range))
		return false;
	whole = range->from == floor(range->from) && range->to == floor(range->to);
	gap = range->to - range->from;
	if (steps == 0)
		steps = whole && gap < WHOLE_STEPS ? (unsigned)gap + 1 : STEPS;
	for (unsigned i = 0; i < steps; i++) {
		double number = step_of(range, i, steps);

		if (whole && steps == gap + 1)
			number = range->from + i;
		else if (whole && range->to >= WHOLE_STEPS)
			number = floor(number + 0.5);
		/* Print large integers without an exponent, which counts do not accept. */
		snprintf(value, sizeof(value), "%s%.*g%s", range->before,
			 number == floor(number) ? 15 : 6, number, range->from_unit);
		add_value(values, limit, name, value);
	}
	return true;
}

static void add_list(struct values *values, const char *limit, const char *name, char *list)
{
	char *rest = NULL;

	for (char *value = strtok_r(list, ",", &rest); value != NULL;
	     value = strtok_r(NULL, ",", &rest))
		add_value(values, limit, name, value);
}

/* Fill in the limit with all values. False if the text is not valid. */
static bool expand(struct values *values, const char *limit)
{
	char *name = strdup_or_abort(values->param), *value = strchr(name, '=');
	struct range range;
	bool good = value != NULL && value[1] != '\0' && strlen(limit) + strlen(name) < LONGEST;

	if (good)
		*value++ = '\0';
	if (good && strstr(value, "..") != NULL)
		good = range_read(&range, value) && add_range(values, limit, name, &range);
	else if (good)
		add_list(values, limit, name, value);
	free(name);
	return good;
}

static void print(const struct scores *scores, const void *arg)
{
	const struct choice *c = scores->choice;
	size_t *order = alloc_or_abort(c->scenario_count * sizeof(*order));
	int width = 0;

	(void)arg;
	printf("%zu scenarios, seeds %ju to %ju; geometric means, against the oracle's\n\n",
	       c->scenario_count, (uintmax_t)c->first_seed, (uintmax_t)c->last_seed);
	for (size_t i = 0; i < c->limit_count; i++)
		width = output_wide(width, c->limits[i]->text);
	printf("%-*s %6s %9s  %-7s %12s  %s\n", width, "limit", "power", "goodput", "latency",
	       "worst power", "in");
	for (size_t i = 0; i < c->limit_count; i++) {
		if (scores_rank(scores, i, POWER, order) == 0)
			continue;
		printf("%-*s %6.3f %7.1f %%  x%-6.2f %12.3f  %s\n", width, c->limits[i]->text,
		       scores_total(scores, i, -1, POWER),
		       100 * scores_total(scores, i, -1, GOODPUT),
		       scores_total(scores, i, -1, LATENCY),
		       scores_mean(scores, i, order[0], POWER), c->scenarios[order[0]].name);
	}
	free(order);
}

bool sweep_expand(struct choice *choice, const char *param, unsigned steps)
{
	struct values *values = alloc_or_abort(sizeof(*values));
	size_t count = choice->limit_count;
	char why[600];
	bool good = true;

	*values = (struct values){.param = param, .steps = steps};
	for (size_t i = 0; i < count && good; i++)
		good = expand(values, choice->limits[i]->text);
	if (!good)
		fprintf(stderr, "weir-sim: %s: write alpha=1..6, timeout=10ms..1s, or a=1,2,5\n",
			param);
	for (unsigned i = 0; i < values->count && good; i++) {
		good = choice_add_limit(choice, values->limits[i], why, sizeof(why));
		if (!good)
			fprintf(stderr, "weir-sim: %s\n", why);
	}
	choice_drop_limits(choice, count);
	free(values);
	return good;
}

int command_sweep(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"param", 'P', "NAME=FROM..TO", 0,
		 "The parameter to vary, or NAME=VALUE,...; required", 0},
		{"steps", 'n', "N", 0,
		 "Number of values (default: each integer if they are few, else 9)", 0},
		{"tsv", 't', "FILE", 0, "Write every score as TSV; -: to standard output, no table",
		 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.children = choice_children,
		.doc = "Score a limit for several values of one of its parameters.\v"
		       "Example: weir-sim sweep --limit vegas --param alpha=log10:1..6. Defaults: "
		       "all built-in scenarios, seeds 1 to 3.",
	};
	struct wanted wanted = {
		.choice = {.first_seed = 1, .last_seed = 3, .scenarios_text = CHOICE_ALL},
	};
	int status = EXIT_USAGE;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	if (sweep_expand(&wanted.choice, wanted.param, wanted.steps))
		status = scores_report(&wanted.choice, true, wanted.tsv, print, NULL);
	choice_free(&wanted.choice);
	return status;
}
