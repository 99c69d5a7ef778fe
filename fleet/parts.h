/*
 * Parts, inside. Rows: NAME/worker/ID, a member, bound; NAME/part/I, its owner, bound: it was made
 * by the commit that is the fence; NAME/wish/I, who asks for it, bound. NAME.checkpoints/I stays.
 *
 * word   written by                                order    pairs with
 * -----  ----------------------------------------  -------  -------------------------------------
 * until  a refresh, and the lease's end: store     release  weir_parts_fence: acquire, before fence
 * fence  a refresh, and the lease's end: store     relaxed  until carries it
 * leave  weir_parts_release: 1; a refresh: 0       relaxed  nothing: a mark, beside the fence it is
 * of want   weir_parts_want: store                    relaxed  nothing: a number
 */
#ifndef WEIR_FLEET_PARTS_H
#define WEIR_FLEET_PARTS_H

#include "balance.h"
#include "share.h"

struct part {
	_Atomic uint64_t fence; /* 0: not ours */
	_Atomic uint32_t leave; /* to be given up */
	bool told;              /* that another is due it */
	weir_time wished;       /* since when this one asks for it; 0: it does not */
	/* The last checkpoint, and the version of its row (0: none), as known by the owner of: */
	uint64_t sequence, sequence_version;
	uint64_t sequence_fence; /* 0: it has to be read first */

	/* As read. */
	uint64_t owner, made, wisher;
	bool wish_row;
};

struct weir_parts {
	struct weir_fleet *fleet;
	struct weir_parts *next;
	struct weir_parts_config config;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char own_key[WEIR_SHARE_NAME_MAX + 32];
	uint64_t id;
	bool joined; /* its row is there */
	uint64_t own_made;
	unsigned refreshes; /* since then */
	bool learning;      /* the store has lost its memory, and old leases may not have ended */
	_Atomic uint64_t until, want;
	pthread_mutex_t checkpoints; /* one at a time */

	uint64_t *members; /* as read, in order */
	size_t count, room;

	struct part part[];
};

/* Another number, and no row. The lock is held, as for all here. */
void parts_rename(struct weir_parts *parts);

/* Look at who is there, and take, give up and ask for what is due. */
int parts_refresh(struct weir_parts *parts);

/* The lease goes on to the fleet's deadline. */
void parts_keep(struct weir_parts *parts);

/* The lease is over: everything is lost. */
void parts_drop(struct weir_parts *parts);

void parts_free(struct weir_parts *parts);

/* What a part is worth, of capacity. */
uint64_t part_worth(const struct weir_parts *parts, uint32_t part);

void part_key(const struct weir_parts *parts, const char *what, uint32_t part, char *key,
	      size_t size);

void part_lose(struct weir_parts *p, uint32_t i, bool forced);

/* The number of a member, as rows have it, and nothing after it but that character. */
bool part_read_id(const char *text, size_t size, char after, uint64_t *id);

/* The number of a checkpoint, and what follows it. False: it is none. */
bool checkpoint_read(const struct weir_row *row, uint64_t *sequence, const char **value,
		     size_t *size);

#endif
