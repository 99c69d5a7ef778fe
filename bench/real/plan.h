/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - a timetable computed in advance: every call with its work, and every phase.
 */
#ifndef PLAN_H
#define PLAN_H

#include "timetable.h"

struct planned_call {
	weir_time at;              /* since the beginning of the run */
	double work[STATIONS_MAX]; /* nanoseconds */
};

/* The beginning of a phase; index phase_count is the end of the scenario. */
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

/* The index of the phase at a time. */
unsigned plan_phase_at(const struct plan *plan, weir_time at);

#endif
