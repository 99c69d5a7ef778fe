/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - parse the command line with argp.
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
	argp_error(state, "not a list of up to %d numbers, separated by commas: %s", COUNTS_MAX,
		   text);
}

static bool is_any(const struct subjects *subjects, const char *pattern)
{
	for (unsigned i = 0; i < subjects->count; i++)
		if (subject_matches(&subjects->all[i], pattern))
			return true;
	return false;
}

/* 1, 2, 4 and so on up to the number of processors, but at least 2, so that threads compete. */
static void default_counts(struct options *options)
{
	const unsigned processors = team_processors();
	const unsigned enough = processors > 2 ? processors : 2;
	const unsigned last = enough < TEAM_MAX ? enough : TEAM_MAX;

	for (unsigned n = 1; n < last && options->count < COUNTS_MAX - 1; n *= 2)
		options->counts[options->count++] = n;
	options->counts[options->count++] = last;
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
		if (!is_any(options->subjects, arg))
			argp_error(state, "no subject or group: %s", arg);
		options->only = arg;
		return 0;
	case 'l':
		options->what = LIST;
		return 0;
	case 'b':
		options->what = BYTES;
		return 0;
	case 'P':
		options->what = PROBE;
		return 0;
	case ARGP_KEY_END:
		if (options->count == 0)
			default_counts(options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_read(struct options *options, const struct subjects *subjects, int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"threads", 't', "N,...", 0, "Numbers of threads (1,2,4... up to the processors)",
		 0},
		{"reps", 'r', "N", 0, "Repetitions (11)", 0},
		{"pairs", 'p', "N", 0, "Pairs per thread and repetition (100000)", 0},
		{"tries", 'T', "N", 0, "Tries per round until the processors are free (2)", 0},
		{"only", 'o', "NAME", 0, "A group, or a pattern of names; the floor is added", 0},
		{"bytes", 'b', NULL, 0, "Print the memory of limiters, and measure nothing", 0},
		{"probe", 'P', NULL, 0, "Only check whether two threads do twice as much as one",
		 0},
		{"list", 'l', NULL, 0, "List what is measured", 0},
		{0},
	};
	static const struct argp argp = {
		.options = known,
		.parser = option,
		.doc = "Measure the cost of the library, as a table of tab-separated values.",
	};

	*options = (struct options){
		.reps = 11,
		.tries = 2,
		.pairs = 100000,
		.subjects = subjects,
	};
	argp_parse(&argp, argc, argv, 0, NULL, options);
}
