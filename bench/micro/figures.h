/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures.h - the table: each subject with each number of threads, measured in turns.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include "options.h"
#include "subjects.h"

/* One subject with one number of threads. */
struct figure {
	const struct subject *subject;
	unsigned threads;
	uint64_t times;         /* iterations per thread and repetition */
	double *ns;             /* nanoseconds per iteration, by repetition */
	uint64_t done, refused; /* iterations of all threads in all rounds */
};

struct figures {
	struct figure *all;
	unsigned count;
};

/* Select the subjects of the options, and the floor. The subjects must outlive the figures. */
struct figures figures_make(const struct subjects *subjects, const struct options *options);
void figures_free(struct figures *figures);

/* Run each subject once, shorter and without counting, to warm up memory and caches. */
void figures_warm_up(struct figures *figures);

/* Run one repetition: each subject in turn. Shows progress if standard error is a terminal. */
void figures_round(struct figures *figures, unsigned rep, const struct options *options);

void figures_print(struct figures *figures, const struct options *options);

/* Whether exactly the expected calls were refused; if not, prints a message. */
bool figures_hold(const struct figures *figures);

#endif
