/*
 * figures.h - the table: each subject in each number of threads, measured in turns.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include "options.h"
#include "subjects.h"

/* One subject in one number of threads. */
struct figure {
	const struct subject *subject;
	unsigned threads;
	uint64_t times;         /* a thread and repetition */
	double *ns;             /* of one time; by repetition */
	uint64_t done, refused; /* by all threads in all rounds */
};

struct figures {
	struct figure *all;
	unsigned count;
};

/* Those that are asked for, and the floor. The subjects must outlive them. */
struct figures figures_make(const struct subjects *subjects, const struct options *options);
void figures_free(struct figures *figures);

/* Once, shorter and for nothing: memory and caches get used to it. */
void figures_warm_up(struct figures *figures);

/* One repetition: each subject in turn. Tells how far it is if anybody watches. */
void figures_round(struct figures *figures, unsigned rep, const struct options *options);

void figures_print(struct figures *figures, const struct options *options);

/* Whether everybody was admitted who should have been, and nobody else; if not, says so. */
bool figures_hold(const struct figures *figures);

#endif
