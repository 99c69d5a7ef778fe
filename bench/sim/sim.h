/*
 * sim.h - virtual time: an ordered set of events.
 *
 * Whoever has something to do later embeds a struct event. Events due at the
 * same time fire in the order they were scheduled in, so that a run depends on
 * its seed and on nothing else.
 */
#ifndef SIM_H
#define SIM_H

#include "heap.h"

#include <stdbool.h>
#include <weir/base.h>

struct event {
	struct heap_node node; /* by when it is due */
	void (*fire)(void *owner);
	void *owner;
};

/* Of all zeroes it is ready to use. */
struct sim {
	weir_time now;
	struct heap events;
};

void sim_free(struct sim *sim);

/* Have the event fire at that time, which is not past; if it is scheduled already, it is moved. */
void sim_schedule(struct sim *sim, struct event *event, weir_time at);

/* An event that is not scheduled is left alone. */
void sim_cancel(struct sim *sim, struct event *event);

/* Move time on to the next event and fire it; false if there is none. */
bool sim_step(struct sim *sim);

#endif
