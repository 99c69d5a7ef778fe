/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - an open-loop source of calls: arrivals do not depend on what became of earlier calls.
 * This is the hard case for a limiter.
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

	double from, to; /* calls a second at the beginning and the end of the stretch */
	weir_time begins, ends;
	double left;     /* of the gap before the next call, in units of the mean gap; */
	weir_time as_of; /* the time for which left holds */
	unsigned on;     /* sources that are on, of ARRIVALS_ONOFF and ARRIVALS_SELFSIMILAR */
	struct source_switch *switches;
	unsigned switch_count;
	size_t replayed;
	struct event next;
};

/* A source is silent until it gets a rate. The model must outlive it. */
void source_init(struct source *source, struct sim *sim, const struct arrivals_model *model,
		 uint64_t seed, void (*arrive)(void *arg), void *arg);
void source_free(struct source *source);

/* For length nanoseconds from now, change the rate linearly from one value to the other. */
void source_rate(struct source *source, double from, double to, weir_dur length);

/* Stop all arrivals. */
void source_stop(struct source *source);

#endif
