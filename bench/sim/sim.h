/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim.h - virtual time: an ordered set of events.
 *
 * A user embeds a struct event in what it wants to act on later. Events for the same time fire in
 * the order they were scheduled, so that a run depends on its seed and on nothing else.
 */
#ifndef SIM_H
#define SIM_H

#include "heap.h"

#include <stdbool.h>
#include <weir/base.h>

struct event {
	struct heap_node node; /* key: the time to fire at */
	void (*fire)(void *owner);
	void *owner;
};

/* Ready to use when all zeroes. */
struct sim {
	weir_time now;
	struct heap events;
};

void sim_free(struct sim *sim);

/* Fire the event at the given time, which must not be past. A scheduled event is moved. */
void sim_schedule(struct sim *sim, struct event *event, weir_time at);

/* Does nothing if the event is not scheduled. */
void sim_cancel(struct sim *sim, struct event *event);

/* Advance time to the next event and fire it; false if there is none. */
bool sim_step(struct sim *sim);

#endif
