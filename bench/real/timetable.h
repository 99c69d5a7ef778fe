/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timetable.h - the arrivals and phases of a scenario, with the times that the simulator draws. The
 * user advances sim as time passes. Two timetables with the same scenario and seed are the same.
 */
#ifndef TIMETABLE_H
#define TIMETABLE_H

#include "source.h"

struct timetable {
	/* Set by the user: the scenario, the seed and the callbacks. */
	const struct scenario *scenario;
	uint64_t seed;
	void (*arrived)(void *arg);
	void (*phase_begins)(void *arg, unsigned phase);
	void (*phase_ends)(void *arg, unsigned phase);
	void (*over)(void *arg); /* there are no more arrivals */
	void *arg;

	struct sim sim;
	unsigned phase;    /* index; the number of phases when over */
	uint64_t arrivals; /* calls so far, including the current one */

	/* Used by the timetable only. */
	struct source source;
	struct event boundary;
	unsigned rounds_left;
	weir_time phase_began;
	uint64_t seed_of_calls;
};

/* Begin with the first phase. The fields above sim must be set. */
void timetable_begin(struct timetable *t);
void timetable_free(struct timetable *t);

/* The length of the current phase. */
weir_dur timetable_phase_length(const struct timetable *t);

/* Draw the latest call's work at each station, in nanoseconds, from its own generator. */
void timetable_draw(const struct timetable *t, double *work);

#endif
