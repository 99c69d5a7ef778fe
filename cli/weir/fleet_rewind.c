/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_rewind.c - weir fleet rewind: set checkpoints of partitions of work back.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

struct wanted {
	const char *name;
	uint32_t partitions[WEIR_WORK_MAX];
	size_t count;
	bool all, to, nothing;
	uint64_t sequence;
	const char *value;
	char by[WEIR_FLEET_LABEL_MAX + 1];
};

static void take_to(struct wanted *w, const char *text, struct argp_state *state)
{
	w->to = true;
	w->nothing = strcmp(text, "nothing") == 0;
	if (!w->nothing && !fleet_whole(text, UINT64_MAX, &w->sequence))
		argp_error(state, "to=%s: neither a sequence nor nothing", text);
}

static void take_word(struct wanted *w, char *word, struct argp_state *state)
{
	uint64_t partition;

	if (strncmp(word, "to=", 3) == 0)
		take_to(w, word + 3, state);
	else if (strncmp(word, "value=", 6) == 0)
		w->value = word + 6;
	else if (strcmp(word, "all") == 0)
		w->all = true;
	else if (!fleet_whole(word, WEIR_WORK_MAX - 1, &partition))
		argp_error(state, "%s: neither a partition from 0 to %d nor all", word,
			   WEIR_WORK_MAX - 1);
	else if (w->count < WEIR_WORK_MAX)
		w->partitions[w->count++] = (uint32_t)partition;
	else
		argp_error(state, "Too many partitions");
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *w = state->input;

	switch (key) {
	case 'b':
		if (strlen(arg) > WEIR_FLEET_LABEL_MAX || !fleet_is_label(arg))
			argp_error(state, "--by=%s: not 1 to %d letters, digits and -_.:@", arg,
				   WEIR_FLEET_LABEL_MAX);
		snprintf(w->by, sizeof(w->by), "%s", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (w->name == NULL)
			w->name = arg;
		else
			take_word(w, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (w->name == NULL || (!w->all && w->count == 0) || !w->to)
			argp_error(state, "A name, a partition or all, and to= are required");
		if (w->all && w->count > 0)
			argp_error(state, "Both all and a partition are given");
		if (w->nothing && w->value != NULL)
			argp_error(state, "value= goes with to=SEQUENCE only");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* USER@HOST, where the user has a name; other characters than labels have become -. */
static void name_caller(char *by, size_t size)
{
	const struct passwd *user = getpwuid(geteuid());
	char host[256] = "";

	(void)!gethostname(host, sizeof(host) - 1);
	if (user != NULL)
		snprintf(by, size, "%.30s@%.32s", user->pw_name, host);
	else
		snprintf(by, size, "%ld@%.32s", (long)geteuid(), host);
	for (char *at = by; *at != '\0'; at++) {
		const char one[] = {*at, '\0'};

		if (!fleet_is_label(one))
			*at = '-';
	}
}

static int rewind_one(struct weir_store *store, const struct wanted *w, uint32_t partition)
{
	const size_t size = w->value != NULL ? strlen(w->value) : 0;

	return w->nothing ? weir_work_restart(store, w->name, partition, w->by)
			  : weir_work_rewind(store, w->name, partition, w->sequence, w->value, size,
					     w->by);
}

static int complain(struct weir_store *store, const struct wanted *w, uint32_t partition, int error)
{
	char why[512], text[560];

	switch (error) {
	case -ENOENT:
		snprintf(why, sizeof(why), "There is no such partition.");
		break;
	case -ERANGE:
		snprintf(why, sizeof(why),
			 "Its checkpoint, if there is one, is below %" PRIu64 " already.",
			 w->sequence);
		break;
	case -EMSGSIZE:
		snprintf(why, sizeof(why), "The value is longer than %d bytes.",
			 WEIR_CHECKPOINT_SIZE_MAX);
		break;
	default:
		fleet_why(store, error, why, sizeof(why));
		break;
	}
	if (partition == WEIR_WORK_ALL)
		snprintf(text, sizeof(text), "%s", why);
	else
		snprintf(text, sizeof(text), "%" PRIu32 ": %s", partition, why);
	name_complain(w->name, text);
	return EXIT_FAILURE;
}

static int change(struct weir_store *store, const struct wanted *w)
{
	int status = EXIT_SUCCESS, done = 0, r;

	for (size_t i = 0; i < (w->all ? 1 : w->count); i++) {
		const uint32_t partition = w->all ? WEIR_WORK_ALL : w->partitions[i];

		r = rewind_one(store, w, partition);
		if (r < 0)
			status = complain(store, w, partition, r);
		else
			done += r;
	}
	if (done > 0 || status == EXIT_SUCCESS)
		printf("%d checkpoint%s set back\n", done, done == 1 ? "" : "s");
	return status;
}

int fleet_rewind(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"by", 'b', "WHO", 0, "On whose behalf, as weir fleet show has it (USER@HOST)", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "NAME PARTITION...|all to=SEQUENCE|nothing [value=TEXT]",
		.doc = "Set checkpoints of partitions of work back, so that the work since then is "
		       "done again.\v"
		       "The owner of a partition loses it with its next checkpoint or refresh, and "
		       "the next one goes on from the checkpoint that is set here: at that sequence, "
		       "with TEXT as its value, or from the beginning, with to=nothing. Of all, "
		       "those below the sequence stay as they are.",
		.children = children,
	};
	static struct wanted wanted;
	struct weir_store *store;
	int status;

	name_caller(wanted.by, sizeof(wanted.by));
	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	store = fleet_store();
	if (store == NULL)
		return EXIT_FAILURE;
	status = change(store, &wanted);
	weir_store_close(store);
	return status;
}
