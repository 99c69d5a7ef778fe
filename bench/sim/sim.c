/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim.h"

#include <assert.h>

void sim_free(struct sim *sim)
{
	heap_free(&sim->events);
}

void sim_schedule(struct sim *sim, struct event *event, weir_time at)
{
	assert(at >= sim->now);
	sim_cancel(sim, event);
	heap_add(&sim->events, &event->node, at);
}

void sim_cancel(struct sim *sim, struct event *event)
{
	if (event->node.place != 0)
		heap_remove(&sim->events, &event->node);
}

bool sim_step(struct sim *sim)
{
	struct event *event = (struct event *)heap_first(&sim->events);

	if (event == NULL)
		return false;
	heap_remove(&sim->events, &event->node);
	sim->now = event->node.key;
	event->fire(event->owner);
	return true;
}
