/*
 * Stores above stores in simulated time, carriers between them, and members in those below; and all
 * that can happen to them. What members may use all together is added up each second, and is never
 * above what the limit at the root is or was within the longest lease.
 */
#ifndef WEIR_TESTS_FLEET_GROVE_H
#define WEIR_TESTS_FLEET_GROVE_H

#include <stdbool.h>

#include <weir/fleet.h>

#define CAPACITY   1200
#define PLACES_MAX 16
#define LEAVES_MAX 64
#define PER_PLACE  2 /* carriers */

/* A cut is everywhere when who has not heard of it has lost its lease. */
#define CUT_SECONDS 100

enum manner { ANSWERS, AWAY, LOSES, LATE };

struct place;

/* A way to a store. */
struct way {
	struct weir_store store; /* first: what the fleet calls */
	struct place *to;
	enum manner manner;
	void (*meanwhile)(void); /* what happens before a commit; NULL: nothing */
	unsigned skips;          /* commits before that one */
};

/* Somebody who acts when it is time. */
struct leaf {
	struct way way;
	struct weir_fleet *fleet; /* NULL: it is not there */
	struct weir_share *share;
	weir_time next;
	struct place *in;
	uint64_t wants;
	unsigned weight;
};

struct carrier {
	struct way above, below;
	struct weir_region *region; /* NULL: it is not there */
	weir_time next;
};

/* A store, what it has above, and who carries that. */
struct place {
	struct weir_store *store;
	bool down;
	bool full;           /* it refuses writes */
	weir_time proven;    /* since when it knows what it knows; WEIR_FOREVER: always */
	struct place *above; /* NULL: the root */
	unsigned level;
	struct carrier carriers[PER_PLACE];
};

/* A commit that comes later. */
struct parcel {
	struct parcel *next;
	struct place *to;
	weir_time due;
	uint64_t session;
	struct weir_store_check checks[8];
	struct weir_store_write writes[8];
	size_t check_count, write_count;
	char keys[16][64];
	char values[8][4096];
};

struct grove {
	struct weir_clock clock; /* first */
	weir_time now;
	struct place places[PLACES_MAX];
	unsigned place_count;
	struct leaf leaves[LEAVES_MAX];
	unsigned leaf_count;
	struct parcel *parcels;
	uint64_t chance;
	uint64_t reserved; /* of each region at the root */
	uint64_t capacity[CUT_SECONDS];
	uint64_t least; /* of what was used */
	unsigned depth; /* of those who are stopped in the middle of something */
	bool stops;     /* some are */
	bool made_anew; /* the limit at the root, by whoever came first */
};

extern struct grove grove;

/* A number below most, of the grove's chance. */
uint64_t grove_draw(uint64_t most);

/* There is nothing in it yet; so much is reserved for each region at the root. */
void grove_begin(uint64_t seed, uint64_t reserved);
void grove_end(void);

/* A store, with carriers to the one above; NULL: the root. A member. */
struct place *grove_add_place(struct place *above);
void grove_add_leaf(struct place *in, uint64_t wants, unsigned weight);

/* Let time go by. */
void grove_run(unsigned seconds);

/* Commits that are late, and due, arrive. */
void grove_deliver(void);

void grove_set_capacity(uint64_t capacity);

/* Each has what it is due. */
void grove_check_fair(uint64_t capacity);

/* What may be used, of all members of a place; NULL: of all. */
uint64_t place_sum(const struct place *place);

/* A store begins again with nothing. */
void place_forget(struct place *place);

/* They come, and are killed: nobody is told. */
void leaf_enter(struct leaf *leaf);
void leaf_kill(struct leaf *leaf);
void carrier_open(struct place *place, struct carrier *carrier);
void carrier_kill(struct carrier *carrier);

#endif
