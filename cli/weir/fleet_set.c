/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_set.c - weir fleet make, set and remove: create, change and remove a limit.
 */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define ATTEMPTS 8

struct wanted {
	bool make;
	const char *name;
	struct fleet_settings settings;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;
	const struct fleet_settings *s = &w->settings;

	switch (key) {
	case ARGP_KEY_ARG:
		if (w->name == NULL)
			w->name = arg;
		else
			fleet_setting_word(&w->settings, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (w->make && !s->capacity)
			argp_error(state, "A name and capacity=N are required");
		if (w->name == NULL || !fleet_settings_any(s))
			argp_error(state, "A name and a setting are required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* 0, or a negative errno and a sentence. */
static int change(struct weir_store *store, const struct wanted *w, char *why, size_t why_size)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		struct weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		r = w->make ? 0 : weir_fleet_inspect(store, w->name, &limit, NULL, NULL);
		if (r != 0) {
			fleet_why(store, r, why, why_size);
			return r;
		}
		limit.capacity -= limit.carried; /* by a region: not of this limit itself */
		fleet_settings_apply(&w->settings, &limit);
		r = weir_fleet_configure(store, w->name, &limit, why, why_size);
		if (w->make)
			break;
	}
	return r;
}

static int command(int argc, char **argv, bool make, const char *doc)
{
	static const struct argp_child children[] = FLEET_CHILDREN;
	const struct argp argp = {
		.parser = option,
		.args_doc = make ? "LIMIT capacity=N [SETTING=VALUE...]" : "LIMIT SETTING=VALUE...",
		.doc = doc,
		.children = children,
	};
	struct wanted wanted = {.make = make};
	struct weir_store *store;
	char why[512];
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	r = change(store, &wanted, why, sizeof(why));
	if (r != 0)
		name_complain(wanted.name, why);
	weir_store_close(store);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int fleet_make(int argc, char **argv)
{
	return command(argc, argv, true,
		       "Create a limit before any member joins it. Members use it as it is.\v"
		       "Settings:\n" FLEET_SETTINGS_HELP "\n"
		       "The default lease is 15 s.");
}

int fleet_set(int argc, char **argv)
{
	return command(
		argc, argv, false,
		"Change a limit for all its members. Each applies the change at its next refresh.\v"
		"Settings:\n" FLEET_SETTINGS_HELP "\n"
		"All of them are changed, or none.");
}

static error_t remove_option(int key, char *arg, struct argp_state *state)
{
	char **name = state->input;

	if (key == ARGP_KEY_ARG && *name == NULL) {
		*name = arg;
		return 0;
	}
	if (key == ARGP_KEY_NO_ARGS)
		argp_error(state, "A limit is required");
	if (key == ARGP_KEY_ARG)
		argp_error(state, "Only one limit can be removed at a time");
	return ARGP_ERR_UNKNOWN;
}

int fleet_remove(int argc, char **argv)
{
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.parser = remove_option,
		.args_doc = "LIMIT",
		.doc = "Remove a limit that has no members.",
		.children = children,
	};
	char *name = NULL;
	struct weir_store *store;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &name);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	r = weir_fleet_remove(store, name);
	if (r != 0)
		fleet_complain(store, name, r);
	weir_store_close(store);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
