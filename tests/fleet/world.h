/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a fleet in simulated time, and a store between them that can be made to fail.
 *
 * A store in memory uses the simulated clock. Other stores have clocks of their own, so their
 * sessions get a long time to live, and the world ends them when they expire in simulated time.
 */
#ifndef WEIR_TESTS_FLEET_WORLD_H
#define WEIR_TESTS_FLEET_WORLD_H

#include <weir/fleet.h>

#include "../stress/check.h"
#include "late_commit.h"
#include "test_store.h"

#define WORLD_MEMBERS_MAX  64
#define WORLD_SESSIONS_MAX 1024

/* How the store behaves for one member. */
enum manner {
	ANSWERS,
	UNREACHABLE, /* requests have no effect and no answer */
	BLIND,       /* sessions are renewed, but reads fail */
	LOSES,       /* commits happen, but are not answered */
	TOO_LATE,    /* commits fail, as if something had changed */
	DELAYS,      /* commits happen when world_deliver() is called, without an answer */
	OVERTAKEN,   /* a delayed commit arrives just before the next one */
};

struct world;

/* A member: its configuration, and its connection to the store. */
struct actor {
	struct weir_store store; /* first: what the fleet calls */
	struct world *world;
	enum manner manner;
	struct weir_fleet *fleet; /* NULL: not present */
	struct weir_share *share;
	weir_time next;
	uint64_t wants;
	unsigned weight;
	const char *label; /* NULL: the same for all */
	unsigned keeps;    /* how often it has kept its session */
};

struct world {
	struct weir_clock clock; /* first */
	weir_time now;
	struct test_store *test_store;
	struct weir_store *store; /* the real one */
	weir_time proven;         /* since when it has lost nothing; WEIR_FOREVER: always */
	bool down;                /* for all members */
	bool full;                /* for all members: it refuses writes */
	weir_dur lease, refresh;
	struct weir_share_config limit;
	uint64_t capacity; /* current */
	bool measured;     /* demand is what members count, and is not set */
	uint64_t chance;
	/* weir_fleet_config.on_change of members; arg is the actor. */
	void (*on_change)(void *arg, const struct weir_share_change *change);
	struct actor actors[WORLD_MEMBERS_MAX];
	unsigned count;
	struct late_commit *late; /* NULL: none */

	/* For stores with their own clock. */
	struct session {
		uint64_t id;
		weir_dur ttl;
		weir_time end;
	} sessions[WORLD_SESSIONS_MAX];
	unsigned session_count;

	/* Statistics. */
	unsigned samples, over;
	uint64_t most, sum, least;
	unsigned commits;
};

/* Use this store for all worlds from now on; NULL: one in memory, the default. */
void world_use(struct test_store *test_store);

/* capacity is the limit's; the rest of it is as in world.limit. */
void world_begin(struct world *world, uint64_t capacity, weir_dur lease, weir_dur refresh);
void world_end(struct world *world);

/* Make the store forget everything. proven: since when it claims to have lost nothing. */
void world_forget(struct world *world, weir_time proven);

/* Start a member, or restart it. */
void world_enter(struct world *world, unsigned member, uint64_t wants);

/* Kill a member, without any notification. */
void world_kill(struct world *world, unsigned member);

void world_want(struct world *world, unsigned member, uint64_t wants);

/* Let time pass. Once a second, the units of all members are added up. */
void world_run(struct world *world, weir_dur time);

/* The same, while one member is stopped. */
void world_run_without(struct world *world, weir_dur time, unsigned member);

uint64_t world_units(const struct world *world, unsigned member);
uint64_t world_sum(const struct world *world);

/* Deliver the delayed commit. Returns its result. */
int world_deliver(struct world *world);

#endif
