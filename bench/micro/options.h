/*
 * options.h - the command line of weir-micro.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "subjects.h"

#include <stdint.h>

#define COUNTS_MAX 8

enum what { TIMES, BYTES, LIST };

struct options {
	unsigned counts[COUNTS_MAX]; /* of threads */
	unsigned count;
	unsigned reps, tries;
	uint64_t pairs;   /* a thread and repetition */
	const char *only; /* a pattern of names, or a group; NULL: all */
	enum what what;
	const struct subjects *subjects;
};

/* Does not return if there is something wrong with them, or if help was asked for. */
void options_read(struct options *options, const struct subjects *subjects, int argc, char **argv);

#endif
