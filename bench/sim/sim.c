/*
 * sim.c - a binary heap of events. Each event knows its place in it, so that
 * cancelling a timeout, which most calls do, costs no search.
 */
#include "sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

static void put(struct sim *sim, size_t place, struct event *event)
{
	sim->heap[place - 1] = event;
	event->place = place;
}

static void sift_up(struct sim *sim, struct event *event, size_t place)
{
	while (place > 1 && before(event, sim->heap[place / 2 - 1])) {
		put(sim, place, sim->heap[place / 2 - 1]);
		place /= 2;
	}
	put(sim, place, event);
}

static void sift_down(struct sim *sim, struct event *event, size_t place)
{
	for (;;) {
		size_t child = 2 * place;

		if (child > sim->count)
			break;
		if (child < sim->count && before(sim->heap[child], sim->heap[child - 1]))
			child++;
		if (before(event, sim->heap[child - 1]))
			break;
		put(sim, place, sim->heap[child - 1]);
		place = child;
	}
	put(sim, place, event);
}

static void *must(void *memory)
{
	if (memory == NULL) {
		perror("memory");
		abort();
	}
	return memory;
}

void *sim_alloc(size_t size)
{
	return must(calloc(1, size));
}

void sim_free(struct sim *sim)
{
	free(sim->heap);
	*sim = (struct sim){.now = sim->now};
}

void sim_schedule(struct sim *sim, struct event *event, weir_time at)
{
	assert(at >= sim->now);
	sim_cancel(sim, event);
	if (sim->count == sim->room) {
		sim->room = sim->room == 0 ? 64 : 2 * sim->room;
		sim->heap = must(realloc(sim->heap, sim->room * sizeof(struct event *)));
	}
	event->at = at;
	event->serial = sim->serial++;
	sim->count++;
	sift_up(sim, event, sim->count);
}

void sim_cancel(struct sim *sim, struct event *event)
{
	size_t place = event->place;
	struct event *last;

	if (place == 0)
		return;
	event->place = 0;
	last = sim->heap[sim->count - 1];
	sim->count--;
	if (last == event)
		return;
	if (place > 1 && before(last, sim->heap[place / 2 - 1]))
		sift_up(sim, last, place);
	else
		sift_down(sim, last, place);
}

bool sim_step(struct sim *sim)
{
	struct event *event;

	if (sim->count == 0)
		return false;
	event = sim->heap[0];
	sim_cancel(sim, event);
	sim->now = event->at;
	event->fire(event->owner);
	return true;
}
