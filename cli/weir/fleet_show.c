/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_show.c - weir fleet list and weir fleet show: print figures, once or repeatedly.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bars.h"
#include "command.h"
#include "fleet_file.h"
#include "repeat.h"

enum format {
	TABLE,
	JSON,
	OPENMETRICS,
	EXPORT,
};

struct wanted {
	char *const *names;
	size_t count;
	struct repeat repeat;
	enum format format;
	bool details;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'j':
		wanted->format = JSON;
		return 0;
	case 'o':
		wanted->format = OPENMETRICS;
		return 0;
	case 'e':
		wanted->format = EXPORT;
		return 0;
	case ARGP_KEY_ARG:
		if (!wanted->details)
			argp_error(state, "It takes no name: use weir fleet show for one limit");
		wanted->names = &state->argv[state->next - 1];
		wanted->count = (size_t)state->argc - (size_t)state->next + 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		repeat_option(&wanted->repeat, key, arg, state);
		if (wanted->format == OPENMETRICS && wanted->repeat.interval > 0)
			argp_error(state,
				   "--openmetrics cannot be used with --interval or --count");
		if (wanted->format == EXPORT && wanted->repeat.interval > 0)
			argp_error(state, "--export cannot be used with --interval or --count");
		if (wanted->details && wanted->count == 0)
			argp_error(state,
				   "A limit is required: weir fleet list prints all of them");
		return 0;
	default:
		return repeat_option(&wanted->repeat, key, arg, state);
	}
}

static void print_list(const struct fleet_readings *readings)
{
	printf("%-24s %12s %12s %12s %12s %7s %-12s %10s\n", "NAME", "CAPACITY", "EFFECTIVE",
	       "GRANTED", "WANTED", "MEMBERS", "ALLOTMENT", "PARTITIONS");
	for (size_t i = 0; i < readings->count; i++) {
		const struct fleet_reading *r = &readings->at[i];
		const struct weir_fleet_limit *l = &r->limit;

		if (l->version != 0)
			printf("%-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64
			       " %7" PRIu32 " %-12s",
			       r->name, l->capacity, l->effective, l->granted, l->wanted,
			       l->members, fleet_allotment(l->allotment));
		else
			printf("%-24s %12s %12s %12s %12s %7" PRIu32 " %-12s", r->name, "-", "-",
			       "-", "-", r->workers, r->other_version ? "?" : "-");
		printf(" %10" PRIu32 "\n", r->owned);
	}
}

/* Returns what is to be printed before the next group. */
static const char *export_templates(struct weir_store *store)
{
	struct fleet_templates templates = {.count = 0};
	const int r = fleet_templates_read(store, &templates);
	const char *before = "";
	char why[512];

	if (r != 0)
		name_complain("Templates are left out",
			      fleet_template_why(store, r, why, sizeof(why)));
	for (size_t i = 0; r == 0 && i < templates.count; i++) {
		fputs(before, stdout);
		limits_file_print_template(stdout, templates.at[i].pattern, &templates.at[i].limit);
		before = "\n";
	}
	fleet_templates_forget(&templates);
	return before;
}

/* Templates with the list of all limits only. */
static void print_export(struct weir_store *store, bool details,
			 const struct fleet_readings *readings)
{
	const char *before = details ? "" : export_templates(store);

	for (size_t i = 0; i < readings->count; i++) {
		const struct fleet_reading *r = &readings->at[i];

		if (r->other_version)
			name_complain(r->name, "Left out: its record has another format version.");
		if (r->limit.version == 0)
			continue;
		fputs(before, stdout);
		limits_file_print(stdout, r->name, &r->limit);
		before = "\n";
	}
}

static void print_limit(const struct fleet_reading *r)
{
	const struct weir_fleet_limit *l = &r->limit;
	char lease[16], learning[16];

	printf("%s: capacity %" PRIu64 ", effective %" PRIu64 ", granted %" PRIu64
	       ", wanted %" PRIu64 "\n",
	       r->name, l->capacity, l->effective, l->granted, l->wanted);
	printf("  allotment %s, lease %s, ", fleet_allotment(l->allotment),
	       bars_duration((double)l->lease, lease, sizeof(lease)));
	if (l->learning_period != 0)
		printf("learning %s, ",
		       bars_duration((double)l->learning_period, learning, sizeof(learning)));
	if (l->reserved > 0)
		printf("%" PRIu64 " reserved for each of %" PRIu32 " members, ", l->reserved,
		       l->members_max);
	printf("%" PRIu32 " member%s\n", l->members, l->members == 1 ? "" : "s");
	if (l->allocated != 0)
		printf("  allocated by %s\n",
		       l->allocator[0] != '\0' ? l->allocator : "none of them yet");
	if (l->reason[0] != '\0')
		printf("  nothing is granted: %s\n", l->reason);
}

static const char *state_of(const struct weir_fleet_limit *l, const struct weir_fleet_member *m)
{
	if (m->drained == 0)
		return fleet_is_surplus(l, m) ? "  nothing reserved: one too many" : "";
	return m->fence != 0 ? "  drained" : "  drained, not there";
}

/* "-" where there is no member. */
static const char *member_text(uint64_t id, char *text, size_t size)
{
	if (id != 0)
		snprintf(text, size, "%016" PRIx64, id);
	else
		snprintf(text, size, "-");
	return text;
}

static void print_members(const struct fleet_reading *r)
{
	char id[20], label[LABEL_WIDTH + 1];

	if (r->member_count > 0)
		printf("  %-16s %-*s %8s %8s %8s %6s %5s %s\n", "MEMBER", LABEL_WIDTH, "LABEL",
		       "WANTS", "GRANT", "SHARE", "WEIGHT", "PRIO", "FENCE");
	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_fleet_member *m = &r->members[i];

		printf("  %-16s %-*s", member_text(m->id, id, sizeof(id)), LABEL_WIDTH,
		       fleet_label(m->label, label));
		if (m->fence != 0)
			printf(" %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu32 " %5" PRId32
			       " %" PRIu64 "%s\n",
			       m->wants, m->grant, fleet_share(m), m->weight, m->priority, m->fence,
			       state_of(&r->limit, m));
		else
			printf(" %8s %8s %8s %6s %5s -%s\n", "-", "-", "-", "-", "-",
			       state_of(&r->limit, m));
	}
}

/* What is to be said of a member: why it holds nothing; how it is configured otherwise. */
static const char *reason_of(const struct fleet_reading *r, const struct weir_fleet_member *m)
{
	/* Its line says that it is drained, and the limit's what is true of all. */
	return m->drained == 0 && strcmp(m->reason, r->limit.reason) != 0 ? m->reason : "";
}

static const char *mismatch_of(const struct fleet_reading *r, const struct weir_fleet_member *m)
{
	(void)r;
	return m->mismatch;
}

/* One line for all members of which the same is to be said. */
static void print_remarks(const struct fleet_reading *r,
			  const char *(*remark)(const struct fleet_reading *reading,
						const struct weir_fleet_member *member))
{
	for (size_t i = 0; i < r->member_count; i++) {
		const char *text = remark(r, &r->members[i]);
		size_t before = 0, after = 0;

		for (size_t k = 0; k < r->member_count; k++)
			if (strcmp(remark(r, &r->members[k]), text) == 0)
				*(k < i ? &before : &after) += 1;
		if (text[0] == '\0' || before > 0)
			continue;
		printf("  %s", r->members[i].label);
		if (after > 1)
			printf(" and %zu more", after - 1);
		printf(": %s\n", text);
	}
}

/* The last time that its checkpoint was set back. */
static void print_rewinds(const struct weir_work_partition *p)
{
	const time_t at = (time_t)p->rewound_at;
	char when[32] = "?";
	struct tm utc;

	if (p->rewinds == 0)
		return;
	if (gmtime_r(&at, &utc) != NULL)
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	printf("  set back %" PRIu64 " time%s, %s by %s", p->rewinds, p->rewinds == 1 ? "" : "s",
	       when, p->rewound_by);
}

static void print_partitions(const struct fleet_reading *r)
{
	char owner[20], requester[20], label[LABEL_WIDTH + 1];

	if (r->workers == 0 && r->partition_count == 0)
		return;
	printf("%s: %" PRIu32 " partition%s with an owner, %" PRIu32 " member%s\n", r->name,
	       r->owned, r->owned == 1 ? "" : "s", r->workers, r->workers == 1 ? "" : "s");
	if (r->work.capacity > 0)
		printf("  capacity %" PRIu64 " in partitions of %" PRIu64 "%s\n", r->work.capacity,
		       r->work.factor, r->work.changes > 0 ? ", as it was set" : "");
	if (r->partition_count > 0)
		printf("  %-16s %-*s %4s %-16s %11s %5s %s\n", "OWNER", LABEL_WIDTH, "LABEL",
		       "PART", "ASKED BY", "SEQUENCE", "BYTES", "FENCE");
	for (size_t i = 0; i < r->partition_count; i++) {
		const struct weir_work_partition *p = &r->partitions[i];

		printf("  %-16s %-*s %4" PRIu32 " %-16s ",
		       member_text(p->owner, owner, sizeof(owner)), LABEL_WIDTH,
		       fleet_label(p->owner_label, label), p->partition,
		       member_text(p->requester, requester, sizeof(requester)));
		if (p->checkpoints != 0)
			printf("%11" PRIu64 " %5zu", p->sequence, p->size);
		else
			printf("%11s %5s", "-", "-");
		if (p->fence != 0)
			printf(" %" PRIu64, p->fence);
		else
			printf(" -");
		print_rewinds(p);
		putchar('\n');
	}
}

static void print_details(const struct fleet_readings *readings)
{
	for (size_t i = 0; i < readings->count; i++) {
		const struct fleet_reading *r = &readings->at[i];

		if (r->limit.version != 0) {
			print_limit(r);
			print_members(r);
			print_remarks(r, reason_of);
			print_remarks(r, mismatch_of);
		}
		print_partitions(r);
	}
}

/* EXIT_FAILURE if a limit that was named could not be read. */
static int read(struct weir_store *store, const struct wanted *wanted,
		struct fleet_readings *readings)
{
	int status = EXIT_SUCCESS, r;

	if (!wanted->details) {
		r = fleet_read_all(store, readings);
		return r == 0 ? EXIT_SUCCESS : fleet_complain(store, "", r);
	}
	for (size_t i = 0; i < wanted->count; i++) {
		r = fleet_read(store, wanted->names[i], readings);
		if (r != 0)
			status = fleet_complain(store, wanted->names[i], r);
	}
	return status;
}

/* False if the output cannot be written. */
static bool print(struct weir_store *store, const struct wanted *wanted,
		  const struct fleet_readings *readings)
{
	const bool again = wanted->repeat.interval > 0;
	bool good = true;

	if (wanted->format == JSON)
		good = fleet_json(stdout, readings, wanted->details, again);
	else if (wanted->format == OPENMETRICS)
		good = fleet_metrics(stdout, readings);
	else if (wanted->format == EXPORT)
		print_export(store, wanted->details, readings);
	else if (wanted->details)
		print_details(readings);
	else
		print_list(readings);
	if (!good)
		name_complain("", "Out of memory.");
	return good && fflush(stdout) == 0;
}

static int print_again_and_again(struct weir_store *store, struct wanted *wanted)
{
	bool good;
	int status;

	do {
		struct fleet_readings readings = {.count = 0};

		status = read(store, wanted, &readings);
		/* A list that could not be read is not printed as an empty one. */
		good = (status != EXIT_SUCCESS && !wanted->details) ||
		       print(store, wanted, &readings);
		fleet_forget(&readings);
	} while (good && repeat_again(&wanted->repeat));
	return good ? status : EXIT_FAILURE;
}

/* The store's notes go to standard error, since the output may be JSON. */
static void note(struct weir_store *store)
{
	struct weir_store_caps caps;

	weir_store_caps_take(store, &caps);
	if (caps.note[0] != '\0')
		name_complain("", caps.note);
}

static int command(int argc, char **argv, bool details, const char *args_doc, const char *doc)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "Print JSON; with --interval one object per line", 0},
		{"openmetrics", 'o', NULL, 0, "Print OpenMetrics text, for Prometheus", 0},
		{"export", 'e', NULL, 0, "Print a file for weir fleet apply", 0},
		REPEAT_OPTIONS,
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
	struct wanted wanted = {.details = details};
	struct weir_store *store;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	note(store);
	status = print_again_and_again(store, &wanted);
	weir_store_close(store);
	return status;
}

int fleet_list(int argc, char **argv)
{
	return command(
		argc, argv, false, "",
		"Print all limits of a store, with the totals of what their members want and "
		"hold, and how many partitions of work of that name have an owner.");
}

int fleet_show(int argc, char **argv)
{
	return command(
		argc, argv, true, "LIMIT...",
		"Print limits of a store, their members, and partitions of work of that name.\v"
		"GRANT is the part of the shared capacity; SHARE includes reserved units. A "
		"member gets a new number after its session has ended; its label stays. The "
		"middle of a long label is left out, except in JSON.");
}
