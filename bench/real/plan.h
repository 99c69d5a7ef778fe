/*
 * plan.h - a whole timetable in advance: every call with what it needs, and every phase.
 */
#ifndef PLAN_H
#define PLAN_H

#include "timetable.h"

struct planned_call {
	weir_time at; /* from the beginning */
	double work[STATIONS_MAX];
};

/* A phase begins; of index phase_count: all is over. */
struct planned_phase {
	weir_time at;
	unsigned phase;
};

struct plan {
	struct planned_call *calls;
	size_t call_count;
	struct planned_phase *phases; /* the last is the end */
	size_t phase_count;
};

void plan_make(struct plan *plan, const struct scenario *scenario, uint64_t seed);
void plan_free(struct plan *plan);

/* The phase at that time. */
unsigned plan_phase_at(const struct plan *plan, weir_time at);

#endif
