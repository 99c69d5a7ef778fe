/*
 * Parts, inside.
 *
 * NAME/parts          what the parts are, the same for all members: stays
 * NAME/worker/ID      a member: gone with its session
 * NAME/part/I         the owner of a part: gone with its session. The commit that made it is the
 *                     fence
 * NAME/wish/I         a member that asks for a part: gone with its session
 * NAME.checkpoints/I  how far the work on a part has come: stays
 *
 * parts.c has opening and checkpoints, parts_own.c ownership and the argument why no part is owned
 * twice, parts_read.c what the store has, parts_refresh.c a refresh, parts_leave.c the end.
 *
 * word   written by                                        order    pairs with
 * -----  ------------------------------------------------  -------  ------------------------------
 * until  the holder of the lock owning: store              release  weir_work_fence: acquire, and
 *                                                                   then the clock and fence
 * end    the same                                          release  the same
 * fence  the same                                          relaxed  until and end carry it
 * leave  weir_work_release and a refresh: the fence; the  relaxed  nothing: a mark, of that fence
 *        holder of owning: 0
 * want   weir_work_demand_set: store                            relaxed  nothing: a number
 */
#ifndef WEIR_FLEET_PARTS_H
#define WEIR_FLEET_PARTS_H

#include "fleet/work/balance.h"
#include "fleet/protocol/participant.h"
#include "fleet/protocol/share.h"

struct part {
	_Atomic uint64_t fence; /* 0: not ours */
	_Atomic uint64_t end;   /* when it ceases to be ours, as another is due it; WEIR_FOREVER */
	_Atomic uint64_t leave; /* the fence by which it is to be given up; 0 */
	uint64_t told;          /* the fence of which on_wish() was told; 0 */
	uint64_t gone;          /* the row that was given up: it is never ours again */
	weir_time spare;        /* since when it has been seen without an owner, with a wish; 0 */
	/*
	 * The last checkpoint, and the version of its row (0: none), as the owner by this fence
	 * knows:
	 */
	uint64_t sequence, sequence_version;
	uint64_t sequence_fence; /* 0: it has to be read first */

	/* As read. */
	uint64_t owner, made, wisher, wish_made;
};

struct weir_work {
	struct participant participant; /* first */
	struct weir_fleet *fleet;
	struct weir_work_config config;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char own_key[WEIR_SHARE_NAME_MAX + 32], kind_key[WEIR_SHARE_NAME_MAX + 32];
	uint64_t id;
	bool joined;        /* its rows may be there */
	unsigned refreshes; /* since then */
	weir_dur lease;     /* the longest that a member may have, as far as is known */
	weir_time latest;   /* end of a lease, of that, since the last reading; WEIR_FOREVER */
	_Atomic uint64_t until, want;
	pthread_mutex_t checkpoints; /* one at a time */

	/* As read. */
	uint64_t own_made;
	struct parts_record kind;
	uint64_t kind_version; /* 0: there is none */
	bool learning;         /* the store may have forgotten an owner */
	uint32_t rows;         /* of owners, of parts of any number */
	uint64_t *members;     /* in order */
	size_t count, room;

	struct part part[];
};

extern const struct participant_ops work_ops;

#define PART_KEY_SIZE (WEIR_SHARE_NAME_MAX + 32)

/* The member has another number now, and no row. The fleet's lock is held, as for all these. */
void parts_rename(struct weir_work *parts);

/* Read all of its rows; keep: also keep the session. 0; -EPROTO, -ENOMEM; or the store's error. */
int parts_read(struct weir_work *parts, bool keep);

/* Look at who is there, and take, give up and ask for what is due. */
int parts_refresh(struct weir_work *parts);

/* Erase its rows, as far as the store can be reached. 1: none is left; or the store's error. */
int parts_leave(struct weir_work *parts);

/* The lease goes on with the session's, as far as the store allows. */
void parts_keep(struct weir_work *parts);

/* The lease is over: everything is lost. */
void parts_drop(struct weir_work *parts);

/* A part is this member's, by that fence. */
void part_gain(struct weir_work *parts, uint32_t i, uint64_t fence);

/* A part is lost; the next reading decides about its row. */
void part_lose(struct weir_work *parts, uint32_t i, bool forced);

/* A part is lost; and by its row, if that is still there, it is never ours again. */
void part_give_up(struct weir_work *parts, uint32_t i, bool forced);

/* Another member is due it: tell its owner, which has handover from now on. */
void part_tell_wish(struct weir_work *parts, uint32_t i);

/* No other member is due it any more. */
void part_forget_wish(struct weir_work *parts, uint32_t i);

/* Lose the parts whose time is over. The lock owning is held. */
void parts_lapse(struct weir_work *parts);

/* When the next ownership ends; WEIR_FOREVER: none does. The lock owning is held. */
weir_time parts_next(const struct weir_work *parts);

void parts_free(struct weir_work *parts);

/* What a part is worth, of capacity. */
uint64_t part_worth(const struct weir_work *parts, uint32_t part);

void part_key(const struct weir_work *parts, const char *what, uint32_t part, char *key,
	      size_t size);

/* The number of a member, as rows have it, and nothing after it but that character. */
bool part_read_id(const char *text, size_t size, char after, uint64_t *id);

/* The number of a checkpoint, and what follows it. False: it is none. */
bool checkpoint_read(const struct weir_store_row *row, uint64_t *sequence, const char **value,
		     size_t *size);

#endif
