#include "choice.h"

#include "bench/sim/memory.h"
#include "bench/sim/quantity.h"

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
		argp_error(state, "%s is no number from %u to %u.", text, least, most);
	return (unsigned)number;
}

weir_dur choice_duration(const char *text, const struct argp_state *state)
{
	double duration;

	if (!duration_read(text, &duration) || duration < (double)WEIR_US)
		argp_error(state, "%s is no duration of a microsecond or more.", text);
	return (weir_dur)duration;
}

bool choice_add_limit(struct choice *choice, const char *text, char *why, size_t why_size)
{
	struct candidate *candidate = memory_new(sizeof(*candidate));

	choice->limits = memory_grow(choice->limits,
				     (choice->limit_count + 1) * sizeof(choice->limits[0]));
	choice->limits[choice->limit_count++] = candidate;
	return candidate_read(candidate, &choice->plugins, text, why, why_size);
}

void choice_drop_limits(struct choice *choice, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		candidate_free(choice->limits[i]);
		free(choice->limits[i]);
	}
	choice->limit_count -= count;
	memmove(choice->limits, choice->limits + count,
		choice->limit_count * sizeof(choice->limits[0]));
}

static void add_limit(struct choice *choice, const char *text, struct argp_state *state)
{
	char why[WHY_SIZE];

	if (!choice_add_limit(choice, text, why, sizeof(why)))
		argp_error(state, "%s", why);
}

/* A fixed one knows what it is told, and a settable one waits to be told. */
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

/* What is after a comma is another parameter if an equals sign comes first in it. */
static bool is_parameter(const char *text)
{
	return text[strcspn(text, "=:,")] == '=';
}

/* The end of the first of several limits. */
static char *end_of_limit(char *text)
{
	for (; *text != '\0'; text++)
		if (*text == ',' && !is_parameter(text + 1))
			break;
	return text;
}

static void add_limits(struct choice *choice, const char *text, struct argp_state *state)
{
	char *copy = memory_copy(text), *at = copy;

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
	choice->scenarios = memory_grow(choice->scenarios, (choice->scenario_count + 1) *
								   sizeof(choice->scenarios[0]));
	return &choice->scenarios[choice->scenario_count];
}

/* What a family's name has before it: many a family is called as its first scenario is. */
#define FAMILY "family:"

/* Those of a family; all of them if that is NULL. How many there are. */
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

/* As a file's, its name has a slash or a dot: others are of built-in scenarios. */
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
			   count < 0 ? strerror(errno) : "There is no .cfg in it");
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
	char *copy = memory_copy(text), *rest = NULL;

	for (char *name = strtok_r(copy, ",", &rest); name != NULL;
	     name = strtok_r(NULL, ",", &rest))
		add_named(choice, name, state);
	if (choice->scenario_count == 0)
		argp_error(state, "A scenario is needed.");
	free(copy);
}

static uint64_t seed_read(const char *text, char **end, struct argp_state *state)
{
	uint64_t seed;

	errno = 0;
	seed = strtoull(text, end, 10);
	if (!isdigit((unsigned char)text[0]) || errno != 0)
		argp_error(state, "%s is no seed: write 7, or 1..20.", text);
	return seed;
}

static void set_seeds(struct choice *choice, const char *text, struct argp_state *state)
{
	char *end;

	choice->first_seed = choice->last_seed = seed_read(text, &end, state);
	if (strncmp(end, "..", 2) == 0)
		choice->last_seed = seed_read(end + 2, &end, state);
	if (*end != '\0' || choice->last_seed < choice->first_seed ||
	    choice->last_seed - choice->first_seed >= SEEDS_MAX)
		argp_error(state,
			   "%s are no seeds: write 7, or 1..20, of which there are at most %d.",
			   text, SEEDS_MAX);
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
		set_seeds(choice, arg, state);
		return 0;
	case 'p':
		if (!plugin_load(&choice->plugins, arg, why, sizeof(why)))
			argp_error(state, "%s", why);
		return 0;
	case ARGP_KEY_END:
		if (choice->limits_text == NULL)
			argp_error(state, "A limit is needed.");
		add_limits(choice, choice->limits_text, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option limit_options[] = {
	{"limit", 'l', "LIMIT,...", 0, "Limits, as vegas:max=500; all: those that learn", 1},
	{"seed", 'r', "N[..M]", 0, "A seed of chance, or several", 1},
	{"plugin", 'p', "FILE", 0, "Have the limits of a shared object, too", 2},
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
		return 0;
	case 'j':
		choice->threads = choice_number(arg, 1, THREADS_MAX, state);
		return 0;
	case ARGP_KEY_END:
		if (choice->limits_text == NULL || choice->scenarios_text == NULL)
			argp_error(state, "A limit and a scenario are needed.");
		add_scenarios(choice, choice->scenarios_text, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"scenario", 's', "NAME,...", 0,
	 "Scenarios: names, files, folders of them, family:NAME; all: the built-in ones", 1},
	{"jobs", 'j', "N", 0, "Runs at a time (as many as there are processors)", 2},
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
