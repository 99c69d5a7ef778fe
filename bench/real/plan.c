/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include "bench/sim/alloc_or_abort.h"

#include <stdlib.h>

struct planner {
	struct plan *plan;
	struct timetable timetable;
};

/* Make room for one more item, doubling the array when it is full. */
static void *room_for(void *items, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0)
		return items;
	return realloc_or_abort(items, (count == 0 ? 1 : 2 * count) * size);
}

static void note_call(void *arg)
{
	struct planner *planner = arg;
	struct plan *plan = planner->plan;
	struct planned_call *call;

	plan->calls = room_for(plan->calls, plan->call_count, sizeof(*plan->calls));
	call = &plan->calls[plan->call_count++];
	*call = (struct planned_call){.at = planner->timetable.sim.now};
	timetable_draw(&planner->timetable, call->work);
}

static void note_phase(void *arg, unsigned phase)
{
	struct planner *planner = arg;
	struct plan *plan = planner->plan;

	plan->phases = room_for(plan->phases, plan->phase_count, sizeof(*plan->phases));
	plan->phases[plan->phase_count++] = (struct planned_phase){
		.at = planner->timetable.sim.now,
		.phase = phase,
	};
}

static void ignore(void *arg, unsigned phase)
{
	(void)arg;
	(void)phase;
}

static void note_end(void *arg)
{
	const struct planner *planner = arg;

	note_phase(arg, planner->timetable.scenario->phase_count);
}

void plan_make(struct plan *plan, const struct scenario *scenario, uint64_t seed)
{
	struct planner planner = {
		.plan = plan,
		.timetable = {.scenario = scenario,
			      .seed = seed,
			      .arrived = note_call,
			      .phase_begins = note_phase,
			      .phase_ends = ignore,
			      .over = note_end},
	};

	*plan = (struct plan){.call_count = 0};
	planner.timetable.arg = &planner;
	timetable_begin(&planner.timetable);
	while (sim_step(&planner.timetable.sim))
		;
	timetable_free(&planner.timetable);
}

void plan_free(struct plan *plan)
{
	free(plan->calls);
	free(plan->phases);
}

unsigned plan_phase_at(const struct plan *plan, weir_time at)
{
	size_t i = 0;

	while (i + 1 < plan->phase_count && plan->phases[i + 1].at <= at)
		i++;
	return plan->phases[i].phase;
}
