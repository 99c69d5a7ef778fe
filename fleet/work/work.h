/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions of work: internals.
 *
 * NAME/partitions     the configuration of the partitions, the same for all members: stays
 * NAME/worker/ID      a member: erased with its session
 * NAME/partition/I    the owner of a partition: erased with its session. The commit that created
 *                     it is the fence
 * NAME/request/I      a member that asks for a partition: erased with its session
 * NAME.checkpoints/I  how far the work on a partition has come: stays
 *
 * work.c contains opening and checkpoints, ownership.c ownership and the argument why no partition
 * is owned twice, balance.c the division among members, work_read.c reading the store,
 * work_refresh.c a refresh, work_leave.c closing, work_inspect.c the view from outside.
 *
 * word   written by                                        order    pairs with
 * -----  ------------------------------------------------  -------  ------------------------------
 * until  the holder of the lock owning: store              release  weir_work_fence: acquire, and
 *                                                                   then the clock and fence
 * end    the same                                          release  the same
 * fence  the same                                          relaxed  until and end carry it
 * leave  weir_work_release and a refresh: the fence; the   relaxed  nothing: a mark, of that fence
 *        holder of owning: 0
 * refused
 *        weir_work_checkpoint: the fence                   relaxed  nothing: a mark, of that fence
 * want   weir_work_demand_set: store                       relaxed  nothing: a number
 * gained, lost, forced
 *        the holder of the lock owning: add                relaxed  nothing: numbers
 */
#ifndef WEIR_FLEET_WORK_H
#define WEIR_FLEET_WORK_H

#include "fleet/fair_lock.h"
#include "fleet/protocol/participant.h"
#include "fleet/protocol/share.h"
#include "fleet/work/balance.h"

struct partition {
	_Atomic uint64_t fence; /* 0: not owned by this member */
	_Atomic uint64_t end;   /* end of ownership, if another member is to get it; WEIR_FOREVER */
	_Atomic uint64_t leave; /* the fence with which it is to be released; 0: none */
	_Atomic uint64_t refused; /* a fence whose row a checkpoint has found gone; 0: none */
	uint64_t notified_fence;  /* the fence for which on_request() was called; 0: none */
	/* The fence with which it was released: that row never counts as owned again. */
	uint64_t released_fence;
	/* Since when it has been seen without an owner, but with a request; 0: not so. */
	weir_time free_since;
	/*
	 * The last checkpoint and the version of its row (0: none), as known to the owner with
	 * sequence_fence.
	 */
	uint64_t sequence, sequence_version;
	uint64_t sequence_fence; /* 0: the checkpoint must be read first */

	/* As last read. */
	uint64_t owner, made, requester, request_made;
};

struct weir_work {
	struct participant participant; /* first */
	struct weir_fleet *fleet;
	struct weir_work_config config;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char own_key[WEIR_SHARE_NAME_MAX + 32], kind_key[WEIR_SHARE_NAME_MAX + 32];
	uint64_t id;
	bool joined;        /* its rows may exist */
	unsigned refreshes; /* since it joined */
	weir_dur lease;     /* the longest lease of any member, as far as is known */
	weir_time latest;   /* end of a lease of that length from the last reading; WEIR_FOREVER */
	_Atomic uint64_t until, want;
	_Atomic uint64_t gained, lost, forced; /* partitions, in all */
	struct fair_lock checkpoints;          /* serializes checkpoints */

	/* As last read. */
	uint64_t own_made;
	struct work_record kind;
	uint64_t kind_version; /* 0: there is no such row */
	bool learning;         /* the store may have forgotten an owner */
	uint32_t rows;         /* rows of owners, including those of partitions beyond count */
	uint64_t *members;     /* sorted */
	size_t count, room;

	struct partition partitions[];
};

extern const struct participant_ops work_ops;

#define PARTITION_KEY_SIZE (WEIR_SHARE_NAME_MAX + 32)

/*
 * Draw a new number for the member, which has no row yet. Like all functions below, requires the
 * fleet's lock.
 */
void work_rename(struct weir_work *work);

/*
 * Read all rows. keep: also renew the session. Returns 0, -EPROTO, -ENOMEM, or an error of the
 * store.
 */
int work_read(struct weir_work *work, bool keep);

/* Read the rows; then claim, release and ask for partitions as the division requires. */
int work_refresh(struct weir_work *work);

/* Erase the member's rows. Returns 1 if none is left, or an error of the store. */
int work_leave(struct weir_work *work);

/* Extend the lease with the session's, as far as the store allows. */
void work_keep(struct weir_work *work);

/* End the lease: all partitions are lost. */
void work_drop(struct weir_work *work);

/* Make this member the owner of a partition, by that fence. */
void partition_gain(struct weir_work *work, uint32_t i, uint64_t fence);

/* Lose a partition. The next reading decides about its row. */
void partition_lose(struct weir_work *work, uint32_t i, bool forced);

/* Lose a partition, which this member will never own again by its row, if that still exists. */
void partition_give_up(struct weir_work *work, uint32_t i, bool forced);

/* Notify the owner that another member asks for a partition. handover begins. */
void partition_notify_request(struct weir_work *work, uint32_t i);

/* A checkpoint has found that the row of that fence is gone: the fence is void. */
void partition_refuse(struct weir_work *work, uint32_t i, uint64_t fence);

/* No other member is to get the partition any more. */
void partition_forget_request(struct weir_work *work, uint32_t i);

/* Lose the partitions whose time is over. The lock owning is held. */
void work_lapse(struct weir_work *work);

/* When the next ownership ends; WEIR_FOREVER if none does. The lock owning is held. */
weir_time work_next(const struct weir_work *work);

void work_free(struct weir_work *work);

/* Units that a partition of capacity is worth. */
uint64_t partition_worth(const struct weir_work *work, uint32_t partition);

void partition_key(const struct weir_work *work, const char *what, uint32_t partition, char *key,
		   size_t size);

/* Parse the number of a member in a row, which must be followed by the character after. */
bool partition_read_id(const char *text, size_t size, char after, uint64_t *id);

/* Parse the sequence of a checkpoint, and find its value. False: not a checkpoint. */
bool checkpoint_read(const struct weir_store_row *row, uint64_t *sequence, const char **value,
		     size_t *size);

#endif
