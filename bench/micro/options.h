/*
 * options.h - the command line of weir-micro.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdint.h>

#define COUNTS_MAX 8

struct options {
	unsigned counts[COUNTS_MAX]; /* of threads */
	unsigned count;
	unsigned reps, tries;
	uint64_t pairs;   /* a thread and repetition */
	const char *only; /* a subject's name; NULL: all */
};

/* Does not return if there is something wrong with them, or if help was asked for. */
void options_read(struct options *options, int argc, char **argv);

#endif
