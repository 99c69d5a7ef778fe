/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_drain.c - weir fleet drain and undrain: take a member out of service, and return it to
 * service.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

struct wanted {
	bool labels; /* members are labels, and stay drained when their processes are restarted */
	char *name;
	char *const *members;
	size_t count;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'l':
		wanted->labels = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wanted->name == NULL) {
			wanted->name = arg;
			return 0;
		}
		wanted->members = &state->argv[state->next - 1];
		wanted->count = (size_t)state->argc - (size_t)state->next + 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (wanted->count == 0)
			argp_error(state, "A limit and a member are required");
		for (size_t i = 0; i < wanted->count; i++) {
			const char *member = wanted->members[i];

			if (!fleet_is_label(member))
				argp_error(state,
					   "%s is neither a member's number, as in weir fleet "
					   "show, nor a label",
					   member);
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/*
 * 0 if there is none, or more than one. A complete number means that member, even if another member
 * has it as its label.
 */
static uint64_t member_of(const struct fleet_reading *r, const char *text, char *why, size_t size)
{
	unsigned matches = 0;
	uint64_t found = 0;

	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_fleet_member *m = &r->members[i];
		char id[20];

		if (m->id == 0)
			continue; /* a label that no member has */
		snprintf(id, sizeof(id), "%016" PRIx64, m->id);
		if (strcmp(id, text) == 0)
			return m->id;
		if (strncmp(id, text, strlen(text)) != 0 && strcmp(m->label, text) != 0)
			continue;
		found = m->id;
		matches++;
	}
	if (matches == 1)
		return found;
	snprintf(why, size, "%s: %s.", text,
		 matches == 0
			 ? "it has no such member"
			 : "several members have that label, or numbers that begin so: give the "
			   "whole number");
	return 0;
}

static int change(struct weir_store *store, const struct wanted *wanted, bool drained)
{
	struct fleet_readings readings = {.count = 0};
	int status = EXIT_SUCCESS;
	int r = fleet_read(store, wanted->name, &readings);
	char why[512];

	if (r != 0)
		status = fleet_complain(store, wanted->name, r);
	for (size_t i = 0; readings.count > 0 && i < wanted->count; i++) {
		const uint64_t id = member_of(&readings.at[0], wanted->members[i], why,
					      sizeof(why));

		r = id != 0 ? weir_fleet_drain(store, wanted->name, id, drained) : -ESRCH;
		if (r == 0)
			continue;
		if (id != 0 && r == -ESRCH)
			snprintf(why, sizeof(why), "%s: it has left.", wanted->members[i]);
		else if (id != 0 && r == -EBUSY)
			snprintf(why, sizeof(why),
				 "%s: its label is drained: undrain it with --label.",
				 wanted->members[i]);
		else if (id != 0)
			fleet_why(store, r, why, sizeof(why));
		name_complain(wanted->name, why);
		status = EXIT_FAILURE;
	}
	fleet_forget(&readings);
	return status;
}

static int change_labels(struct weir_store *store, const struct wanted *wanted, bool drained)
{
	int status = EXIT_SUCCESS;
	char why[512];

	for (size_t i = 0; i < wanted->count; i++) {
		const char *label = wanted->members[i];
		const int r = weir_fleet_drain_label(store, wanted->name, label, drained);

		if (r == 0)
			continue;
		if (r == -ESRCH)
			snprintf(why, sizeof(why), "%s: no member has that label.", label);
		else
			fleet_why(store, r, why, sizeof(why));
		name_complain(wanted->name, why);
		status = EXIT_FAILURE;
	}
	return status;
}

static int command(int argc, char **argv, bool drained, const char *doc)
{
	static const struct argp_option options[] = {
		{"label", 'l', NULL, 0,
		 "MEMBER is a label: it stays drained when its process is restarted", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "LIMIT MEMBER...",
		.doc = doc,
		.children = children,
	};
	struct wanted wanted = {.count = 0};
	struct weir_store *store;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	status = wanted.labels ? change_labels(store, &wanted, drained)
			       : change(store, &wanted, drained);
	weir_store_close(store);
	return status;
}

int fleet_drain(int argc, char **argv)
{
	return command(
		argc, argv, true,
		"Make members return all that they hold of a limit at their next refresh, "
		"and give them nothing until they are undrained.\v"
		"MEMBER is a number as weir fleet show has it, how it begins, or a label that "
		"no other member has.");
}

int fleet_undrain(int argc, char **argv)
{
	return command(
		argc, argv, false,
		"Give drained members their share of a limit again.\v"
		"MEMBER is a number as weir fleet show has it, how it begins, or a label that "
		"no other member has.");
}
