/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_set.c - weir fleet make, set and remove: create, change and remove a limit.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define ATTEMPTS 8

struct wanted {
	bool make;
	const char *name;
	struct weir_fleet_limit to; /* the fields that were given */
	bool capacity, reserved, members, allotment, lease;
};

static uint64_t whole(const char *word, uint64_t max, struct argp_state *state)
{
	const char *text = strchr(word, '=') + 1;
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > max)
		argp_error(state, "%s: not a whole number up to %" PRIu64, word, max);
	return value;
}

static enum weir_allotment allotment(const char *word, struct argp_state *state)
{
	const char *text = strchr(word, '=') + 1;

	for (enum weir_allotment i = WEIR_ALLOT_FAIR; i <= WEIR_ALLOT_NONE; i++)
		if (strcmp(text, fleet_allotment(i)) == 0)
			return i;
	argp_error(state, "%s: not fair, proportional, static or none", word);
	return WEIR_ALLOT_FAIR;
}

static weir_dur seconds(const char *word, struct argp_state *state)
{
	const char *text = strchr(word, '=') + 1;
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= 0.02 && value <= 3600))
		argp_error(state, "%s: not a number of seconds from 0.02 to 3600", word);
	return (weir_dur)(value * (double)WEIR_S);
}

static bool is_setting(const char *word, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && word[length] == '=';
}

static void take_word(struct wanted *w, const char *word, struct argp_state *state)
{
	if (strchr(word, '=') == NULL)
		argp_error(state, "%s is not SETTING=VALUE", word);
	if (is_setting(word, "capacity")) {
		w->to.capacity = whole(word, WEIR_SHARE_UNITS_MAX, state);
		w->capacity = true;
	} else if (is_setting(word, "reserved")) {
		w->to.reserved = whole(word, WEIR_SHARE_UNITS_MAX, state);
		w->reserved = true;
	} else if (is_setting(word, "members")) {
		w->to.members_max = (uint32_t)whole(word, UINT32_MAX, state);
		w->members = true;
	} else if (is_setting(word, "allotment")) {
		w->to.allotment = allotment(word, state);
		w->allotment = true;
	} else if (!is_setting(word, "lease")) {
		argp_error(state, "%s: there is no such setting", word);
	} else {
		w->to.lease = seconds(word, state);
		w->lease = true;
	}
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;
	const bool settings = w->capacity || w->reserved || w->members || w->allotment || w->lease;

	switch (key) {
	case ARGP_KEY_ARG:
		if (w->name == NULL)
			w->name = arg;
		else
			take_word(w, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (w->make && !w->capacity)
			argp_error(state, "A name and capacity=N are required");
		if (w->name == NULL || !settings)
			argp_error(state, "A name and a setting are required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Settings that were not given stay as they are. */
static void apply(const struct wanted *w, struct weir_fleet_limit *limit)
{
	if (w->capacity)
		limit->capacity = w->to.capacity;
	if (w->reserved)
		limit->reserved = w->to.reserved;
	if (w->members)
		limit->members_max = w->to.members_max;
	if (w->allotment)
		limit->allotment = w->to.allotment;
	if (w->lease)
		limit->lease = w->to.lease;
	if (limit->reserved == 0 && w->reserved)
		limit->members_max = 0;
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
		apply(w, &limit);
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

#define SETTINGS                                                                                   \
	"  capacity=N                 Units for all members together\n"                            \
	"  reserved=N                 Units that each member has at all times\n"                   \
	"  members=N                  Members that units are reserved for\n"                       \
	"  allotment=HOW              fair, proportional, static or none\n"                        \
	"  lease=SECONDS              The longest lease that a member may have\n"

int fleet_make(int argc, char **argv)
{
	return command(argc, argv, true,
		       "Create a limit before any member joins it. Members use it as it is.\v"
		       "Settings:\n" SETTINGS "\n"
		       "The default lease is 15 s.");
}

int fleet_set(int argc, char **argv)
{
	return command(
		argc, argv, false,
		"Change a limit for all its members. Each applies the change at its next refresh.\v"
		"Settings:\n" SETTINGS "\n"
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
