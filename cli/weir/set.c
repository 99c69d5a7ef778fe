/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * set.c - weir set: changes a shared limiter while it serves.
 *
 * The program attaches to the limiter for a moment, as the processes that use it do.
 */
#include "command.h"
#include "name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

struct wanted {
	char *const *words; /* NAME and SETTING=VALUE */
	int count;
	uint32_t limit; /* 0: unchanged */
	int shadow;     /* -1: unchanged */
};

/* The changes to a partition: the fields that were given. */
struct change {
	struct weir_partition to;
	char name[WEIR_PARTITION_NAME_MAX + 1];
};

struct changes {
	struct change at[WEIR_PARTITIONS_MAX + 1];
	uint32_t count;
};

static bool number(const char *text, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0' && *value >= 0 && *value <= max;
}

static bool whole(const char *text, uint32_t max, uint32_t *value)
{
	double real;

	if (!number(text, max, &real) || real != (double)(uint32_t)real)
		return false;
	*value = (uint32_t)real;
	return true;
}

static void set_limit(struct wanted *wanted, const char *text, struct argp_state *state)
{
	if (!whole(text, WEIR_LIMIT_MAX, &wanted->limit) || wanted->limit == 0)
		argp_error(state, "limit=%s: not a whole number from 1 to %u", text,
			   (unsigned)WEIR_LIMIT_MAX);
}

static void set_shadow(struct wanted *wanted, const char *text, struct argp_state *state)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		argp_error(state, "shadow=%s: not on or off", text);
	wanted->shadow = strcmp(text, "on") == 0;
}

/* In PARTITION.FIELD=VALUE, the dot before the field; NULL if word has another form. */
static const char *point_of(const char *word)
{
	static const char *const fields[] = {"share", "cap", "max", "delay"};
	const size_t length = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const size_t field = strlen(fields[i]);

		if (length > field + 1 && word[length - field - 1] == '.' &&
		    strncmp(word + length - field, fields[i], field) == 0)
			return word + length - field - 1;
	}
	return NULL;
}

static void check_word(struct wanted *wanted, const char *word, struct argp_state *state)
{
	if (strchr(word, '=') == NULL)
		argp_error(state, "%s is not SETTING=VALUE", word);
	if (strncmp(word, "limit=", 6) == 0)
		set_limit(wanted, word + 6, state);
	else if (strncmp(word, "shadow=", 7) == 0)
		set_shadow(wanted, word + 7, state);
	else if (strncmp(word, "limit_min=", 10) == 0 || strncmp(word, "limit_max=", 10) == 0)
		argp_error(state,
			   "%s: the bounds cannot be changed, since processes must agree on "
			   "them when they attach",
			   word);
	else if (point_of(word) == NULL)
		argp_error(state, "%s: there is no such setting", word);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as argp has it */
static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARG:
		wanted->words = &state->argv[state->next - 1];
		wanted->count = state->argc - state->next + 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (wanted->count < 2)
			argp_error(state, "A name and a setting are required");
		for (int i = 1; i < wanted->count; i++)
			check_word(wanted, wanted->words[i], state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int refuse(char *why, size_t size, const char *what, const char *problem)
{
	snprintf(why, size, "%s: %s.", what, problem);
	return -EINVAL;
}

/* The partition's present settings, so that others stay. NULL and a sentence if there is none. */
static struct change *change_of(struct changes *changes, const struct weir_limiter *limiter,
				const char *name, char *why, size_t why_size)
{
	const uint16_t index = weir_partition_find(limiter, name);
	struct weir_partition_snapshot s;
	struct change *change;

	for (uint32_t i = 0; i < changes->count; i++)
		if (strcmp(changes->at[i].name, name) == 0)
			return &changes->at[i];
	weir_partition_snapshot_init(&s);
	if (weir_partition_snapshot_take(limiter, index, &s) != 0 || strcmp(s.name, name) != 0) {
		refuse(why, why_size, name, "there is no such partition");
		return NULL;
	}
	change = &changes->at[changes->count++];
	snprintf(change->name, sizeof(change->name), "%s", name);
	change->to = (struct weir_partition){
		.name = change->name,
		.share = s.share,
		.cap = s.cap_share,
		.max = s.max,
		.reject_delay = s.delay,
	};
	return change;
}

/* The library takes 0 as the default, so only a share and a delay may be 0. */
static bool set_field(struct weir_partition *p, const char *field, const char *text)
{
	double real;

	if (strcmp(field, "share") == 0)
		return number(text, 1, &p->share);
	if (strcmp(field, "cap") == 0)
		return number(text, 1, &p->cap) && p->cap > 0;
	if (strcmp(field, "max") == 0)
		return whole(text, WEIR_LIMIT_MAX, &p->max) && p->max > 0;
	if (!number(text, 3600, &real))
		return false;
	p->reject_delay = (weir_dur)(real * (double)WEIR_S);
	return true;
}

static int read_change(struct changes *changes, const struct weir_limiter *limiter,
		       const char *word, char *why, size_t why_size)
{
	const char *point = point_of(word), *value = strchr(word, '=') + 1;
	char name[WEIR_PARTITION_NAME_MAX + 1], field[8];
	struct change *change;

	if (point - word > WEIR_PARTITION_NAME_MAX)
		return refuse(why, why_size, word, "there is no such partition");
	snprintf(name, sizeof(name), "%.*s", (int)(point - word), word);
	snprintf(field, sizeof(field), "%.*s", (int)(value - point) - 2, point + 1);
	change = change_of(changes, limiter, name, why, why_size);
	if (change == NULL)
		return -EINVAL;
	if (!set_field(&change->to, field, value))
		return refuse(
			why, why_size, word,
			"a share and a cap are from 0 to 1, a max is in permits, and a delay is "
			"in seconds");
	return 0;
}

static int set_parts(const struct wanted *wanted, struct weir_limiter *limiter, char *why,
		     size_t why_size)
{
	struct weir_partition partitions[WEIR_PARTITIONS_MAX + 1];
	struct changes changes = {.count = 0};
	int r = 0;

	for (int i = 1; i < wanted->count && r == 0; i++)
		if (point_of(wanted->words[i]) != NULL)
			r = read_change(&changes, limiter, wanted->words[i], why, why_size);
	if (r != 0 || changes.count == 0)
		return r;
	for (uint32_t i = 0; i < changes.count; i++)
		partitions[i] = changes.at[i].to;
	return weir_partitions_set(limiter, partitions, changes.count, why, why_size);
}

/* Whether the limit can be set to that; checked before anything is changed. */
static int check_limit(const struct wanted *wanted, const struct weir_limiter *limiter, char *why,
		       size_t why_size)
{
	struct weir_shm_info info;
	int r;

	weir_shm_info_init(&info);
	r = weir_shm_info_take(limiter, &info);
	if (wanted->limit == 0 || r != 0)
		return r;
	if (!info.settable) {
		snprintf(why, why_size,
			 "Its limit is set by %s: only that of settable can be changed.",
			 info.limit);
		return -ENOTSUP;
	}
	if (wanted->limit >= info.limit_min && wanted->limit <= info.limit_max)
		return 0;
	snprintf(why, why_size,
		 "Its limit must be from %" PRIu32 " to %" PRIu32 ", not %" PRIu32 ".",
		 info.limit_min, info.limit_max, wanted->limit);
	return -EINVAL;
}

static int change(const struct wanted *wanted, struct weir_limiter *limiter, char *why,
		  size_t why_size)
{
	char text[128];
	int r = check_limit(wanted, limiter, why, why_size);

	if (r == 0)
		r = set_parts(wanted, limiter, why, why_size);
	if (r != 0)
		return r;
	if (wanted->shadow >= 0)
		weir_shadow_set(limiter, wanted->shadow != 0);
	if (wanted->limit > 0)
		r = weir_limit_set(limiter, wanted->limit);
	if (r != 0)
		snprintf(why, why_size, "Its limit cannot be set: %s.",
			 strerror_r(-r, text, sizeof(text)));
	return r;
}

int command_set(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = option,
		.args_doc = "NAME SETTING=VALUE...",
		.doc = "Change the shared limiter of that name while it serves.\v"
		       "Settings:\n"
		       "  limit=N                    The limit, of a settable one\n"
		       "  shadow=on|off              Shadow mode: refuse nothing, and count\n"
		       "  PARTITION.share=PART       Its guaranteed part of the limit, 0 to 1\n"
		       "  PARTITION.cap=PART         Its cap as a part of the limit, up to 1\n"
		       "  PARTITION.max=N            Its cap in permits\n"
		       "  PARTITION.delay=SECONDS    How long refusals are delayed\n"
		       "\n"
		       "Either all settings of partitions are changed, or none.",
	};
	struct wanted wanted = {.shadow = -1};
	struct choice choice = {.count = 1};
	struct weir_limiter *limiter;
	struct names names;
	char why[512];
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	choice.asked = wanted.words;
	r = names_find(&names, &choice, why, sizeof(why));
	/* It was named explicitly, so it may belong to any user. */
	if (r == 0)
		r = weir_shm_open_of(names.at[0].text, names.at[0].owner, 0666, NULL, 0, &limiter,
				     why, sizeof(why));
	if (r == 0) {
		r = change(&wanted, limiter, why, sizeof(why));
		weir_shm_detach(limiter);
	}
	if (r != 0)
		name_complain(names.count > 0 ? names.at[0].text : "", why);
	names_free(&names);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
