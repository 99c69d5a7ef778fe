/*
 * world.h - all there is in a run; known to run.c, which makes and ends it, and to call.c, which
 * has the calls' way through it.
 */
#ifndef WORLD_H
#define WORLD_H

#include "run.h"
#include "source.h"

struct chunk;
struct run;

/* A limiter, as the calls find it. A restart puts another in its place. */
struct door {
	struct weir_limiter *limiter;
	weir_time opens;
	const struct weir_limit_ops *ops;
	_Alignas(max_align_t) char config[WEIR_LIMIT_CONFIG_MAX];
	bool tried; /* it has the limit that is tried out */
};

/* Somebody who thinks, calls and waits for the answer before he thinks again. */
struct client {
	struct run *run;
	struct rng rng;
	struct event thinks;
	bool active;
};

struct call {
	struct run *run;
	struct client *client; /* NULL: of an open source */
	struct rng rng;        /* what happens to it does not depend on what happens to others */
	unsigned class, door, tries;
	struct weir_limiter *limiter; /* NULL: it passes none */
	struct weir_token token;
	weir_time began;
	weir_dur waited; /* in line at stations */
	unsigned stage;  /* the station it is at, if it is at the server */
	struct job job;
	struct event timer; /* for what comes first: timeout, cancellation, failure, another try */
	bool outside;       /* it fails before any work: it never comes to a station */
	bool gone;          /* its caller */
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

/* How busy the server's are, as its limiters see it. */
struct processors {
	struct weir_gauge gauge;    /* the first */
	double busy;                /* 0 to 1, smoothed */
	double areas[STATIONS_MAX]; /* what the stations had done at the last look */
	struct event look;
};

struct run {
	struct weir_clock clock; /* the first: it is the run's time */
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
	double shares; /* of all classes in this phase */
	uint64_t arrivals, seed_of_calls;

	struct weir_limiter **retired; /* by restarts */
	size_t retired_count;

	unsigned phase, rounds_left;
	bool over;
	struct event boundary; /* of phases */
	struct event tick;     /* of the series */
	weir_time phase_began, phase_length;
	double settled;     /* in this phase, in this round; infinite: not yet */
	struct tally tally; /* since the last of either */
	weir_time flushed;
	uint64_t limit_sum; /* of all limiters */
	weir_time accounted;
	unsigned inflight; /* at all limiters */
	weir_time inflight_since;

	struct call *spare;
	struct chunk *chunks;
};

static inline const struct phase *phase_now(const struct run *run)
{
	return &run->scenario->phases[run->phase];
}

/* Add up the limit as it was until now. To be called before it changes. */
void account(struct run *run);

/* The same for the calls in flight. */
static inline void account_inflight(struct run *run)
{
	double passed = (double)(run->sim.now - run->inflight_since);

	run->tally.inflight_area += run->inflight * passed;
	run->inflight_since = run->sim.now;
}

/* After anything that may have moved the limit of a call's door from what it was. */
void limit_moved(struct run *run, const struct call *call, uint32_t before);

/* A call comes: from a source and from behind the limiters, of a run; from a client. */
void call_arrived(void *owner);
void call_arrived_behind(void *owner);
void call_thought_of(void *owner);

/* Have a client that is active think before he calls; the others fall asleep. */
void client_think(struct client *client);

/* All calls that there were. */
void calls_free(struct run *run);

/* What a station tells of a call. */
void call_started(void *owner, weir_dur waited);
void call_worked_on(void *owner);

#endif
