/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.c - list limits and scenarios.
 */
#include "choice.h"
#include "command.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>

struct wanted {
	struct plugins plugins;
	bool parameters;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;
	char why[600];

	switch (key) {
	case 'p':
		if (!plugin_load(&wanted->plugins, arg, why, sizeof(why)))
			argp_error(state, "%s", why);
		return 0;
	case 'a':
		wanted->parameters = true;
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

int command_list(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"parameters", 'a', NULL, 0, "Also the parameters of limits, with defaults", 0},
		{"plugin", 'p', "FILE", 0, "Add the limits of a shared object", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "List limits and scenarios.",
	};
	struct wanted wanted = {.parameters = false};
	const struct weir_limit_ops *ops;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	puts("limits:");
	for (size_t i = 0; i < wanted.plugins.count; i++)
		list_limit(wanted.plugins.limits[i], wanted.parameters);
	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		list_limit(ops, wanted.parameters);
	list_scenarios();
	plugins_free(&wanted.plugins);
	return EXIT_SUCCESS;
}
