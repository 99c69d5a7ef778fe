/*
 * options.c - by argp, which writes the help too.
 */
#include "options.h"

#include "subjects.h"
#include "team.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPS_MAX 1000

static unsigned number(const char *text, char **end, unsigned max, struct argp_state *state)
{
	unsigned long n = strtoul(text, end, 10);

	if (*end == text || n == 0 || n > max)
		argp_error(state, "not a number from 1 to %u: %s", max, text);
	return (unsigned)n;
}

static unsigned only_number(const char *text, unsigned max, struct argp_state *state)
{
	char *end;
	unsigned n = number(text, &end, max, state);

	if (*end != '\0')
		argp_error(state, "not a number: %s", text);
	return n;
}

static void thread_counts(struct options *options, const char *text, struct argp_state *state)
{
	char *end;

	for (options->count = 0; options->count < COUNTS_MAX; text = end + 1) {
		options->counts[options->count++] = number(text, &end, TEAM_MAX, state);
		if (*end == '\0')
			return;
		if (*end != ',')
			break;
	}
	argp_error(state, "not up to %d numbers with commas between: %s", COUNTS_MAX, text);
}

static bool is_subject(const char *name)
{
	for (unsigned i = 0; subject_at(i) != NULL; i++)
		if (strcmp(subject_at(i)->name, name) == 0)
			return true;
	return false;
}

static int list(void)
{
	for (unsigned i = 0; subject_at(i) != NULL; i++)
		printf("%-16s %s\n", subject_at(i)->name, subject_at(i)->about);
	return EXIT_SUCCESS;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 't':
		thread_counts(options, arg, state);
		return 0;
	case 'r':
		options->reps = only_number(arg, REPS_MAX, state);
		return 0;
	case 'p':
		options->pairs = only_number(arg, 1u << 30, state);
		return 0;
	case 'T':
		options->tries = only_number(arg, 100, state);
		return 0;
	case 'o':
		if (!is_subject(arg))
			argp_error(state, "no such subject: %s", arg);
		options->only = arg;
		return 0;
	case 'l':
		exit(list());
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_read(struct options *options, int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"threads", 't', "N,...", 0, "Numbers of threads (1,2,4)", 0},
		{"reps", 'r', "N", 0, "Repetitions (11)", 0},
		{"pairs", 'p', "N", 0, "Pairs a thread and repetition (200000)", 0},
		{"tries", 'T', "N", 0, "Runs until the processors were free (3)", 0},
		{"only", 'o', "NAME", 0, "Nothing but this, and what it is compared with", 0},
		{"list", 'l', NULL, 0, "List what is measured", 0},
		{0},
	};
	static const struct argp argp = {
		.options = known,
		.parser = option,
		.doc = "Measure what an admission and its end cost.",
	};

	*options = (struct options){
		.counts = {1, 2, 4},
		.count = 3,
		.reps = 11,
		.tries = 3,
		.pairs = 200000,
	};
	argp_parse(&argp, argc, argv, 0, NULL, options);
}
