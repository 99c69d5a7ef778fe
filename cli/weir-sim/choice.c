/* SPDX-License-Identifier: BSD-2-Clause */
#include "choice.h"

#include "bench/sim/alloc_or_abort.h"
#include "bench/sim/quantity.h"
#include "bench/sim/scenario_random.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SEEDS_MAX   10000
#define THREADS_MAX 256

#define WHY_SIZE 600

unsigned choice_number(const char *text, unsigned least, unsigned most,
		       const struct argp_state *state)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end != '\0' || number < least || number > most)
		argp_error(state, "%s is not a number from %u to %u.", text, least, most);
	return (unsigned)number;
}

weir_dur choice_duration(const char *text, const struct argp_state *state)
{
	double duration;

	if (!duration_read(text, &duration) || duration < (double)WEIR_US)
		argp_error(state, "%s is not a duration of a microsecond or more.", text);
	return (weir_dur)duration;
}

static struct candidate *new_candidate(struct choice *choice)
{
	struct candidate *candidate = alloc_or_abort(sizeof(*candidate));

	choice->limits = realloc_or_abort(choice->limits,
					  (choice->limit_count + 1) * sizeof(struct candidate *));
	choice->limits[choice->limit_count++] = candidate;
	return candidate;
}

bool choice_add_limit(struct choice *choice, const char *text, char *why, size_t why_size)
{
	return candidate_read(new_candidate(choice), &choice->plugins, text, why, why_size);
}

void choice_add_oracle(struct choice *choice, double times)
{
	char text[64];

	snprintf(text, sizeof(text), "oracle x%g", times);
	*new_candidate(choice) = (struct candidate){.text = strdup_or_abort(text), .times = times};
}

void choice_drop_limits(struct choice *choice, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		candidate_free(choice->limits[i]);
		free(choice->limits[i]);
	}
	choice->limit_count -= count;
	memmove(choice->limits, choice->limits + count,
		choice->limit_count * sizeof(struct candidate *));
}

static void add_limit(struct choice *choice, const char *text, struct argp_state *state)
{
	char why[WHY_SIZE];

	if (!choice_add_limit(choice, text, why, sizeof(why)))
		argp_error(state, "%s", why);
}

/* Fixed and settable limits do not learn. */
static bool learns(const struct weir_limit_ops *ops)
{
	return (ops->flags & WEIR_LIMIT_SETTABLE) == 0 && strcmp(ops->name, "fixed") != 0;
}

static void add_all_limits(struct choice *choice, struct argp_state *state)
{
	const struct weir_limit_ops *ops;

	for (size_t i = 0; i < choice->plugins.count; i++)
		add_limit(choice, choice->plugins.limits[i]->name, state);
	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		if (learns(ops))
			add_limit(choice, ops->name, state);
}

/* Text after a comma is another parameter if its first delimiter is an equals sign. */
static bool is_parameter(const char *text)
{
	return text[strcspn(text, "=:,")] == '=';
}

/* The end of the first limit in a list. */
static char *end_of_limit(char *text)
{
	for (; *text != '\0'; text++)
		if (*text == ',' && !is_parameter(text + 1))
			break;
	return text;
}

static void add_limits(struct choice *choice, const char *text, struct argp_state *state)
{
	char *copy = strdup_or_abort(text), *at = copy;

	if (strcmp(text, CHOICE_ALL) == 0)
		add_all_limits(choice, state);
	while (strcmp(text, CHOICE_ALL) != 0 && at != NULL) {
		char *end = end_of_limit(at), *next = *end == '\0' ? NULL : end + 1;

		*end = '\0';
		if (strcmp(at, CHOICE_ALL) == 0)
			add_all_limits(choice, state);
		else
			add_limit(choice, at, state);
		at = next;
	}
	free(copy);
}

static struct scenario *scenario_room(struct choice *choice)
{
	choice->scenarios = realloc_or_abort(
		choice->scenarios, (choice->scenario_count + 1) * sizeof(choice->scenarios[0]));
	return &choice->scenarios[choice->scenario_count];
}

/* Prefix of the name of a family, since many have the name of their first scenario. */
#define FAMILY "family:"

/* Add the built-in scenarios of a family, or all if it is NULL. Returns their number. */
static size_t add_family(struct choice *choice, const char *family)
{
	size_t before = choice->scenario_count;

	for (unsigned i = 0; scenario_builtin(scenario_room(choice), i); i++) {
		struct scenario *scenario = &choice->scenarios[choice->scenario_count];

		if (family == NULL || strcmp(scenario->family, family) == 0)
			choice->scenario_count++;
		else
			scenario_free(scenario);
	}
	return choice->scenario_count - before;
}

static void add_one(struct choice *choice, const char *name, struct argp_state *state)
{
	char why[WHY_SIZE];

	if (scenario_find(scenario_room(choice), name, why, sizeof(why)) != 0)
		argp_error(state, "%s", why);
	choice->scenario_count++;
}

/* A folder's name, like a file's, contains a slash or a dot, unlike those built in. */
static bool is_folder(const char *name)
{
	struct stat status;

	return strpbrk(name, "/.") != NULL && stat(name, &status) == 0 && S_ISDIR(status.st_mode);
}

static int is_scenario(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".cfg") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_folder(struct choice *choice, const char *folder, struct argp_state *state)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, is_scenario, by_name);
	char path[4096];

	if (count <= 0)
		argp_error(state, "%s: %s.", folder,
			   count < 0 ? strerror(errno) : "The folder has no .cfg files");
	for (int i = 0; i < count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) >=
		    (int)sizeof(path))
			argp_error(state, "%s: %s.", folder, strerror(ENAMETOOLONG));
		add_one(choice, path, state);
		free(entries[i]);
	}
	free(entries);
}

static void add_named(struct choice *choice, const char *name, struct argp_state *state)
{
	if (strcmp(name, CHOICE_ALL) == 0) {
		add_family(choice, NULL);
	} else if (strncmp(name, FAMILY, strlen(FAMILY)) == 0) {
		if (add_family(choice, name + strlen(FAMILY)) == 0)
			argp_error(state, "There is no %s: see weir-sim list.", name);
	} else if (is_folder(name)) {
		add_folder(choice, name, state);
	} else {
		add_one(choice, name, state);
	}
}

static void add_scenarios(struct choice *choice, const char *text, struct argp_state *state)
{
	char *copy = strdup_or_abort(text), *rest = NULL;

	for (char *name = strtok_r(copy, ",", &rest); name != NULL;
	     name = strtok_r(NULL, ",", &rest))
		add_named(choice, name, state);
	if (choice->scenario_count == 0)
		argp_error(state, "A scenario is required.");
	free(copy);
}

void choice_random_name(char *name, size_t size, const struct choice *choice, unsigned number,
			struct argp_state *state)
{
	if (choice->first_seed > UINT32_MAX)
		argp_error(state, "--random takes seeds up to %u, not %ju.", UINT32_MAX,
			   (uintmax_t)choice->first_seed);
	snprintf(name, size, "%s%ju-%u", RANDOM_PREFIX, (uintmax_t)choice->first_seed, number);
}

/* A scenario more says more than a seed more: there is one seed unless more are given. */
static void add_random(struct choice *choice, struct argp_state *state)
{
	char name[64];

	if (choice->scenarios_given)
		argp_error(state, "--random and --scenario exclude each other.");
	if (!choice->seeds_given)
		choice->last_seed = choice->first_seed;
	for (unsigned i = 1; i <= choice->random; i++) {
		choice_random_name(name, sizeof(name), choice, i, state);
		add_one(choice, name, state);
	}
}

static uint64_t seed_read(const char *text, char **end, struct argp_state *state)
{
	uint64_t seed;

	errno = 0;
	seed = strtoull(text, end, 10);
	if (!isdigit((unsigned char)text[0]) || errno != 0)
		argp_error(state, "%s is not a seed: write 7, or 1..20.", text);
	return seed;
}

void choice_set_seeds(struct choice *choice, const char *text, struct argp_state *state)
{
	char *end;

	choice->seeds_given = true;
	choice->first_seed = choice->last_seed = seed_read(text, &end, state);
	if (strncmp(end, "..", 2) == 0)
		choice->last_seed = seed_read(end + 2, &end, state);
	if (*end != '\0' || choice->last_seed < choice->first_seed ||
	    choice->last_seed - choice->first_seed >= SEEDS_MAX)
		argp_error(state, "%s is not a range of at most %d seeds: write 7, or 1..20.", text,
			   SEEDS_MAX);
}

static error_t limit_option(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;
	char why[WHY_SIZE];

	switch (key) {
	case 'l':
		choice->limits_text = arg;
		return 0;
	case 'r':
		choice_set_seeds(choice, arg, state);
		return 0;
	case 'p':
		if (!plugin_load(&choice->plugins, arg, why, sizeof(why)))
			argp_error(state, "%s", why);
		return 0;
	case ARGP_KEY_END:
		if (choice->limits_text == NULL) {
			argp_error(state, "A limit is required.");
			return EINVAL;
		}
		add_limits(choice, choice->limits_text, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option limit_options[] = {
	{"limit", 'l', "LIMIT,...", 0, "Limits, such as vegas:max=500; all: those that learn", 1},
	{"seed", 'r', "N[..M]", 0, "Seed of the random numbers, or a range", 1},
	{"plugin", 'p', "FILE", 0, "Add the limits of a shared object", 2},
	{0},
};

static const struct argp limit_argp = {.options = limit_options, .parser = limit_option};

const struct argp_child choice_limit_children[] = {{&limit_argp, 0, NULL, 0}, {0}};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = choice;
		return 0;
	case 's':
		choice->scenarios_text = arg;
		choice->scenarios_given = true;
		return 0;
	case 'R':
		choice->random = choice_number(arg, 1, RANDOM_MAX, state);
		return 0;
	case 'j':
		choice->threads = choice_number(arg, 1, THREADS_MAX, state);
		return 0;
	case ARGP_KEY_END:
		if (choice->limits_text == NULL ||
		    (choice->scenarios_text == NULL && choice->random == 0))
			argp_error(state, "A limit and a scenario are required.");
		if (choice->random > 0)
			add_random(choice, state);
		else
			add_scenarios(choice, choice->scenarios_text, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"scenario", 's', "NAME,...", 0,
	 "Scenarios: names, files, folders, family:NAME, random-SEED-NUMBER; all: those built in",
	 1},
	{"random", 'R', "N", 0, "N scenarios drawn at random, by the first seed", 1},
	{"jobs", 'j', "N", 0, "Parallel runs (default: one per processor)", 2},
	{0},
};

static const struct argp argp = {
	.options = options,
	.parser = option,
	.children = choice_limit_children,
};

const struct argp_child choice_children[] = {{&argp, 0, NULL, 0}, {0}};

void choice_free(struct choice *choice)
{
	choice_drop_limits(choice, choice->limit_count);
	for (size_t i = 0; i < choice->scenario_count; i++)
		scenario_free(&choice->scenarios[i]);
	free(choice->limits);
	free(choice->scenarios);
	plugins_free(&choice->plugins);
}
