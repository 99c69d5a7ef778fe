/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions in simulated time: stores above stores, leaders between them, members in those below, and
 * the faults that can happen to them. The units that all members may use are added up each second,
 * and never exceed what the limit at the root is or was within the longest lease.
 */
#ifndef WEIR_TESTS_FLEET_REGIONS_H
#define WEIR_TESTS_FLEET_REGIONS_H

#include <stdbool.h>

#include <weir/fleet.h>

#include "late_commit.h"

#define CAPACITY           1200
#define REGIONS_MAX        16
#define LEAVES_MAX         64
#define LEADERS_PER_REGION 2 /* leaders */

/* After this time a member that has not read of a cut has lost its lease. */
#define CUT_SECONDS 100

enum manner { ANSWERS, UNREACHABLE, LOSES, LATE };

struct region;

/* A connection to a store. */
struct way {
	struct weir_store store; /* called before a commit; NULL: none */
	struct region *to;
	enum manner manner;
	void (*meanwhile)(void); /* commits before that one */
	unsigned skips;          /* A member. */
};

/* NULL: not present */
struct leaf {
	struct way way;
	struct weir_fleet *fleet; /* A process that takes part in a region. */
	struct weir_share *share;
	weir_time next;
	struct region *in;
	uint64_t wants;
	unsigned weight;
};

struct leader {
	struct way above, below;
	struct weir_region *region; /* NULL: not present */
	weir_time next;
};

/* A store, the store above it, and the leaders between them. */
struct region {
	struct weir_store *store;
	bool down;
	bool full;            /* it refuses writes */
	weir_time proven;     /* since when it has lost nothing; WEIR_FOREVER: always */
	struct region *above; /* NULL: the root */
	unsigned level;
	struct leader leaders[LEADERS_PER_REGION];
};

/* A commit that arrives later. */
struct parcel {
	struct parcel *next;
	struct region *to;
	weir_time due;
	struct late_commit *commit;
};

struct sim {
	struct weir_clock clock; /* first */
	weir_time now;
	struct region regions[REGIONS_MAX];
	unsigned region_count;
	struct leaf leaves[LEAVES_MAX];
	unsigned leaf_count;
	struct parcel *parcels;
	uint64_t chance;
	uint64_t reserved; /* for each region at the root */
	uint64_t capacity[CUT_SECONDS];
	uint64_t least;     /* of the sums sampled */
	unsigned depth;     /* number of members stopped in the middle of a call */
	bool stops;         /* members may be stopped in the middle of a call */
	bool created_again; /* the limit at the root was created again, by the first member */
};

extern struct sim sim;

/* A random number below most. */
uint64_t sim_draw(uint64_t most);

/* Begin without any region. reserved units are reserved for each region at the root. */
void sim_begin(uint64_t seed, uint64_t reserved);
void sim_end(void);

/* Add a store, with leaders to the one above (NULL: the root); add a member. */
struct region *sim_add_region(struct region *above);
void sim_add_leaf(struct region *in, uint64_t wants, unsigned weight);

/* Let time pass. */
void sim_run(unsigned seconds);

/* Deliver the delayed commits that are due. */
void sim_deliver(void);

void sim_set_capacity(uint64_t capacity);

/* Check that each member has its fair share. */
void sim_check_fair(uint64_t capacity);

/* Units that all members of a region may use; NULL: of all regions. */
uint64_t region_sum(const struct region *region);

/* Make a store forget everything. */
void region_forget(struct region *region);

/* Start a member or a leader; kill it, without any notification. */
void leaf_enter(struct leaf *leaf);
void leaf_kill(struct leaf *leaf);
void leader_open(struct region *region, struct leader *leader);
void leader_kill(struct leader *leader);

#endif
