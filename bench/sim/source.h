/*
 * source.h - where calls come from.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "draw.h"
#include "sim.h"

/* Calls arrive one by one, spaced by draws of a law. */
struct source {
	struct sim *sim;
	struct rng rng;
	struct law gap; /* mean in nanoseconds */
	struct event next;
	void (*arrive)(void *arg);
	void *arg;
};

/* It is silent until given a rate. */
void source_init(struct source *source, struct sim *sim, uint64_t seed, void (*arrive)(void *arg),
		 void *arg);

/* From now on so many a second, 0 for none; exponential gaps make a Poisson process. */
void source_rate(struct source *source, enum law_kind gaps, double per_second);

#endif
