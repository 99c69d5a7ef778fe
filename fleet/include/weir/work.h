/*
 * weir/work.h - numbered parts of something, each owned by one member of a fleet at a time.
 *
 *	weir_work_config_init(&config);
 *	config.name = "orders";
 *	config.count = 32;
 *	config.on_gain = begin;		read from where checkpoints left off
 *	config.on_lost = end;		stop: this member no longer owns it
 *	if (weir_work_open(fleet, &config, &parts, why, sizeof(why)) != 0)
 *		die(why);
 *
 * Of work: partitions of a log, shards, tenants. Members divide them evenly: with P parts and N
 * members each has P / N, and P mod N of them one more. A member that comes later asks for parts of
 * members that have too many. The owner stops, writes its checkpoint and gives the part up; if it
 * does not, its ownership ends (handover). No part changes hands while there are some without an
 * owner, and no more change hands than an even division needs.
 *
 * Of capacity: a rate of 500 in 20 parts of 25, of which each member takes as many as it wants,
 * if there are, and gives back what it wants no more. Nothing is reckoned, and nothing can be above
 * the capacity.
 *
 * What owning a part promises. At no instant do two members own the same part, each by its own
 * clock: weir_work_fence() returns 0 from the moment at which the owner's lease or its hand-over
 * has ended, whatever the store and the fleet's threads are doing, and no other member owns the
 * part before that. The lease counts from before the request that renewed it was sent, and is
 * shortened by a hundredth, as clocks may go wrong by that much. Three things are left to the
 * caller:
 *
 * - Time goes by between asking for the fence and acting on it, and a process may be stopped in
 *   between. So anything that several members can reach should be guarded by the fence, as
 *   weir_work_checkpoint() is: it is refused once another member owns the part.
 * - on_lost() is called when the part has been lost, but by a thread, which runs a moment later,
 *   and which waits for a callback that is running.
 * - If a store loses what it has acknowledged, members wait: no part is taken for the length of the
 *   longest lease after the store came back (weir_store_view.proven). A store that says that it has lost
 *   nothing is believed.
 *
 * All members must agree what the parts are: count, or capacity and factor. The first member
 * records it in the store. A member that differs takes nothing, and weir_fleet_refresh() and
 * weir_fleet_error() say so, until there are no members of the other kind; then its own
 * configuration becomes that of the parts. All members should have the same lease too: after a
 * store has lost its data, they wait for the longest one.
 *
 * Callbacks run one at a time: in threads of the fleet, or in the caller of weir_fleet_step(),
 * weir_fleet_refresh() or weir_work_close(). They may call weir_work_checkpoint(),
 * weir_work_load(), weir_work_fence() and weir_work_release(), and nothing else of the fleet,
 * nor wait for a thread that does. While one runs, no lease is renewed, and no other callback is
 * called: be quick, or hand the work to another thread.
 *
 * Thread safety. Any thread may call any function at any time, but weir_work_close(), which ends
 * it. weir_work_fence(), weir_work_owned(), weir_work_units(), weir_work_demand_set() and
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
#define WEIR_WORK_FLEET_MAX      16 /* of one process */
#define WEIR_CHECKPOINT_SIZE_MAX 4096

/* Which parts a member takes. */
enum weir_work_strategy {
	WEIR_WORK_GREEDY,   /* evenly: all that it is due at once */
	WEIR_WORK_BALANCED, /* evenly: one each refresh, for slow beginnings */
	WEIR_WORK_WANTED,   /* of capacity: as many as it wants, of those without an owner */
};

struct weir_work_config {
	size_t size; /* set by weir_work_config_init() */

	const char *name;                 /* letters, digits and -_.:@ */
	uint32_t count;                   /* of parts, 1 to WEIR_WORK_MAX; with capacity: 0 */
	enum weir_work_strategy strategy; /* WEIR_WORK_GREEDY */

	/* Of capacity, with WEIR_WORK_WANTED. The last part is worth what is left over. */
	uint64_t capacity; /* units that are shared */
	uint64_t factor;   /* that a part is worth */
	uint64_t reserved; /* units of this member beside them, without asking */

	/*
	 * How long an owner may take to give up a part that another member is due, counted by the
	 * owner's clock from when it is told: two refreshes. After that it no longer owns the part.
	 * WEIR_FOREVER: as long as it likes.
	 */
	weir_dur handover;

	/* This member owns a part now. NULL: no callback. */
	void (*on_gain)(void *arg, uint32_t part, uint64_t fence);
	/*
	 * Another member is due the part. NULL: it is given up at once, after on_lost(). Otherwise
	 * finish what has been begun, then call weir_work_release(). If the other member no longer
	 * asks, and the part was not released, it stays.
	 */
	void (*on_wish)(void *arg, uint32_t part, uint64_t fence);
	/*
	 * This member no longer owns the part. forced: the lease or the hand-over has ended: stop
	 * the work at once. The part may be gained again, with the same fence, if it was only the
	 * lease that had ended, and no other member has owned it since.
	 */
	void (*on_lost)(void *arg, uint32_t part, uint64_t fence, bool forced);
	void *arg;
};

#define weir_work_config_init(config) weir_work_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_work_config_init_sized(struct weir_work_config *config, size_t size);

/*
 * Take part. The first parts come with the refresh after the next one, once all who begin at the
 * same time know of each other. 0; -EINVAL with a sentence in why (may be NULL), cut at why_size;
 * -EEXIST: this process has it open; -ENOSPC: WEIR_WORK_FLEET_MAX; -ENOMEM.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_open(struct weir_fleet *fleet,
					    const struct weir_work_config *config,
					    struct weir_work **parts, char *why, size_t why_size);

/*
 * Give all parts up and end: on_lost() is called for each first. If the store cannot be reached,
 * the fleet goes on trying as long as it is open; after that, others can have the parts when the
 * lease has ended. NULL is allowed.
 */
WEIR_API void weir_work_close(struct weir_work *parts);

/*
 * The fence of a part, if this member owns it now; 0 if it does not. It takes no lock, and makes no
 * system call beside reading the clock.
 */
WEIR_API uint64_t weir_work_fence(const struct weir_work *parts, uint32_t part);

/*
 * The number of parts that this member owns now; and their worth in units, with what is reserved.
 * Each call reads the clock.
 */
WEIR_API uint32_t weir_work_owned(const struct weir_work *parts);
WEIR_API uint64_t weir_work_units(const struct weir_work *parts);

/*
 * Units that are wanted, with WEIR_WORK_WANTED. -EINVAL: with another, or above
 * WEIR_SHARE_UNITS_MAX.
 */
WEIR_API int weir_work_demand_set(struct weir_work *parts, uint64_t units);

/* Give a part up, with the next refresh. -ESTALE: it is not this member's by that fence. */
WEIR_API int weir_work_release(struct weir_work *parts, uint32_t part, uint64_t fence);

/*
 * Write down how far the work on a part has come, as its owner by that fence. sequence must not
 * be below that of the last checkpoint. 0: it is written, and will not be undone. -ESTALE: the part
 * is another member's. -ERANGE: the sequence goes back. -EINVAL; -EMSGSIZE:
 * WEIR_CHECKPOINT_SIZE_MAX. -EIO: it is not known whether it was written, and it may yet be: repeat
 * the call, with the same sequence or a later one. Other errors are those of weir/store.h.
 *
 * A checkpoint never goes back. Each write replaces the version of the row that its writer knew, so
 * a write that arrives late, after a later one was acknowledged or another member took the part, is
 * refused. After -EIO the row is read again before the next write; until that is acknowledged,
 * weir_work_load() may answer either of the two. This holds as long as the store keeps what it has
 * acknowledged; see docs/fleet.md for what each store promises.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_checkpoint(struct weir_work *parts, uint32_t part,
						  uint64_t fence, uint64_t sequence,
						  const void *value, size_t size);

/*
 * The last checkpoint of a part, whoever wrote it. *size: what value has room for, and what there
 * is. 0;
 * -ENOENT: there is none, sequence is 0; -EMSGSIZE: no room; -EPROTO; or as the store has it.
 */
WEIR_API WEIR_MUST_CHECK int weir_work_load(struct weir_work *parts, uint32_t part,
					    uint64_t *sequence, void *value, size_t *size);

/* A part, as anybody sees it who can read the store. */
struct weir_work_part {
	uint32_t part;
	uint32_t checkpoints; /* 1: there is one, of so many bytes, by that number */
	uint64_t sequence;
	size_t size;
	uint64_t owner;  /* the number of a member; 0: nobody */
	uint64_t fence;  /* 0: nobody has it */
	uint64_t wisher; /* who asks for it; 0: nobody */
	/* weir_fleet_config.label of both, while this is visited; "": nobody, or he has gone. */
	const char *owner_label, *wisher_label;
};

/*
 * Look at parts from outside: visit those that have an owner, a checkpoint, or somebody who asks
 * for them, in their order, until visit() (may be NULL) answers false. *workers: members that take
 * part, owners or not (may be NULL). 0; -EINVAL: the name; -ENOENT: there is nothing of that name;
 * -EPROTO; -ENOMEM; or as weir_store_read().
 */
WEIR_API int weir_work_inspect(struct weir_store *store, const char *name, uint32_t *workers,
			       bool (*visit)(void *arg, const struct weir_work_part *part),
			       void *arg);

#ifdef __cplusplus
}
#endif
#endif
