/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.c - list limits and scenarios, or print the text of one scenario.
 */
#include "choice.h"
#include "command.h"
#include "bench/sim/scenario_random.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>

struct wanted {
	struct choice choice; /* only plugins, seeds and random */
	const char *scenario;
	bool parameters;
};

static void check(struct wanted *wanted, struct argp_state *state)
{
	char name[NAME_SIZE];

	if (wanted->choice.seeds_given && wanted->choice.random == 0)
		argp_error(state, "--seed is for --random.");
	if (wanted->choice.random > 0)
		choice_random_name(name, sizeof(name), &wanted->choice, 1, state);
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;
	char why[600];

	switch (key) {
	case 'p':
		if (!plugin_load(&wanted->choice.plugins, arg, why, sizeof(why)))
			argp_error(state, "%s", why);
		return 0;
	case 'a':
		wanted->parameters = true;
		return 0;
	case 's':
		wanted->scenario = arg;
		return 0;
	case 'R':
		wanted->choice.random = choice_number(arg, 1, RANDOM_MAX, state);
		return 0;
	case 'r':
		choice_set_seeds(&wanted->choice, arg, state);
		return 0;
	case ARGP_KEY_END:
		check(wanted, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void list_limit(const struct weir_limit_ops *ops, bool parameters)
{
	printf("  %-20s %s\n", ops->name, ops->about != NULL ? ops->about : "");
	for (uint32_t i = 0; i < ops->param_count && parameters; i++)
		printf("    %-18s %s (%s)\n", ops->params[i].name,
		       ops->params[i].help != NULL ? ops->params[i].help : "", ops->params[i].def);
}

static void list_scenarios(void)
{
	struct scenario scenario;
	int names = 0, families = 0;

	for (unsigned i = 0; scenario_builtin(&scenario, i); i++) {
		names = output_wide(names, scenario.name);
		families = output_wide(families, scenario.family);
		scenario_free(&scenario);
	}
	puts("scenarios, and their families:");
	for (unsigned i = 0; scenario_builtin(&scenario, i); i++) {
		printf("  %-*s  %-*s  %s\n", names, scenario.name, families, scenario.family,
		       scenario.about);
		scenario_free(&scenario);
	}
}

static void list_random(const struct choice *choice)
{
	struct scenario scenario;
	char name[NAME_SIZE], why[600];

	for (unsigned i = 1; i <= choice->random; i++) {
		choice_random_name(name, sizeof(name), choice, i, NULL);
		if (scenario_find(&scenario, name, why, sizeof(why)) != 0)
			abort();
		printf("%s  %s\n", name, scenario.about);
		scenario_free(&scenario);
	}
}

/* The text as in a file, which may be edited and run. */
static int print_scenario(const char *name)
{
	struct scenario scenario;
	char *text = scenario_text_of(name), why[600];

	if (text != NULL) {
		fputs(text, stdout);
		free(text);
		return EXIT_SUCCESS;
	}
	if (scenario_find(&scenario, name, why, sizeof(why)) == 0) {
		scenario_free(&scenario);
		snprintf(why, sizeof(why), "%s is a file already.", name);
	}
	fprintf(stderr, "weir-sim: %s\n", why);
	return EXIT_USAGE;
}

static void list_all(const struct wanted *wanted)
{
	const struct plugins *plugins = &wanted->choice.plugins;
	const struct weir_limit_ops *ops;

	puts("limits:");
	for (size_t i = 0; i < plugins->count; i++)
		list_limit(plugins->limits[i], wanted->parameters);
	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		list_limit(ops, wanted->parameters);
	list_scenarios();
}

int command_list(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"parameters", 'a', NULL, 0, "Also the parameters of limits, with defaults", 0},
		{"plugin", 'p', "FILE", 0, "Add the limits of a shared object", 0},
		{"scenario", 's', "NAME", 0, "Print the text of a scenario instead", 0},
		{"random", 'R', "N", 0, "List N scenarios drawn at random instead", 0},
		{"seed", 'r', "N", 0, "The seed that they are drawn by (default 1)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "List limits and scenarios.",
	};
	struct wanted wanted = {.choice = {.first_seed = 1, .last_seed = 1}};
	int status = EXIT_SUCCESS;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	if (wanted.scenario != NULL)
		status = print_scenario(wanted.scenario);
	else if (wanted.choice.random > 0)
		list_random(&wanted.choice);
	else
		list_all(&wanted);
	plugins_free(&wanted.choice.plugins);
	return status;
}
