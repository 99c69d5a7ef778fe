/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_apply.c - weir fleet apply: make and change limits and templates as a file lists them.
 *
 * The file is checked as a whole, against what the store has, before anything is written. Then each
 * limit is written by itself, if it is as it was read.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fleet_file.h"

struct wanted {
	const char *path; /* "-": standard input */
	bool dry_run, prune;
};

/* What a limit or template in the file was in the store, and is to be. */
struct change {
	const char *name;
	bool is_template;
	bool is_new; /* it is not there */
	struct weir_fleet_limit from, to;
};

struct plan {
	struct limits_file file;
	struct fleet_readings present;
	struct fleet_templates templates;
	struct change *changes; /* one for each limit in the file */
};

/* NOLINTNEXTLINE(readability-non-const-parameter): as argp has it */
static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;

	switch (key) {
	case 'd':
		w->dry_run = true;
		return 0;
	case 'p':
		w->prune = true;
		return 0;
	case ARGP_KEY_ARG:
		if (w->path != NULL)
			argp_error(state, "Only one file can be applied at a time");
		w->path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "A file is required; - is standard input");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Complain about a line of the file. Returns false. */
static bool refuse(const struct wanted *w, unsigned line, const char *why)
{
	char where[SHOWN_ROOM];

	if (line > 0)
		snprintf(where, sizeof(where), "%s:%u", w->path, line);
	else
		snprintf(where, sizeof(where), "%s", w->path);
	name_complain(where, why);
	return false;
}

static bool read_file(const struct wanted *w, struct limits_file *file)
{
	const bool standard = strcmp(w->path, "-") == 0;
	FILE *in = standard ? stdin : fopen(w->path, "r");
	char why[512];
	int r;

	if (in == NULL) {
		snprintf(why, sizeof(why), "%s.", strerror(errno));
		return refuse(w, 0, why);
	}
	r = limits_file_read(in, file, why, sizeof(why));
	if (!standard)
		fclose(in);
	return r == 0 || refuse(w, file->line, why);
}

static const struct fleet_reading *present(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->present.count; i++)
		if (strcmp(p->present.at[i].name, name) == 0)
			return &p->present.at[i];
	return NULL;
}

static const struct fleet_template_reading *present_template(const struct plan *p,
							     const char *pattern)
{
	for (size_t i = 0; i < p->templates.count; i++)
		if (strcmp(p->templates.at[i].pattern, pattern) == 0)
			return &p->templates.at[i];
	return NULL;
}

/* What is there now; NULL: nothing. */
static const struct weir_fleet_limit *present_limit(const struct plan *p,
						    const struct file_limit *limit)
{
	const struct fleet_template_reading *template;
	const struct fleet_reading *reading;

	if (limit->is_template) {
		template = present_template(p, limit->name);
		return template != NULL ? &template->limit : NULL;
	}
	reading = present(p, limit->name);
	return reading != NULL && reading->limit.version != 0 ? &reading->limit : NULL;
}

static int check(const struct change *c, char *why, size_t why_size)
{
	return c->is_template ? weir_fleet_template_check(c->name, &c->to, why, why_size)
			      : weir_fleet_limit_check(c->name, &c->to, why, why_size);
}

static bool plan_one(const struct wanted *w, const struct plan *p, const struct file_limit *limit,
		     struct change *change)
{
	const struct fleet_reading *reading = present(p, limit->name);
	const struct weir_fleet_limit *from = present_limit(p, limit);
	char why[256];

	change->name = limit->name;
	change->is_template = limit->is_template;
	change->is_new = from == NULL;
	weir_fleet_limit_init(&change->from);
	if (!limit->is_template && reading != NULL && reading->other_version)
		return refuse(w, limit->line, fleet_why(NULL, -EPROTO, why, sizeof(why)));
	if (from != NULL)
		change->from = *from;
	else if (!limit->settings.capacity)
		return refuse(w, limit->line, "It is not there yet, and needs a capacity.");
	else
		change->from.lease = FLEET_LEASE_DEFAULT;
	change->from.capacity -= change->from.carried;
	change->to = change->from;
	fleet_settings_apply(&limit->settings, &change->to);
	if (check(change, why, sizeof(why)) != 0)
		return refuse(w, limit->line, why);
	return true;
}

/* False: something is wrong in the file, all of which has been printed. */
static bool plan_all(const struct wanted *w, struct plan *p)
{
	bool good = true;

	p->changes = calloc(p->file.count + 1, sizeof(*p->changes));
	if (p->changes == NULL)
		return refuse(w, 0, "Out of memory.");
	for (size_t i = 0; i < p->file.count; i++)
		good = plan_one(w, p, &p->file.at[i], &p->changes[i]) && good;
	return good;
}

static bool is_same(const struct weir_fleet_limit *a, const struct weir_fleet_limit *b)
{
	return a->capacity == b->capacity && a->allotment == b->allotment &&
	       a->reserved == b->reserved && a->members_max == b->members_max &&
	       a->lease == b->lease && a->learning_period == b->learning_period &&
	       a->allocated == b->allocated;
}

/* What precedes the name in a line about it. */
static const char *kind_of(bool is_template)
{
	return is_template ? "template " : "";
}

/* One setting of a limit: that it has if made, or what it was and is if changed. */
static void print_setting(const struct change *c, const char **before, const char *name,
			  const char *from, const char *to)
{
	if (strcmp(from, to) == 0 && !c->is_new)
		return;
	printf("%s%s ", *before, name);
	if (!c->is_new)
		printf("%s to ", from);
	printf("%s", to);
	*before = ", ";
}

static void print_number(const struct change *c, const char **before, const char *name,
			 uint64_t from, uint64_t to)
{
	char text[2][24];

	snprintf(text[0], sizeof(text[0]), "%" PRIu64, from);
	snprintf(text[1], sizeof(text[1]), "%" PRIu64, to);
	print_setting(c, before, name, text[0], text[1]);
}

static void print_change(const struct change *c, bool dry_run)
{
	const char *verb = c->is_new ? "made" : "changed", *before = ": ";
	char lease[2][32], learning[2][LEARNING_ROOM];

	printf("%s%s: %s%s", kind_of(c->is_template), c->name, dry_run ? "would be " : "", verb);
	snprintf(lease[0], sizeof(lease[0]), "%.10g s", (double)c->from.lease / (double)WEIR_S);
	snprintf(lease[1], sizeof(lease[1]), "%.10g s", (double)c->to.lease / (double)WEIR_S);
	print_number(c, &before, "capacity", c->from.capacity, c->to.capacity);
	print_setting(c, &before, "allotment", fleet_allotment(c->from.allotment),
		      fleet_allotment(c->to.allotment));
	print_number(c, &before, "reserved", c->from.reserved, c->to.reserved);
	print_number(c, &before, "members", c->from.members_max, c->to.members_max);
	print_setting(c, &before, "lease", lease[0], lease[1]);
	if (c->from.learning_period != c->to.learning_period)
		print_setting(c, &before, "learning",
			      fleet_learning(c->from.learning_period, learning[0]),
			      fleet_learning(c->to.learning_period, learning[1]));
	if (c->from.allocated != 0 || c->to.allocated != 0)
		print_number(c, &before, "allocated", c->from.allocated, c->to.allocated);
	putchar('\n');
}

/*
 * A template is written if it is as it was read. What was done to others meanwhile, also by this
 * program, does not matter.
 */
static int write_template(struct weir_store *store, const struct change *c, char *why,
			  size_t why_size)
{
	struct weir_fleet_limit now, to = c->to;
	int r;

	weir_fleet_limit_init(&now);
	r = weir_fleet_template_get(store, c->name, &now);
	if (r != 0 && r != -ENOENT) {
		fleet_template_why(store, r, why, why_size);
		return r;
	}
	if ((r == -ENOENT) != c->is_new || (r == 0 && !is_same(&now, &c->from))) {
		snprintf(why, why_size, "It has changed since it was read.");
		return -EAGAIN;
	}
	to.version = now.version;
	return weir_fleet_template_set(store, c->name, &to, why, why_size);
}

static int write_change(struct weir_store *store, const struct change *c, char *why,
			size_t why_size)
{
	return c->is_template ? write_template(store, c, why, why_size)
			      : weir_fleet_configure(store, c->name, &c->to, why, why_size);
}

/* False if the limit could not be written. */
static bool apply_one(struct weir_store *store, const struct wanted *w, const struct change *c)
{
	char why[512];

	if (!c->is_new && is_same(&c->from, &c->to)) {
		printf("%s%s: unchanged\n", kind_of(c->is_template), c->name);
		return true;
	}
	if (!w->dry_run && write_change(store, c, why, sizeof(why)) != 0) {
		name_complain(c->name, why);
		return false;
	}
	print_change(c, w->dry_run);
	return true;
}

/* Remove a limit that the file lacks, unless it has members. */
static bool prune_one(struct weir_store *store, const struct wanted *w,
		      const struct fleet_reading *r)
{
	int error = r->limit.members > 0 ? -EBUSY : 0;

	if (error == 0 && !w->dry_run)
		error = weir_fleet_remove(store, r->name);
	if (error == -EBUSY)
		printf("%s: not in the file, but has members\n", r->name);
	else if (error == 0)
		printf("%s: %sremoved\n", r->name, w->dry_run ? "would be " : "");
	else
		fleet_complain(store, r->name, error);
	return error == 0 || error == -EBUSY;
}

static bool prune_template(struct weir_store *store, const struct wanted *w, const char *pattern)
{
	const int error = w->dry_run ? 0 : weir_fleet_template_remove(store, pattern);
	char why[512];

	if (error == 0)
		printf("%s%s: %sremoved\n", kind_of(true), pattern, w->dry_run ? "would be " : "");
	else
		name_complain(pattern, fleet_template_why(store, error, why, sizeof(why)));
	return error == 0;
}

/* What the file lacks. */
static bool prune_all(struct weir_store *store, const struct wanted *w, const struct plan *p)
{
	bool good = true;

	for (size_t i = 0; good && i < p->templates.count; i++) {
		const char *pattern = p->templates.at[i].pattern;

		if (limits_file_find(&p->file, pattern, true) == NULL)
			good = prune_template(store, w, pattern);
	}
	for (size_t i = 0; good && i < p->present.count; i++) {
		const struct fleet_reading *r = &p->present.at[i];

		if (r->limit.version != 0 && limits_file_find(&p->file, r->name, false) == NULL)
			good = prune_one(store, w, r);
	}
	return good;
}

/* After a failure the rest is left as it is: the next attempt continues there. */
static bool apply_all(struct weir_store *store, const struct wanted *w, const struct plan *p)
{
	bool good = true;

	for (size_t i = 0; good && i < p->file.count; i++)
		good = apply_one(store, w, &p->changes[i]);
	return good && (!w->prune || prune_all(store, w, p));
}

/* Damaged templates do not matter where the file has none and leaves them as they are. */
static bool read_templates(struct weir_store *store, const struct wanted *w, struct plan *p)
{
	bool needed = w->prune;
	char why[512];
	int r;

	for (size_t i = 0; i < p->file.count; i++)
		needed |= p->file.at[i].is_template;
	r = needed ? fleet_templates_read(store, &p->templates) : 0;
	if (r != 0)
		name_complain("", fleet_template_why(store, r, why, sizeof(why)));
	return r == 0;
}

static bool run(const struct wanted *w, struct plan *p)
{
	struct weir_store *store;
	bool good;
	int r;

	if (!read_file(w, &p->file))
		return false;
	store = fleet_store();
	if (store == NULL)
		return false;
	r = fleet_read_all(store, &p->present);
	if (r != 0)
		fleet_complain(store, "", r);
	good = r == 0 && read_templates(store, w, p) && plan_all(w, p) && apply_all(store, w, p);
	weir_store_close(store);
	return fflush(stdout) == 0 && good;
}

int fleet_apply(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"dry-run", 'd', NULL, 0, "Print what would be done, and do nothing", 0},
		{"prune", 'p', NULL, 0,
		 "Remove templates that the file lacks, and limits, unless they have members", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "FILE",
		.doc = "Make and change limits and templates as a file lists them; - is standard "
		       "input.\v"
		       "A group for each limit and template, with settings as weir fleet set has "
		       "them:\n"
		       "\n"
		       "  [payments]\n"
		       "  capacity = 500\n"
		       "  [template web-*]\n"
		       "  capacity = 100\n"
		       "\n"
		       "Settings that the file lacks stay as they are. Nothing is written if "
		       "anything in the file is wrong. weir fleet list --export prints such a "
		       "file.",
		.children = children,
	};
	struct plan plan = {.changes = NULL};
	struct wanted wanted = {.path = NULL};
	bool good;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	good = run(&wanted, &plan);
	free(plan.changes);
	limits_file_free(&plan.file);
	fleet_forget(&plan.present);
	fleet_templates_forget(&plan.templates);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
