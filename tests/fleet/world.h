/*
 * Members of a fleet in simulated time, and a store between them that can be made to fail.
 *
 * The store is one in memory, by the same time; or one of another kind, in which sessions live for
 * long and are ended when their time is over here.
 */
#ifndef WEIR_TESTS_FLEET_WORLD_H
#define WEIR_TESTS_FLEET_WORLD_H

#include <weir/fleet.h>

#include "../stress/check.h"
#include "test_store.h"

#define WORLD_MEMBERS_MAX  64
#define WORLD_SESSIONS_MAX 1024

/* How a store answers to one member. */
enum manner {
	ANSWERS,
	UNREACHABLE, /* nothing happens, and nothing is heard */
	BLIND,       /* sessions are kept, and nothing is read */
	LOSES,       /* commits happen, and nothing is heard of them */
	TOO_LATE,    /* commits find that something has changed */
	DELAYS,      /* commits happen when world_deliver() is called; nothing is heard */
	OVERTAKEN,   /* what was delayed arrives just before the next commit */
};

struct world;

/* A member: what it is configured as, and its way to the store. */
struct actor {
	struct weir_store store; /* first: what the fleet calls */
	struct world *world;
	enum manner manner;
	struct weir_fleet *fleet; /* NULL: it is not there */
	struct weir_share *share;
	weir_time next;
	uint64_t wants;
	unsigned weight;
	const char *label; /* NULL: the same for all */
};

/* A commit that is on its way. */
struct parcel {
	uint64_t session;
	struct weir_store_check checks[8];
	struct weir_store_write writes[8];
	char keys[16][256];
	char values[8][4096];
	size_t check_count, write_count;
};

struct world {
	struct weir_clock clock; /* first */
	weir_time now;
	struct place *place;
	struct weir_store *store; /* the real one */
	weir_time proven;         /* since when it knows what it knows; WEIR_FOREVER: always */
	bool down;                /* for all */
	bool full;                /* for all: it refuses writes */
	weir_dur lease, refresh;
	struct weir_share_config limit;
	uint64_t capacity; /* now */
	uint64_t chance;
	struct actor actors[WORLD_MEMBERS_MAX];
	unsigned count;
	struct parcel parcel;
	bool has_parcel;

	/* Of stores with a time of their own. */
	struct session {
		uint64_t id;
		weir_dur ttl;
		weir_time end;
	} sessions[WORLD_SESSIONS_MAX];
	unsigned session_count;

	/* What was seen. */
	unsigned samples, over;
	uint64_t most, sum, least;
	unsigned commits;
};

/* Where all worlds are from now on, which is in memory otherwise; NULL: there again. */
void world_place(struct place *place);

/* The limit's capacity, and the rest as world.limit has it. */
void world_begin(struct world *world, uint64_t capacity, weir_dur lease, weir_dur refresh);
void world_end(struct world *world);

/* The store forgets all, and says since when it knows what it knows. */
void world_forget(struct world *world, weir_time proven);

/* A member comes; or comes again. */
void world_enter(struct world *world, unsigned member, uint64_t wants);

/* It is killed: nobody is told. */
void world_kill(struct world *world, unsigned member);

void world_want(struct world *world, unsigned member, uint64_t wants);

/* Let time go by; once a second, all that may be used is added up. */
void world_run(struct world *world, weir_dur time);

/* The same, but that nobody who is in the set does anything: they are stopped. */
void world_run_without(struct world *world, weir_dur time, unsigned member);

uint64_t world_units(const struct world *world, unsigned member);
uint64_t world_sum(const struct world *world);

/* The commit that was delayed arrives. What came of it. */
int world_deliver(struct world *world);

#endif
