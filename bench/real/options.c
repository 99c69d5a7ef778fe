/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - parse the command line with argp.
 */
#include "options.h"

#include "callers.h"
#include "real.h"
#include "scenario_read.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_MAX 32

static unsigned number(const char *text, unsigned max, struct argp_state *state)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || *text == '-' || n == 0 || n > max)
		argp_error(state, "not a number from 1 to %u: %s", max, text);
	return (unsigned)n;
}

static uint64_t seed(const char *text, struct argp_state *state)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (end == text || *end != '\0' || *text == '-' || errno != 0)
		argp_error(state, "not a seed: %s", text);
	return n;
}

static void add_limit(struct options *options, const char *text, struct argp_state *state)
{
	struct entrant *entrant = &options->limits[options->limit_count];
	char why[200];

	if (options->limit_count == LIMITS_MAX)
		argp_error(state, "more than %d limits", LIMITS_MAX);
	entrant->text = text;
	if (weir_limit_from_text(text, &entrant->limit, entrant->config, why, sizeof(why)) != 0)
		argp_error(state, "%s: %s", text, why);
	options->limit_count++;
}

static void add_all_limits(struct options *options, struct argp_state *state)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		if ((ops->flags & WEIR_LIMIT_SETTABLE) == 0)
			add_limit(options, ops->name, state);
}

/* As scenario_from_text(); -ENOENT if weir-real has no scenario of that name. */
static int own_scenario(struct scenario *scenario, const char *name)
{
	char why[300];

	for (unsigned i = 0; real_scenario_text(i) != NULL; i++) {
		if (scenario_from_text(scenario, "built-in", real_scenario_text(i), why,
				       sizeof(why)) != 0) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		if (strcmp(scenario->name, name) == 0)
			return 0;
		scenario_free(scenario);
	}
	return -ENOENT;
}

static void add_scenario(struct options *options, const char *name, struct argp_state *state)
{
	struct scenario *scenario = &options->scenarios[options->scenario_count];
	char why[300];

	if (options->scenario_count == SCENARIOS_MAX)
		argp_error(state, "more than %d scenarios", SCENARIOS_MAX);
	if (own_scenario(scenario, name) != 0 &&
	    scenario_find(scenario, name, why, sizeof(why)) != 0)
		argp_error(state, "%s", why);
	if (real_unsupported(scenario) != NULL)
		argp_error(state, "%s cannot be run with threads: %s", name,
			   real_unsupported(scenario));
	options->scenario_count++;
}

static void add_all_scenarios(struct options *options, struct argp_state *state)
{
	struct scenario scenario;
	char why[300];

	for (unsigned i = 0; real_scenario_text(i) != NULL; i++) {
		if (scenario_from_text(&scenario, "built-in", real_scenario_text(i), why,
				       sizeof(why)) != 0)
			argp_failure(state, EXIT_FAILURE, 0, "%s", why);
		add_scenario(options, scenario.name, state);
		scenario_free(&scenario);
	}
}

static void print_scenario(const struct scenario *s)
{
	weir_dur length = 0;

	for (unsigned i = 0; i < s->phase_count; i++)
		length += s->phases[i].length * s->rounds;
	printf("  %-20s %3.0f s  %s\n", s->name, (double)length / (double)WEIR_S, s->about);
}

static int list(void)
{
	struct options all = {.limit_count = 0};

	add_all_limits(&all, NULL);
	add_all_scenarios(&all, NULL);
	puts("limits:");
	for (unsigned i = 0; i < all.limit_count; i++)
		printf("  %-12s %s\n", all.limits[i].text, all.limits[i].limit->about);
	puts("scenarios:");
	for (unsigned i = 0; i < all.scenario_count; i++)
		print_scenario(&all.scenarios[i]);
	options_free(&all);
	return EXIT_SUCCESS;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'l':
		add_limit(options, arg, state);
		return 0;
	case 's':
		add_scenario(options, arg, state);
		return 0;
	case 'r':
		options->seed = seed(arg, state);
		return 0;
	case 'n':
		options->seeds = number(arg, SEEDS_MAX, state);
		return 0;
	case 'b':
		options->side = number(arg, SIDE_MAX, state);
		return 0;
	case 'p':
		options->processes = number(arg, CALLERS_MAX, state);
		return 0;
	case 'R':
		options->repeats = number(arg, REPEATS_MAX, state);
		return 0;
	case 'L':
		exit(list());
	case ARGP_KEY_END:
		if (options->limit_count == 0)
			add_all_limits(options, state);
		if (options->scenario_count == 0)
			add_all_scenarios(options, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_read(struct options *options, int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"limit", 'l', "NAME[:PARAM=VALUE,...]", 0,
		 "A limit; may be repeated (default: all but settable)", 0},
		{"scenario", 's', "NAME|FILE", 0,
		 "A scenario; may be repeated (default: all of --list)", 0},
		{"seed", 'r', "N", 0, "Seed of real runs, and the first of simulated runs (1)", 0},
		{"seeds", 'n', "N", 0, "Number of simulated runs (5)", 0},
		{"beside", 'b', "N", 0, "Real runs in parallel (5)", 0},
		{"processes", 'p', "N", 0,
		 "Instead compare N processes that share a limiter with N threads", 0},
		{"repeats", 'R', "N", 0, "Repeats of that comparison (3)", 0},
		{"list", 'L', NULL, 0, "List limits and scenarios", 0},
		{0},
	};
	static const struct argp argp = {
		.options = known,
		.parser = option,
		.doc = "Run concurrency limits through the same scenarios in virtual time and with "
		       "real threads, and compare how they rank.",
	};

	*options = (struct options){.seed = 1, .seeds = 5, .side = 5, .repeats = 3};
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void options_free(struct options *options)
{
	for (unsigned i = 0; i < options->scenario_count; i++)
		scenario_free(&options->scenarios[i]);
}
