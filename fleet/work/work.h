/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions of work: internals.
 *
 * NAME/partitions     the configuration of the partitions, the same for all members: stays
 * NAME/worker/ID      a member: erased with its session
 * NAME/partition/I    the owner of a partition: erased with its session. The commit that created
 *                     it is the fence
 * NAME/request/I      a member that asks for a partition: erased with its session
 * NAME/rewound/I      the fence of an owner whose checkpoint was set back: erased with the row of
 *                     the owner
 * NAME.checkpoints/I  how far the work on a partition has come: stays
 *
 * work.c contains opening, ownership.c ownership and the argument why no partition is owned twice,
 * balance.c the division among members, work_read.c reading the store, work_refresh.c a refresh,
 * work_leave.c closing, checkpoint.c checkpoints, work_rewind.c setting them back, work_resize.c
 * changing a capacity, work_inspect.c the view from outside.
 *
 * word   written by                                        order    pairs with
 * -----  ------------------------------------------------  -------  ------------------------------
 * until  the holder of the lock owning: store              release  weir_work_fence: acquire, and
 *                                                                   then the clock and fence
 * end    the same                                          release  the same
 * fence  the same                                          release  weir_work_fence: acquire; of a
 *                                                                   gain, carries units, gained
 * units  the same                                          relaxed  fence carries it
 * used   a refresh: store, only more                       relaxed  nothing: a bound
 * leave  weir_work_release and a refresh: the fence; the   relaxed  nothing: a mark, of that fence;
 *        holder of owning: 0                                        rung (fleet.c) carries it, with
 *                                                                   hurry, to the fleet's thread
 * refused
 *        weir_work_checkpoint: the fence                   relaxed  nothing: a mark, of that fence
 * released_fence
 *        the holder of the lock owning, the watcher or     relaxed  nothing: a hint to a refresh,
 *        a refresh: the fence                                       which decides by it with owning
 *                                                                   held: partition_gain gains no
 *                                                                   such fence, and the row is
 *                                                                   erased after partition_give_up
 * want   weir_work_demand_set: store                       relaxed  nothing: a number
 * gained, lost, forced
 *        the holder of the lock owning: add                relaxed  fence carries gained to
 *                                                                   weir_work_units; else nothing
 */
#ifndef WEIR_FLEET_WORK_H
#define WEIR_FLEET_WORK_H

#include "fleet/fair_lock.h"
#include "fleet/protocol/participant.h"
#include "fleet/protocol/share.h"
#include "fleet/work/balance.h"

#define PARTITION_KEY_SIZE (WEIR_SHARE_NAME_MAX + 32)

struct partition {
	_Atomic uint64_t fence; /* 0: not owned by this member */
	_Atomic uint64_t end;   /* end of ownership, if another member is to get it; WEIR_FOREVER */
	_Atomic uint64_t leave; /* the fence with which it is to be released; 0: none */
	_Atomic uint64_t refused; /* a fence that a checkpoint has found void; 0: none */
	uint64_t notified_fence;  /* the fence for which on_request() was called; 0: none */
	/* The fence with which it was released: that row never counts as owned again. */
	_Atomic uint64_t released_fence;
	/* Since when it is owned by this fence, the last one; its lease may have ended meanwhile. */
	weir_time held_since;
	uint64_t held_fence;
	/* Since when it has been seen without an owner, but with a request; 0: not so. */
	weir_time free_since;
	/*
	 * The last checkpoint and the version of its row (0: none), as known to the owner with
	 * known_fence.
	 */
	struct checkpoint_record last;
	uint64_t last_version;
	uint64_t known_fence; /* 0: the checkpoint must be read first */

	_Atomic uint64_t units; /* of a capacity, by the last fence */

	/* As last read. */
	uint64_t owner, made, requester, request_made;
	uint64_t from, worth;              /* the units of a capacity that its row is for */
	uint64_t rewound, rewound_version; /* the fence to be given up; 0: none */
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
	weir_time polls;    /* until when it looks often for what it has asked for */
	weir_dur lease;     /* the longest lease of any member, as far as is known */
	weir_time latest;   /* end of a lease of that length from the last reading; WEIR_FOREVER */
	_Atomic uint64_t until, want;
	_Atomic uint64_t gained, lost, forced; /* partitions, in all */
	uint64_t reported;                     /* units, as on_units() was called last; of owning */
	int failure;                           /* as on_failure() was called last; of owning */
	bool contended;               /* other members were first, each time, in this refresh */
	uint32_t slots;               /* partitions that there is room for; constant */
	_Atomic uint32_t used;        /* of these, those that have been partitions, or had rows */
	struct fair_lock checkpoints; /* serializes checkpoints */

	/* As last read. */
	uint64_t own_made;
	struct work_record kind;
	uint64_t kind_version; /* 0: there is no such row */
	uint64_t changes;      /* of its own capacity, which it has followed; 0: as configured */
	bool learning;         /* the store may have forgotten an owner */
	uint32_t rows;         /* rows of owners, including those of partitions beyond count */
	struct balance_member *members; /* sorted */
	size_t count, room;

	struct partition partitions[];
};

extern const struct participant_ops work_ops;

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

/* Make this member the owner of a partition, by that fence, and of its units. */
void partition_gain(struct weir_work *work, uint32_t i, uint64_t fence, uint64_t units);

/* Lose a partition. The next reading decides about its row. */
void partition_lose(struct weir_work *work, uint32_t i, bool forced);

/* Lose a partition, which this member will never own again by its row, if that still exists. */
void partition_give_up(struct weir_work *work, uint32_t i, bool forced);

/* Notify the owner that another member asks for a partition. handover begins. */
void partition_notify_request(struct weir_work *work, uint32_t i);

/* A checkpoint has found that the row of that fence is gone, or must be: the fence is void. */
void partition_refuse(struct weir_work *work, uint32_t i, uint64_t fence);

/* No other member is to get the partition any more. */
void partition_forget_request(struct weir_work *work, uint32_t i);

/* Notify the application if its units have changed since it was notified. */
void work_report_units(struct weir_work *work);

/* Notify the application of the result of a refresh, if it is another than the last one. */
void work_note(struct weir_work *work, int result);

/* Lose the partitions whose time is over. The lock owning is held. */
void work_lapse(struct weir_work *work);

/* When the next ownership ends; WEIR_FOREVER if none does. The lock owning is held. */
weir_time work_next(const struct weir_work *work);

void work_free(struct weir_work *work);

static inline uint32_t work_used(const struct weir_work *work)
{
	return atomic_load_explicit(&work->used, memory_order_relaxed);
}

/* Partitions from 0 to count - 1 may be in use. */
void work_use(struct weir_work *work, uint32_t count);

/* The number of partitions of a capacity. 0: the factor is 0. */
uint64_t work_count(uint64_t capacity, uint64_t factor);

/* Units that a partition of capacity is worth. */
uint64_t partition_worth(const struct weir_work *work, uint32_t partition);

void partition_key(const struct weir_work *work, const char *what, uint32_t partition, char *key,
		   size_t size);

/* Parse the number of a member in a row, which must be followed by the character after. */
bool partition_read_id(const char *text, size_t size, char after, uint64_t *id);

/* Parse the row NAME/rewound/I. */
bool partition_read_rewound(const struct weir_store_row *row, uint64_t *fence);

void checkpoint_key(const char *name, uint32_t partition, char key[PARTITION_KEY_SIZE]);

#endif
