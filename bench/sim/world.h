/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h - the state of a run. Private to run.c, which sets it up and ends it, and call.c, which
 * moves calls through it.
 */
#ifndef WORLD_H
#define WORLD_H

#include "run.h"
#include "source.h"

struct chunk;
struct run;

/* An entry to the server: a limiter, which a restart replaces. */
struct door {
	struct weir_limiter *limiter;
	weir_time opens;
	weir_dur clock_ahead; /* of the other limiters' clocks */
	const struct weir_limit_ops *ops;
	_Alignas(max_align_t) char config[WEIR_LIMIT_CONFIG_MAX];
	bool tried;     /* its limit is the one under test */
	uint32_t limit; /* as it is in limit_sum */
};

/* A closed-loop client: it thinks, calls, and waits for the answer before it thinks again. */
struct client {
	struct run *run;
	struct rng rng;
	struct event thinks;
	bool active;
};

struct call {
	struct run *run;
	struct client *client; /* NULL: from an open source */
	struct rng rng;        /* its own, so that its draws do not depend on other calls */
	unsigned class, door, tries;
	struct weir_limiter *limiter; /* NULL: a background call */
	struct weir_token token;
	weir_time began;
	weir_dur waited; /* in queues of stations */
	unsigned stage;  /* index of the station, while at the server */
	struct job job;
	struct event timer; /* whichever is first: timeout, cancellation, failure, retry */
	bool outside;       /* fails before any work: it never enters a station */
	bool gone;          /* its caller has given up */
	bool kept[STATIONS_MAX];
	struct call *next;
};

struct pauser {
	struct run *run;
	struct station *station;
	const struct station_plan *plan;
	struct rng rng;
	struct event event;
};

/* How busy the server's processors are, as the limiters see it. */
struct processors {
	struct weir_gauge gauge;    /* must be the first member */
	double busy;                /* 0 to 1, smoothed */
	double areas[STATIONS_MAX]; /* busy areas of the stations at the last look */
	struct event look;
};

struct run {
	struct weir_clock clock; /* must be the first member; shows virtual time */
	struct processors processors;
	const struct run_setup *setup;
	const struct scenario *scenario;
	struct run_result *result;
	struct sim sim;
	struct source source, background;
	struct station stations[STATIONS_MAX];
	struct station_ops station_ops[STATIONS_MAX];
	struct pauser pausers[STATIONS_MAX];
	struct rng doors_rng;
	struct door doors[LIMITERS_MAX];
	unsigned door_count, limiters_made;
	struct client *clients;
	unsigned client_count;
	double shares; /* sum over all classes, in this phase */
	uint64_t arrivals, seed_of_calls;

	struct weir_limiter **retired; /* replaced by restarts */
	size_t retired_count;

	unsigned phase, rounds_left;
	bool over;
	struct event boundary; /* of phases */
	struct event tick;     /* of the series */
	weir_time phase_began, phase_length;
	double settled;     /* in this phase, in this round; infinite: not yet */
	struct tally tally; /* since flushed */
	weir_time flushed;
	uint64_t limit_sum;  /* of all limiters */
	weir_time accounted; /* limit areas are added up to here */
	unsigned inflight;   /* at all limiters */
	weir_time inflight_since;

	struct call *spare;
	struct chunk *chunks;
};

static inline const struct phase *phase_now(const struct run *run)
{
	return &run->scenario->phases[run->phase];
}

/* Add the limit up to now to its area. Call before the limit changes. */
void account(struct run *run);

/* The same for the calls in flight. */
static inline void account_inflight(struct run *run)
{
	double passed = (double)(run->sim.now - run->inflight_since);

	run->tally.inflight_area += run->inflight * passed;
	run->inflight_since = run->sim.now;
}

/* Call after anything that may have changed the limit of that door. */
void limit_moved(struct run *run, struct door *door);

/* A call arrives: from the source or the background (owner: a run), or from a client. */
void call_arrived(void *owner);
void call_arrived_behind(void *owner);
void call_thought_of(void *owner);

/* Start the think time of a client that is active; others become idle. */
void client_think(struct client *client);

/* Free all calls. */
void calls_free(struct run *run);

/* Callbacks of stations; owner is a call. */
void call_started(void *owner, weir_dur waited);
void call_worked_on(void *owner);

#endif
