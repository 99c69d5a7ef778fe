/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_resize.c - weir fleet resize: change a capacity that is divided into partitions.
 */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

struct wanted {
	const char *name;
	uint64_t capacity, factor; /* 0: not given */
};

/* Returns the value, which is not 0. */
static uint64_t setting(const char *word, struct argp_state *state)
{
	uint64_t value;

	if (!fleet_whole(strchr(word, '=') + 1, WEIR_SHARE_UNITS_MAX, &value) || value == 0)
		argp_error(state, "%s: not a whole number above 0", word);
	return value;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (w->name == NULL)
			w->name = arg;
		else if (strncmp(arg, "capacity=", 9) == 0)
			w->capacity = setting(arg, state);
		else if (strncmp(arg, "factor=", 7) == 0)
			w->factor = setting(arg, state);
		else
			argp_error(state, "%s is neither capacity=N nor factor=N", arg);
		return 0;
	case ARGP_KEY_END:
		if (w->name == NULL || (w->capacity == 0 && w->factor == 0))
			argp_error(state, "A name and a setting are required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int change(struct weir_store *store, const struct wanted *w)
{
	struct weir_work_size now;
	int r;

	weir_work_size_init(&now);
	r = weir_work_size_take(store, w->name, &now);
	if (r != 0)
		return r;
	return weir_work_resize(store, w->name, w->capacity != 0 ? w->capacity : now.capacity,
				w->factor);
}

static void complain(struct weir_store *store, const char *name, int error)
{
	char why[512];

	if (error == -ENOENT)
		snprintf(why, sizeof(why), "There are no partitions of that name.");
	else if (error == -EINVAL && fleet_is_label(name))
		snprintf(why, sizeof(why),
			 "It is not a capacity, or there would not be 1 to %d partitions.",
			 WEIR_WORK_MAX);
	else
		fleet_why(store, error, why, sizeof(why));
	name_complain(name, why);
}

int fleet_resize(int argc, char **argv)
{
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.parser = option,
		.args_doc = "NAME [capacity=N] [factor=N]",
		.doc = "Change a capacity that is divided into partitions, and what each is worth, for "
		       "all members.\v"
		       "Each member applies it at its next refresh. With the same factor, partitions "
		       "stay with their owners; with another one, all are claimed anew. Members that "
		       "join later use what is set here, whatever they are configured with.",
		.children = children,
	};
	struct wanted wanted = {.name = NULL};
	struct weir_store *store;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	r = change(store, &wanted);
	if (r != 0)
		complain(store, wanted.name, r);
	weir_store_close(store);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
