/*
 * timetable.h - what happens when in a scenario, as the simulator draws it: calls that come, phases
 * that begin and end. Whoever keeps it moves sim on as time passes; two who keep the same one
 * with the same seed see the same.
 */
#ifndef TIMETABLE_H
#define TIMETABLE_H

#include "source.h"

struct timetable {
	/* What it is of, and who is told. */
	const struct scenario *scenario;
	uint64_t seed;
	void (*arrived)(void *arg);
	void (*phase_begins)(void *arg, unsigned phase);
	void (*phase_ends)(void *arg, unsigned phase);
	void (*over)(void *arg); /* nothing comes any more */
	void *arg;

	struct sim sim;
	unsigned phase;    /* the number of phases: it is over */
	uint64_t arrivals; /* calls so far, the one that has just come included */

	/* Its own. */
	struct source source;
	struct event boundary;
	unsigned rounds_left;
	weir_time phase_began;
	uint64_t seed_of_calls;
};

/* With the first phase. The fields above sim are set. */
void timetable_begin(struct timetable *t);
void timetable_free(struct timetable *t);

/* The length of the present phase. */
weir_dur timetable_phase_length(const struct timetable *t);

/* What the latest call needs of each station, in nanoseconds: from the call's own generator. */
void timetable_draw(const struct timetable *t, double *work);

#endif
