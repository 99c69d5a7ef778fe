/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_template.c - weir fleet template: list, change and remove templates of limits, and find the
 * one for a name.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bars.h"
#include "cli/common/commands.h"
#include "json.h"

#define ATTEMPTS 8

const char *fleet_template_why(struct weir_store *store, int error, char *why, size_t size)
{
	switch (error) {
	case -EINVAL:
		snprintf(why, size, "A pattern has 1 to %d letters, digits and -_.:@*?.",
			 WEIR_FLEET_PATTERN_MAX);
		break;
	case -ENOENT:
		snprintf(why, size, "There is no such template.");
		break;
	case -EPROTO:
		snprintf(why, size,
			 "The templates have another format version, or are damaged: weir fleet "
			 "template remove --all removes them.");
		break;
	default:
		return fleet_why(store, error, why, size);
	}
	return why;
}

static int complain(struct weir_store *store, const char *pattern, int error)
{
	char why[512];

	name_complain(pattern, fleet_template_why(store, error, why, sizeof(why)));
	return EXIT_FAILURE;
}

/* Listing, showing and matching. */

enum what {
	LIST,
	SHOW,
	MATCH,
};

struct wanted {
	enum what what;
	char *const *names; /* patterns, with MATCH names */
	size_t count;
	bool json;
};

/* What is printed: with MATCH one for each name, in that order. */
struct results {
	struct fleet_templates templates;
	const char **names; /* with MATCH */
};

/* NOLINTNEXTLINE(readability-non-const-parameter): as argp has it */
static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;

	(void)arg;
	switch (key) {
	case 'j':
		w->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (w->what == LIST)
			argp_error(state, "It takes no pattern: use weir fleet template show");
		w->names = &state->argv[state->next - 1];
		w->count = (size_t)state->argc - (size_t)state->next + 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (w->what != LIST && w->count == 0)
			argp_error(state, "A %s is required",
				   w->what == SHOW ? "pattern" : "limit's name");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* 0, or a negative errno. */
static int find(struct weir_store *store, const struct wanted *w, const char *name,
		struct fleet_template_reading *found)
{
	weir_fleet_limit_init(&found->limit);
	if (w->what == MATCH)
		return weir_fleet_template_match(store, name, found->pattern, &found->limit);
	snprintf(found->pattern, sizeof(found->pattern), "%s", name);
	return weir_fleet_template_get(store, name, &found->limit);
}

static int complain_of(struct weir_store *store, const struct wanted *w, const char *name,
		       int error)
{
	if (w->what == MATCH && error == -ENOENT)
		name_complain(name, "No template matches.");
	else if (w->what == MATCH && error == -EINVAL)
		return fleet_complain(store, name, error);
	else
		return complain(store, name, error);
	return EXIT_FAILURE;
}

/* EXIT_FAILURE if some of it could not be read. */
static int read(struct weir_store *store, const struct wanted *w, struct results *results)
{
	struct fleet_templates *t = &results->templates;
	int status = EXIT_SUCCESS, r;

	if (w->what == LIST) {
		r = fleet_templates_read(store, t);
		return r == 0 ? EXIT_SUCCESS : complain(store, "", r);
	}
	t->at = calloc(w->count, sizeof(*t->at));
	results->names = calloc(w->count, sizeof(*results->names));
	if (t->at == NULL || results->names == NULL)
		return complain(store, "", -ENOMEM);
	for (size_t i = 0; i < w->count; i++) {
		r = find(store, w, w->names[i], &t->at[t->count]);
		if (r != 0)
			status = complain_of(store, w, w->names[i], r);
		else
			results->names[t->count++] = w->names[i];
	}
	return status;
}

static void print(const struct wanted *w, const struct results *results)
{
	if (w->what == MATCH)
		printf("%-24s ", "NAME");
	printf("%-24s %12s %-12s %12s %7s %8s %8s\n", "PATTERN", "CAPACITY", "ALLOTMENT",
	       "RESERVED", "MEMBERS", "LEASE", "LEARNING");
	for (size_t i = 0; i < results->templates.count; i++) {
		const struct fleet_template_reading *t = &results->templates.at[i];
		const struct weir_fleet_limit *l = &t->limit;
		char lease[16], learning[16] = "own";

		if (w->what == MATCH)
			printf("%-24s ", results->names[i]);
		if (l->learning_period != 0)
			bars_duration((double)l->learning_period, learning, sizeof(learning));
		printf("%-24s %12" PRIu64 " %-12s %12" PRIu64 " %7" PRIu32 " %8s %8s\n", t->pattern,
		       l->capacity, fleet_allotment(l->allotment), l->reserved, l->members_max,
		       bars_duration((double)l->lease, lease, sizeof(lease)), learning);
	}
}

static json_t *json_of(const struct fleet_template_reading *t)
{
	const struct weir_fleet_limit *l = &t->limit;

	return json_pack(
		"{s:s,s:o,s:s,s:o,s:o,s:f,s:o,s:o}", "pattern", t->pattern, "capacity",
		json_count(l->capacity), "allotment", fleet_allotment(l->allotment), "reserved",
		json_count(l->reserved), "members_max", json_count(l->members_max), "lease_seconds",
		(double)l->lease / (double)WEIR_S, "learning_period_seconds",
		l->learning_period != 0 ? json_real((double)l->learning_period / (double)WEIR_S)
					: json_null(),
		"version", json_count(l->version));
}

/* False if memory ran out. */
static bool print_json(const struct wanted *w, const struct results *results)
{
	json_t *all = json_array();
	bool good = true;

	for (size_t i = 0; i < results->templates.count && good; i++) {
		json_t *json = json_of(&results->templates.at[i]);

		if (w->what == MATCH)
			json_object_set_new(json, "name", json_string(results->names[i]));
		good = json_array_append_new(all, json) == 0;
	}
	return json_print(stdout, w->what == MATCH ? "matches" : "templates", all, false) && good;
}

static int command(int argc, char **argv, enum what what, const char *args_doc, const char *doc)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "Print JSON", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = args_doc,
		.doc = doc,
		.children = children,
	};
	struct wanted wanted = {.what = what};
	struct results results = {.names = NULL};
	struct weir_store *store;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	status = read(store, &wanted, &results);
	/* A list that could not be read is not printed as an empty one. */
	if (wanted.json && (status == EXIT_SUCCESS || what != LIST)) {
		if (!print_json(&wanted, &results))
			status = complain(store, "", -ENOMEM);
	} else if (status == EXIT_SUCCESS || results.templates.count > 0) {
		print(&wanted, &results);
	}
	weir_store_close(store);
	fleet_templates_forget(&results.templates);
	free(results.names);
	return status;
}

static int list(int argc, char **argv)
{
	return command(argc, argv, LIST, "", "Print all templates of a store.");
}

static int show(int argc, char **argv)
{
	return command(argc, argv, SHOW, "PATTERN...", "Print templates of a store.");
}

static int match(int argc, char **argv)
{
	return command(argc, argv, MATCH, "LIMIT...",
		       "Print the template that a limit would be made with, by its name. The limit "
		       "need not be there, and if it is, it may have been made otherwise.");
}

/* Making and changing. */

struct change {
	const char *pattern;
	struct fleet_settings settings;
};

static error_t set_option(int key, char *arg, struct argp_state *state)
{
	struct change *c = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (c->pattern == NULL)
			c->pattern = arg;
		else
			fleet_setting_word(&c->settings, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (c->pattern == NULL || !fleet_settings_any(&c->settings))
			argp_error(state, "A pattern and a setting are required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* 0, or a negative errno and a sentence. */
static int change(struct weir_store *store, const struct change *c, char *why, size_t why_size)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		struct weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		r = weir_fleet_template_get(store, c->pattern, &limit);
		if (r == -ENOENT && !c->settings.capacity) {
			snprintf(why, why_size, "It is not there yet, and needs a capacity.");
			return r;
		}
		if (r == -ENOENT)
			limit.lease = FLEET_LEASE_DEFAULT;
		else if (r != 0) {
			fleet_template_why(store, r, why, why_size);
			return r;
		}
		fleet_settings_apply(&c->settings, &limit);
		r = weir_fleet_template_set(store, c->pattern, &limit, why, why_size);
	}
	return r;
}

static int set(int argc, char **argv)
{
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.parser = set_option,
		.args_doc = "PATTERN SETTING=VALUE...",
		.doc = "Make a template, or change one. Limits that are there stay as they are.\v"
		       "In a pattern, * stands for any characters, also none, and ? for one. If "
		       "several patterns match a name, the one with the most other characters is "
		       "taken; weir fleet template match says which.\n"
		       "\n"
		       "Settings:\n" FLEET_SETTINGS_HELP "\n"
		       "A new template needs a capacity. Its default lease is 15 s.",
		.children = children,
	};
	struct change wanted = {.pattern = NULL};
	struct weir_store *store;
	char why[512];
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	r = change(store, &wanted, why, sizeof(why));
	if (r != 0)
		name_complain(wanted.pattern, why);
	weir_store_close(store);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Removing. */

struct removal {
	const char *pattern;
	bool all;
};

/* NOLINTNEXTLINE(readability-non-const-parameter): as argp has it */
static error_t remove_option(int key, char *arg, struct argp_state *state)
{
	struct removal *removal = state->input;

	switch (key) {
	case 'a' + 256:
		removal->all = true;
		return 0;
	case ARGP_KEY_ARG:
		if (removal->pattern != NULL)
			argp_error(state, "Only one template can be removed at a time");
		removal->pattern = arg;
		return 0;
	case ARGP_KEY_END:
		if ((removal->pattern != NULL) == removal->all)
			argp_error(state, "Either a pattern or --all is required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int drop(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"all", 'a' + 256, NULL, 0, "Remove all templates, also damaged ones", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.options = options,
		.parser = remove_option,
		.args_doc = "PATTERN",
		.doc = "Remove a template. Limits that were made with it stay as they are.",
		.children = children,
	};
	struct removal removal = {.all = false};
	struct weir_store *store;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &removal);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	r = weir_fleet_template_remove(store, removal.pattern);
	if (r == -ENOENT && removal.all)
		r = 0;
	if (r != 0)
		complain(store, removal.all ? "" : removal.pattern, r);
	weir_store_close(store);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int fleet_template(int argc, char **argv)
{
	static const struct command commands[] = {
		{"list", list, "print all templates"},
		{"show", show, "print templates"},
		{"match", match, "print the template that a limit would be made with"},
		{"set", set, "make or change a template"},
		{"remove", drop, "remove a template"},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct program program = {
		.name = "weir fleet template",
		.about = "Show and change templates: the settings that limits are made with when "
			 "their first member joins, by patterns of their names.",
		.options = children,
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	program_run(&program, argc, argv);
}
