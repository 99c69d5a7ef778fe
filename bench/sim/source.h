/*
 * source.h - where calls come from that do not care how earlier ones fared: an open loop, the
 * hard case for a limiter.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "scenario.h"

struct source {
	struct sim *sim;
	const struct arrivals_model *model;
	struct rng rng;
	void (*arrive)(void *arg);
	void *arg;

	double from, to; /* calls a second at the beginning and the end of a stretch */
	weir_time begins, ends;
	double left;     /* of the gap before the next call, which is 1 in the mean; */
	weir_time as_of; /* when it was so much */
	unsigned on;     /* how many sources are on, of onoff and selfsimilar ones */
	struct source_switch *switches;
	unsigned switch_count;
	size_t replayed;
	struct event next;
};

/* It is silent until given a rate. The model must outlive it. */
void source_init(struct source *source, struct sim *sim, const struct arrivals_model *model,
		 uint64_t seed, void (*arrive)(void *arg), void *arg);
void source_free(struct source *source);

/* From now until so much later, calls a second, from one number to the other. */
void source_rate(struct source *source, double from, double to, weir_dur length);

/* Nothing comes any more. */
void source_stop(struct source *source);

#endif
