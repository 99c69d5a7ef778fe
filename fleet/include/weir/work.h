/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/work.h - partitions of work, each owned by one member of a fleet at a time.
 *
 *	weir_work_config_init(&config);
 *	config.name = "orders";
 *	config.count = 32;
 *	config.on_gain = begin;		read from where checkpoints left off
 *	config.on_lost = end;		stop: this member no longer owns it
 *	if (weir_work_open(fleet, &config, &work, why, sizeof(why)) != 0)
 *		die(why);
 *
 * Partitions of work: those of a log, shards, tenants. Members divide them evenly: with P
 * partitions and N members each owns P / N, and P mod N of them one more; or as their weights say.
 * A member that joins later asks for partitions of members that own too many. The owner stops,
 * writes its checkpoint and releases the partition; if it does not, its ownership ends (handover).
 * No partition is asked for while there are some without an owner, and no more change hands than an
 * even division needs.
 *
 * Partitions of capacity: a rate of 500 per second in 20 partitions of 25 each. Each member claims
 * as many as it wants, if there are any left, and releases those that it no longer wants. Nothing
 * is computed, and the sum cannot exceed the capacity.
 *
 * What ownership guarantees. At no instant do two members own the same partition, each by its own
 * clock: weir_work_fence() returns 0 from the moment at which the owner's lease or its hand-over
 * has ended, whatever the store and the fleet's threads are doing, and no other member owns the
 * partition before that. The lease counts from before the request that renewed it was sent, and is
 * shortened by a hundredth, as clocks may go wrong by that much. Three things are left to the
 * caller:
 *
 * - Time passes between reading the fence and acting on it, and a process may be stopped in
 *   between. So anything that several members can reach should be guarded by the fence, as
 *   weir_work_checkpoint() is: it is refused once another member owns the partition.
 * - on_lost() is called after the partition has been lost, by a thread that runs a moment later,
 *   and that waits for a callback in progress.
 * - If a store loses acknowledged data, members wait: no partition is claimed for the length of the
 *   longest lease after the store came back (weir_store_view.proven). A store that reports that it
 *   has lost nothing is trusted.
 *
 * All members must agree on the partitions: count, or capacity and factor. The first member
 * records these in the store. A member with other values claims nothing, and weir_fleet_refresh()
 * and weir_fleet_error() report it, until there are no members of the other kind; then its own
 * configuration takes effect. weir_work_resize() changes capacity and factor for all members; from
 * then on those in the store count, whatever members are configured with. All members should have
 * the same lease too: after a store has lost its data, they wait for the longest one.
 *
 * Callbacks are serialized: they run in threads of the fleet, or in the caller of
 * weir_fleet_step(), weir_fleet_refresh() or weir_work_close(). They may call
 * weir_work_checkpoint(), weir_work_load() and those that take no lock, see below, and no other
 * function of the fleet, nor wait for a thread that does. While one runs, no lease is renewed, and
 * no other callback is called: return quickly, or hand the work to another thread.
 *
 * Thread safety. Any thread may call any function at any time, except weir_work_close(), which ends
 * the object. weir_work_fence(), weir_work_owned(), weir_work_units(), weir_work_demand_set() and
 * weir_work_release() take no lock and never wait for the store; all others may.
 */
#ifndef WEIR_WORK_H
#define WEIR_WORK_H

#include <weir/fleet.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_work;

#define WEIR_WORK_MAX            1024
#define WEIR_WORK_FLEET_MAX      16 /* in one process */
#define WEIR_CHECKPOINT_SIZE_MAX 4096
#define WEIR_WORK_ALL            UINT32_MAX /* all partitions */

/* Which partitions a member claims. */
enum weir_work_strategy {
	WEIR_WORK_GREEDY,   /* evenly: its full number at once */
	WEIR_WORK_BALANCED, /* evenly: one per refresh, for slow starts */
	WEIR_WORK_WANTED,   /* of capacity: as many as it wants, of those without an owner */
};

struct weir_work_config {
	size_t size; /* set by weir_work_config_init() */

	const char *name;                 /* letters, digits and -_.:@ */
	uint32_t count;                   /* of partitions, 1 to WEIR_WORK_MAX; with capacity: 0 */
	enum weir_work_strategy strategy; /* default: WEIR_WORK_GREEDY */

	/* For capacity, with WEIR_WORK_WANTED. The last partition is worth the remainder. */
	uint64_t capacity; /* units that are shared */
	uint64_t factor;   /* units that a partition is worth */
	uint64_t reserved; /* units that this member has beside them, without asking */

	/*
	 * How long an owner may take to release a partition that another member asks for, counted
	 * by the owner's clock from when it is notified. After that it no longer owns the
	 * partition. WEIR_FOREVER: no bound. Default: two refreshes.
	 */
	weir_dur handover;

	/*
	 * A member of weight 2 owns twice as many partitions as one of weight 1. Default: 1; at
	 * most WEIR_SHARE_WEIGHT_MAX. Not with WEIR_WORK_WANTED; nor is hold.
	 */
	uint32_t weight;
	/*
	 * How long this member owns a partition at least before it is moved to another member that
	 * asks for it. The lease may end all the same, and so may this process. WEIR_FOREVER: it
	 * is never moved. Default: 0.
	 */
	weir_dur hold;

	/* Called when this member has become the owner of a partition. May be NULL. */
	void (*on_gain)(void *arg, uint32_t partition, uint64_t fence);
	/*
	 * Called when another member asks for a partition that this one owns. Finish what has been
	 * begun, then call weir_work_release(). If the other member no longer asks, and the
	 * partition was not released, it stays. NULL: the partition is released at once, after
	 * on_lost().
	 */
	void (*on_request)(void *arg, uint32_t partition, uint64_t fence);
	/*
	 * Called when this member no longer owns a partition. forced: the lease or the hand-over
	 * has ended, or the checkpoint was set back (weir_work_rewind()): stop the work at once.
	 * The partition may be regained, with the same fence, if only the lease had ended, and no
	 * other member has owned it since.
	 */
	void (*on_lost)(void *arg, uint32_t partition, uint64_t fence, bool forced);
	/*
	 * With WEIR_WORK_WANTED: called with what weir_work_units() returns now, when that has
	 * changed: once for partitions that were gained or lost together, and before what was given
	 * up can be another member's. At first it is what is reserved, without a call. May be NULL.
	 */
	void (*on_units)(void *arg, uint64_t units);
	/*
	 * Called when a refresh of these partitions has failed, and again when another one has
	 * failed by another error, or with 0 when one has succeeded. What is owned stays owned
	 * until the lease ends. -EIO: the store does not answer; -EEXIST: the members that are there
	 * are configured differently; -EAGAIN: other members were first, each time; -EPROTO, -ENOSPC
	 * and others are those of weir_fleet_refresh(). weir_fleet_error() has a sentence, and may be
	 * called from here. May be NULL.
	 */
	void (*on_failure)(void *arg, int error);
	void *arg;
};

#define weir_work_config_init(config) weir_work_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_work_config_init_sized(struct weir_work_config *config, size_t size);

/*
 * Take part. The first partitions are claimed in the second refresh after the call, when members
 * that start at the same time know of each other.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid; why (may be NULL) gets a sentence, truncated to why_size
 * -EEXIST: this process has it open already
 * -ENOSPC: there are WEIR_WORK_FLEET_MAX open already
 * -ENOMEM: out of memory
 */
WEIR_API WEIR_MUST_CHECK int weir_work_open(struct weir_fleet *fleet,
					    const struct weir_work_config *config,
					    struct weir_work **work, char *why, size_t why_size);

/*
 * Release all partitions, calling on_lost() for each first, and free the object. If the store
 * cannot be reached, the fleet goes on trying as long as it is open; otherwise the partitions
 * become available to others when the lease ends. NULL is allowed.
 */
WEIR_API void weir_work_close(struct weir_work *work);

/*
 * Return the fence of a partition if this member owns it now, else 0. Takes no lock, and makes no
 * system call apart from reading the clock.
 */
WEIR_API uint64_t weir_work_fence(const struct weir_work *work, uint32_t partition);

/*
 * Return the number of partitions that this member owns now, and their worth in units, including
 * what is reserved. Each call reads the clock.
 */
WEIR_API uint32_t weir_work_owned(const struct weir_work *work);
WEIR_API uint64_t weir_work_units(const struct weir_work *work);

/*
 * Set the demand, in units, with WEIR_WORK_WANTED. Returns 0, or -EINVAL: another strategy, or more
 * than WEIR_SHARE_UNITS_MAX.
 */
WEIR_API int weir_work_demand_set(struct weir_work *work, uint64_t units);

/*
 * Release a partition. The fleet's thread does so at once, unless it is waiting for the store, after
 * on_lost(); a manual fleet does with its next weir_fleet_step(). Then another member may own the
 * partition: one that has asked for it looks for it often, others find it with their next refresh.
 * If this member owns fewer than are due to it, it may be the one. Returns 0, or -ESTALE: this
 * member does not own the partition by that fence.
 */
WEIR_API int weir_work_release(struct weir_work *work, uint32_t partition, uint64_t fence);

/*
 * Write a checkpoint: how far the work on a partition has come, as its owner by that fence.
 * sequence must not be below that of the last checkpoint.
 *
 * Returns 0 once it is written, and will not be undone, or a negative errno:
 * -ESTALE: this member does not own the partition by that fence, or the checkpoint was set back;
 *          weir_work_fence() no longer returns that fence from then on
 * -ERANGE: sequence is below that of the last checkpoint
 * -EINVAL: an argument is invalid
 * -EMSGSIZE: size exceeds WEIR_CHECKPOINT_SIZE_MAX
 * -EIO: it is not known whether it was written, and it still may be: repeat the call, with the same
 *       sequence or a later one
 * Other errors are those of weir/store.h.
 *
 * A checkpoint never goes back, except by weir_work_rewind() and weir_work_restart(). Each write
 * replaces the version of the row that its writer knew, so a write that arrives late, after a
 * later one was acknowledged or another member claimed the partition, is refused. After -EIO the
 * row is read again before the next write; until that is acknowledged, weir_work_load() may return
 * either of the two. This holds as long as the store keeps what it has acknowledged; docs/fleet.md
 * says what each store guarantees.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_checkpoint(struct weir_work *work, uint32_t partition,
						  uint64_t fence, uint64_t sequence,
						  const void *value, size_t size);

/*
 * Load the last checkpoint of a partition, whichever member wrote it. *size is the size of value on
 * entry, and of the checkpoint on return.
 *
 * Returns 0, or a negative errno:
 * -ENOENT: there is none; *sequence is 0
 * -EMSGSIZE: value is too small
 * -EPROTO: the row has another format version
 * Other errors are those of the store.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_load(struct weir_work *work, uint32_t partition,
					    uint64_t *sequence, void *value, size_t *size);

/*
 * Set the checkpoint of a partition back to an earlier sequence, or of all (WEIR_WORK_ALL) that are
 * not below it, so that the work since then is done again. The owner of the partition need not
 * stop: it loses the partition by its present fence, learns that with its next checkpoint (-ESTALE)
 * or refresh (on_lost(), forced), and no checkpoint by that fence is written any more. Then it, or
 * another member, claims the partition anew, and loads the checkpoint. What was done in between is
 * not undone. by says on whose behalf this happens: 1 to WEIR_FLEET_LABEL_MAX letters, digits and
 * -_.:@; NULL: HOST:PID. The store keeps it, with the time and the number of times; see
 * weir_work_inspect(). Any process that can write to the store may call this, members included
 * (weir_fleet_store()), but not a callback. Partitions are set back one after the other, each with
 * its own commit: after an error some of them may have been, so repeat the call.
 *
 * Returns the number of checkpoints that were set back, or a negative errno:
 * -ENOENT: there is nothing with that name, or no such partition
 * -ERANGE: of a single partition: there is no checkpoint, or its sequence is below
 * -EINVAL: an argument is invalid
 * -EMSGSIZE: size exceeds WEIR_CHECKPOINT_SIZE_MAX
 * -EPROTO: the rows have another format version
 * -EAGAIN: the partition changed its owner all the time
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_work_rewind(struct weir_store *store, const char *name, uint32_t partition,
			      uint64_t sequence, const void *value, size_t size, const char *by);

/*
 * As weir_work_rewind(), but to nothing: there is no checkpoint (-ENOENT from weir_work_load())
 * until the next owner has written one, whatever its sequence. -ERANGE is not returned.
 */
WEIR_API int weir_work_restart(struct weir_store *store, const char *name, uint32_t partition,
			       const char *by);

/*
 * Change the capacity of partitions of capacity, and what each is worth (factor; 0: as it is), for
 * all members. Each applies it with its next refresh: it releases what it owns of the partitions as
 * they were, after on_lost(), and claims others. With the same factor only the last partition
 * changes, besides those that are new or no longer there. No unit has two owners at any time, so the
 * units of all members never exceed the greater of both capacities, and are within the new one once
 * all have refreshed.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: there would be no partition or more than WEIR_WORK_MAX of them, the partitions are not of
 *          capacity, or another argument is invalid
 * -ENOENT: there are no such partitions
 * -EPROTO: the row has another format version
 * -EAGAIN: members joined all the time
 * Other errors are those of weir/store.h.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_resize(struct weir_store *store, const char *name,
					      uint64_t capacity, uint64_t factor);

/* What partitions are, as recorded in the store. */
struct weir_work_size {
	size_t size; /* set by weir_work_size_init() */
	uint32_t count;
	uint64_t capacity, factor; /* 0 for plain work */
	weir_dur lease;            /* the longest one of a member, so far */
	uint64_t changes;          /* by weir_work_resize(); 0: as members are configured */
};

#define weir_work_size_init(info) weir_work_size_init_sized((info), sizeof(*(info)))
WEIR_API void weir_work_size_init_sized(struct weir_work_size *info, size_t size);

/*
 * Read it. Returns 0, or a negative errno:
 * -EINVAL: an argument is invalid
 * -ENOENT: there are no such partitions
 * -EPROTO: the row has another format version
 * Other errors are those of weir_store_read().
 */
WEIR_API WEIR_MUST_CHECK int weir_work_size_take(struct weir_store *store, const char *name,
						 struct weir_work_size *info);

/* A partition, as any process that can read the store sees it. */
struct weir_work_partition {
	uint32_t partition;
	uint32_t checkpoints; /* 1: there is one, with this sequence and size */
	uint64_t sequence;
	size_t size;
	uint64_t owner;        /* number of the member that owns it; 0: none */
	uint64_t fence;        /* of its owner; 0: no owner */
	uint64_t requester;    /* number of the member that asks for it; 0: none */
	uint32_t owner_weight; /* weir_work_config.weight; 0: there is no such member */
	uint64_t units;        /* of a capacity, that its owner has; 0: no owner, or plain work */
	/*
	 * weir_fleet_config.label of both, valid during the visit; "": there is no such member, or
	 * it has left.
	 */
	const char *owner_label, *requester_label;
	uint64_t rewinds;    /* how often the checkpoint was set back */
	uint64_t rewound_at; /* the last time, in seconds since 1970; 0: never */
	const char
		*rewound_by; /* as given to weir_work_rewind(), valid during the visit; "": never */
};

/*
 * Inspect partitions without taking part. Visits, in order, those that have an owner, a
 * checkpoint, one that was set back, or a member that asks for them, until visit() (may be NULL)
 * returns false. *workers (may be NULL) is set to the number of members that take part, owners or
 * not.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name is invalid
 * -ENOENT: there is nothing with that name
 * -EPROTO: the rows have another format version
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_work_inspect(struct weir_store *store, const char *name, uint32_t *workers,
			       bool (*visit)(void *arg,
					     const struct weir_work_partition *partition),
			       void *arg);

#ifdef __cplusplus
}
#endif
#endif
