/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - the command line of weir-micro.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "subjects.h"

#include <stdint.h>

#define COUNTS_MAX 8

enum what { TIMES, BYTES, LIST, PROBE };

struct options {
	unsigned counts[COUNTS_MAX]; /* numbers of threads */
	unsigned count;
	unsigned reps, tries;
	uint64_t pairs;   /* per thread and repetition */
	const char *only; /* a group or a pattern of names; NULL: all */
	enum what what;
	const struct subjects *subjects;
};

/* Parse the arguments. Ends the program on an error, and after --help. */
void options_read(struct options *options, const struct subjects *subjects, int argc, char **argv);

#endif
