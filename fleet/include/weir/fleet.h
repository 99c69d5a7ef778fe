/*
 * weir/fleet.h - one limit, shared by processes and machines.
 *
 *	weir_fleet_config_init(&config);
 *	config.address = "etcd://10.0.0.1:2379";
 *	if (weir_fleet_open(&config, &fleet, why, sizeof(why)) != 0)
 *		die(why);
 *
 *	weir_share_config_init(&mine);
 *	mine.name = "payments";
 *	mine.capacity = 500;		a second, of all processes together
 *	mine.apply = set_pace;		told how much of it is this process's
 *	if (weir_share_join(fleet, &mine, &share, why, sizeof(why)) != 0)
 *		die(why);
 *	...
 *	weir_share_demand_add(share, 1);	of each call that comes, admitted or not
 *
 * A process holds a leased share of a limit, in whole units of whatever the limit is of: calls a
 * second, bytes a minute, calls in flight. Within it, it admits by itself; no call ever waits
 * for the store. One thread for each process keeps its lease, tells what it wants, and takes what
 * it is due (docs/fleet.md says how):
 *
 * - All shares together are never more than the capacity: a share grows only into what nobody
 *   holds. Where the capacity is cut, all shrink, and none grows until it is enough.
 * - A lease ends for its holder before it ends for the store. So who is stopped, cut off or dead
 *   has stopped using what others are given, as long as it asks weir_share_units() at each call.
 * - Each lease has a fence, a number that never goes back: what is guarded by it,
 *   weir_share_fence(), cannot be done by who has lost it.
 * - Without a store a process goes on with its lease to its end; then by what loss says.
 *
 * Thread safety. Any thread may call any function here at any time, but weir_fleet_close() and
 * weir_share_leave() end what they are given. weir_share_units(), weir_share_demand_set(),
 * weir_share_demand_add() and weir_share_throttled() take no lock and make no system call beside
 * reading the clock. weir_share_info_take(), weir_share_fence(), weir_fleet_error(),
 * weir_fleet_store(), weir_region_fleet() and weir_region_share() never wait for the store: they
 * return what the last refresh left behind. All others may wait for the store, or for a refresh
 * that is waiting for it.
 *
 * Fork. A fleet belongs to the process that opened it.
 */
#ifndef WEIR_FLEET_H
#define WEIR_FLEET_H

#include <weir/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_fleet;
struct weir_share;

#define WEIR_SHARE_UNITS_MAX  (UINT64_C(1) << 53)
#define WEIR_SHARE_WEIGHT_MAX (UINT32_C(1) << 20)
#define WEIR_SHARE_NAME_MAX   200
#define WEIR_FLEET_SHARES_MAX 256 /* of one process */
#define WEIR_FLEET_LABEL_MAX  63

/* How a capacity is shared out. Nobody gets more than it wants. */
enum weir_allotment {
	WEIR_ALLOT_FAIR,         /* equal parts by weight, of what others leave too: max-min */
	WEIR_ALLOT_PROPORTIONAL, /* equal parts, and of what others leave, by what is lacking */
	WEIR_ALLOT_STATIC,       /* the capacity, to each: not shared at all */
	WEIR_ALLOT_NONE,         /* what it wants: only counted */
};

/* What a share is once its lease has ended, and the store cannot be reached. */
enum weir_loss {
	WEIR_LOSS_RESERVED, /* what is reserved: nothing, if nothing is. Never above the capacity */
	/*
	 * The capacity over the members last seen, if that is more. All of them together are within
	 * the capacity; but above it, while some have the store again and others do not.
	 */
	WEIR_LOSS_EVEN,
	WEIR_LOSS_HOLD, /* as it was: above the capacity, once others get it */
	WEIR_LOSS_OPEN, /* the capacity, to each */
};

/* Where a share comes from. */
enum weir_share_state {
	WEIR_SHARE_LOCAL,    /* there is no lease yet: what is reserved */
	WEIR_SHARE_LEASED,   /* a lease, and the store answers */
	WEIR_SHARE_HOLDING,  /* a lease; the store did not answer when it was asked last */
	WEIR_SHARE_LEARNING, /* a lease; the store has lost its memory, and old leases end first */
	WEIR_SHARE_LOST,     /* no lease any more: as weir_share_config.loss has it */
	WEIR_SHARE_DRAINED,  /* nothing, whatever is reserved: see weir_fleet_drain() */
	WEIR_SHARE_FROZEN,   /* a lease; the store answers, but refuses writes */
	WEIR_SHARE_SURPLUS,  /* a lease, but nothing reserved: there are more members than places */
};

struct weir_fleet_config {
	size_t size; /* set by weir_fleet_config_init() */

	/* A store of the caller's, which outlives the fleet; NULL: one of its own, as opened by: */
	struct weir_store *store;
	const struct weir_store_config *store_config; /* NULL: address alone */
	const char *address;                          /* weir_store_config.address */

	/*
	 * The length of a lease, which is also how long a dead member's share is lost to the
	 * others. It is bounded by the lease of the limit, which is that of the member that made
	 * the limit, and by learning. A lease that is shortened is renewed more often, and
	 * weir_share_info.reason says so. 15 s, or the store's minimum if that is longer.
	 */
	weir_dur lease;
	/*
	 * How often it is kept, and shares are looked at: a third of the lease; 0.8 to 1.3 of it.
	 */
	weir_dur refresh;

	uint32_t manual; /* 1: there is no thread: the caller calls weir_fleet_step() */
	uint64_t seed;   /* of the jitter; 0: of the kernel's */
	const struct weir_clock *clock; /* CLOCK_BOOTTIME; with another, manual */

	/*
	 * Who this process is, for whoever looks: 1 to WEIR_FLEET_LABEL_MAX letters, digits and
	 * -_.:@. All its shares and parts have it. It means nothing to the fleet, and others may
	 * have the same. Copied. NULL: HOST:PID, where what is none of these is -, and a long HOST
	 * is cut.
	 */
	const char *label;

	/*
	 * How long old leases may last, and newcomers are given nothing, where a store cannot rule
	 * out that it has lost what it had acknowledged (weir_store_view.proven). No lease in such a
	 * store is longer than this. So give all processes that ever share a store the same value,
	 * whatever their leases are. 15 s; from 20 ms to an hour.
	 */
	weir_dur learning;
};

/* A share of a limit. What says (limit) counts for who makes the limit in the store first. */
struct weir_share_config {
	size_t size; /* set by weir_share_config_init() */

	const char *name;  /* of the limit: letters, digits and -_.:@ */
	uint64_t capacity; /* (limit) units of all members together; to WEIR_SHARE_UNITS_MAX */
	enum weir_allotment allotment; /* (limit) WEIR_ALLOT_FAIR */
	/*
	 * (limit) Units of each member that it has without asking, from the first moment on and
	 * without a store: reserved * members of the capacity are set aside for that. 0: none.
	 */
	uint64_t reserved;
	/*
	 * (limit) The greatest number of members; 0 where nothing is reserved. If there are more,
	 * those that came last are WEIR_SHARE_SURPLUS once they have asked the store: nothing is
	 * reserved for them until there are fewer. As long as there are too many, what is reserved
	 * for the others ends with their leases.
	 */
	uint32_t members;

	uint32_t weight;     /* 1; to WEIR_SHARE_WEIGHT_MAX */
	int32_t priority;    /* 0; who is above another gets what it wants first */
	weir_dur period;     /* 1 s; what units are of, for weir_share_demand_add() */
	enum weir_loss loss; /* WEIR_LOSS_RESERVED */

	/*
	 * Told of each change, one after the other, by threads of the fleet, or by who calls
	 * weir_fleet_step() and the like; of a lease's end when it ends, also while the store is
	 * being waited for, but with a manual fleet. Neither may call what may wait for the store,
	 * nor wait for who does. NULL: nobody is.
	 */
	void (*apply)(void *arg, uint64_t units);
	/* Asked what is wanted, before the store is told. NULL: weir_share_demand_set(), or demand. */
	uint64_t (*wants)(void *arg);
	void *arg;
};

#define weir_fleet_config_init(config) weir_fleet_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_fleet_config_init_sized(struct weir_fleet_config *config, size_t size);
#define weir_share_config_init(config) weir_share_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_share_config_init_sized(struct weir_share_config *config, size_t size);

/*
 * Open a fleet: a store, a session in it, and a thread. A server need not be there: the fleet goes
 * on trying. 0; -EINVAL, with a sentence in why (may be NULL), cut at why_size: the configuration
 * is no good, or the store has no lease as short as that; or as weir_store_open().
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_open(const struct weir_fleet_config *config,
					     struct weir_fleet **fleet, char *why, size_t why_size);

/*
 * Leave all limits and end; what was held is free at once, if the store can be told. NULL is
 * allowed.
 */
WEIR_API void weir_fleet_close(struct weir_fleet *fleet);

/*
 * Do what is due, and say when there is something to do again, on the fleet's clock. For manual
 * fleets; it may wait for the store.
 */
WEIR_API weir_time weir_fleet_step(struct weir_fleet *fleet);

/*
 * Look at all shares and parts now, without waiting until it is time. 0; -EPROTO: a limit or parts
 * in the store are of another version; -EEXIST: parts are configured here otherwise than by the
 * members that the store knows; or the store's error: -EIO and others of weir/store.h.
 * weir_fleet_error() has a sentence.
 */
WEIR_API int weir_fleet_refresh(struct weir_fleet *fleet);

/* The error sentence of the last refresh, or of the one in progress; "" if there was no error. */
WEIR_API void weir_fleet_error(struct weir_fleet *fleet, char *text, size_t size);

/*
 * Join a limit. It begins with what is reserved, and has its share once the store has been asked:
 * at once with a thread, with the next weir_fleet_refresh() otherwise. 0; -EINVAL with a sentence;
 * -EEXIST: this process has joined it already; -ENOSPC: WEIR_FLEET_SHARES_MAX; -ENOMEM.
 */
WEIR_API WEIR_MUST_CHECK int weir_share_join(struct weir_fleet *fleet,
					     const struct weir_share_config *config,
					     struct weir_share **share, char *why, size_t why_size);

/*
 * Leave the limit. Stop using its units before this is called. What was held is free at once; if
 * the store does not answer, it is free with the fleet's next refresh, or with the end of its
 * lease. NULL is allowed.
 */
WEIR_API void weir_share_leave(struct weir_share *share);

/*
 * Units that this process may use now, with what is reserved; 0 after the lease, unless loss says
 * more.
 */
WEIR_API uint64_t weir_share_units(const struct weir_share *share);

/* What is wanted, in units, until it is said anew. -EINVAL: above WEIR_SHARE_UNITS_MAX. */
WEIR_API int weir_share_demand_set(struct weir_share *share, uint64_t units);

/*
 * So many units were asked for now, admitted or refused. What is wanted is then made of the last
 * ten seconds of it, the last second weighing most; unless it is said by weir_share_demand_set() or
 * wants().
 */
WEIR_API void weir_share_demand_add(struct weir_share *share, uint64_t units);

/*
 * The service said that it is too much, though the limit was kept: others use it too. All
 * members together use 0.7 of what they did, once each refresh at most, down to a tenth of the
 * capacity; with each refresh in which nobody says so, a twentieth of the capacity comes back.
 */
WEIR_API void weir_share_throttled(struct weir_share *share);

/*
 * A limiter as the user of a share of calls in flight: what it learns here, and what it is due of
 * what all may have there, the lesser of both is its limit (weir_limit_cap()). It wants what is in
 * flight and waits, a quarter more, and one; where calls were refused, as much more as would have
 * admitted them; and never more than it has learned. Calls in flight when a lease ends go on.
 */
struct weir_share_limiter {
	struct weir_limiter *limiter;
	uint64_t admitted, refused; /* opaque */
	uint32_t first;             /* opaque */
};

/* Set apply, wants and arg. *link and the limiter must outlive the share. */
WEIR_API void weir_share_of_limiter(struct weir_share_config *config,
				    struct weir_share_limiter *link, struct weir_limiter *limiter);

struct weir_share_info {
	size_t size; /* set by weir_share_info_init() */
	enum weir_share_state state;
	uint64_t units;     /* as weir_share_units() */
	uint64_t wants;     /* as told to the store last */
	uint64_t capacity;  /* of the limit, as the store has it */
	uint64_t effective; /* the same, as far as throttling leaves it */
	uint64_t fence;     /* of this lease; 0: none */
	uint32_t members;   /* seen last */
	weir_time deadline; /* of the lease, on the fleet's clock */
	uint64_t conflicts; /* commits that another was quicker than, so far */
	uint64_t refreshes;
	/*
	 * A sentence: why it is not as it should be. "" if it is WEIR_SHARE_LEASED and nothing is
	 * amiss.
	 */
	char reason[256];
};

#define weir_share_info_init(info) weir_share_info_init_sized((info), sizeof(*(info)))
WEIR_API void weir_share_info_init_sized(struct weir_share_info *info, size_t size);
/* Report what the last refresh left behind; units, and whether there is a lease, are current. */
WEIR_API void weir_share_info_take(struct weir_share *share, struct weir_share_info *info);

/* Bytes of a key that weir_share_fence() fills in. */
#define WEIR_SHARE_KEY_SIZE (WEIR_SHARE_NAME_MAX + 32)

/*
 * Fill in the check for a weir_store_commit() that only the holder of this lease may make. The key
 * of the check is copied to key, to which check->key points, so the check stays valid as long as
 * the caller's key does, whatever becomes of the share. 0; -ESTALE: there is no lease.
 */
WEIR_API int weir_share_fence(struct weir_share *share, struct weir_store_check *check,
			      char key[WEIR_SHARE_KEY_SIZE]);

/* A member of a limit, as anybody sees it who can read the store. */
struct weir_fleet_member {
	uint64_t id;
	uint64_t fence; /* of its lease, or of the one it is about to get */
	uint64_t wants;
	uint64_t grant; /* of what is shared; reserved is on top of it */
	uint32_t weight;
	int32_t priority;
	/*
	 * 1: it is to hold nothing. Of one that is not there just now, fence is 0: it is drained
	 * when it comes back, under another number.
	 */
	uint32_t drained;
	/* weir_fleet_config.label, while this is visited; "" of one that is not there. */
	const char *label;
	uint64_t reserved; /* units reserved for it; 0: none, or it is surplus */
};

/* A limit, as the store has it. */
struct weir_fleet_limit {
	size_t size; /* set by weir_fleet_limit_init() */
	uint64_t capacity, effective;
	enum weir_allotment allotment;
	uint64_t reserved;
	uint32_t members_max; /* as configured; 0: nothing is reserved */
	uint32_t members;     /* that are there */
	uint64_t granted;     /* to all of them, of what is shared */
	weir_dur lease;
	uint64_t version; /* of how it is configured; 0: there is no such limit */
	uint64_t wanted;  /* by all of them together */
};

#define weir_fleet_limit_init(limit) weir_fleet_limit_init_sized((limit), sizeof(*(limit)))
WEIR_API void weir_fleet_limit_init_sized(struct weir_fleet_limit *limit, size_t size);

/*
 * Look at a limit from outside, without joining it: fill *limit, and visit its members, in the
 * order of their numbers, those that are drained and not there last, until visit() (may be NULL)
 * answers false. 0; -EINVAL: the name; -ENOENT: there is no such limit; -EPROTO: it is of another
 * version; or as weir_store_read().
 */
WEIR_API int weir_fleet_inspect(struct weir_store *store, const char *name,
				struct weir_fleet_limit *limit,
				bool (*visit)(void *arg, const struct weir_fleet_member *member),
				void *arg);

/*
 * Change the capacity of a limit, for all. Where it is cut, all members are within it after a
 * refresh of each. 0; -EINVAL: it is above WEIR_SHARE_UNITS_MAX, or less than is reserved, or the
 * name is none; -ENOENT: there is no such limit; -EPROTO; or as the store has it.
 */
WEIR_API int weir_fleet_change(struct weir_store *store, const char *name, uint64_t capacity);

/*
 * Make a limit that nobody has joined yet (version 0), or change one for all (version as
 * weir_fleet_inspect() has filled it): capacity, allotment, reserved, members_max, and lease, which
 * bounds the leases of its members; 0 is 15 s. Other fields are not looked at. While a change
 * spreads, which takes a refresh of each member, some members have what was reserved before and
 * some what is reserved now. 0; -EINVAL, with a sentence in why (may be NULL), cut at why_size;
 * -EAGAIN: it is there already, or has changed since; or as weir_store_commit().
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_configure(struct weir_store *store, const char *name,
						  const struct weir_fleet_limit *limit, char *why,
						  size_t why_size);

/*
 * Remove a limit that has no members. Who joins it later, makes it as he is configured. 0;
 * -EINVAL: the name; -ENOENT: there is no such limit; -EBUSY: it has members; -EPROTO; or as the
 * store has it.
 */
WEIR_API int weir_fleet_remove(struct weir_store *store, const char *name);

/*
 * Drain a member: with its next refresh it gives back all that it holds, and may use nothing, what
 * is reserved neither, until it is undrained. What it told to want is for the others, within a
 * refresh of each. It stays drained when its session ends, and when it comes back under another
 * number; not when its process begins anew. 0; -EINVAL: the name; -ENOENT: there is no such limit;
 * -ESRCH: it has no such member; -EPROTO; or as the store has it.
 */
WEIR_API int weir_fleet_drain(struct weir_store *store, const char *name, uint64_t member,
			      bool drained);

/* What there is in a store under a name. */
struct weir_fleet_entry {
	const char *name;
	const struct weir_fleet_limit *limit; /* NULL: none, or one of another version */
	uint32_t strange;                     /* 1: one of another version */
	/* Of weir/work.h, members, parts with an owner, and parts with a checkpoint. */
	uint32_t workers, owned, checkpoints;
};

/*
 * Visit all names of limits and of parts in a store, in their order, until visit() answers false.
 * 0; -ENOMEM; or as weir_store_read().
 */
WEIR_API int weir_fleet_list(struct weir_store *store,
			     bool (*visit)(void *arg, const struct weir_fleet_entry *entry),
			     void *arg);

/* The store that a fleet is in: for those above, and for what fences guard. */
WEIR_API struct weir_store *weir_fleet_store(struct weir_fleet *fleet);

/*
 * A region: the members of a limit in one store, below, are together one member of a limit in
 * another, above. What it holds there they share, by leases that end before its own. Its members
 * join the limit below as any other, with a capacity that is no more than what is reserved for the
 * region above: 0, where nothing is. What is carried comes on top.
 *
 * Any process that reaches both stores may open it, and several should: one of them carries, and
 * another goes on with what the region holds when that one is gone. A region may be above others.
 */
struct weir_region;

struct weir_region_config {
	size_t size; /* set by weir_region_config_init() */

	/*
	 * The fleet above: its store and its times. Here the lease is 30 s, and a refresh a sixth of
	 * it, if nothing is said; let it be twice as long as the members' leases, or more.
	 */
	const struct weir_fleet_config *above;
	/*
	 * The limit above, and the region as a member of it. weight 0: that of all its members. What
	 * it wants is what they want: wants is of no use; nor is loss: without the store above, the
	 * region has what is reserved.
	 */
	const struct weir_share_config *limit;
	/*
	 * The store below; and as lease, how long a carrier may be silent before another takes over: a
	 * third of the lease above. The rest is of no use.
	 */
	const struct weir_fleet_config *below;
	const char *name; /* of the limit below; NULL: as above */
};

#define weir_region_config_init(config) weir_region_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_region_config_init_sized(struct weir_region_config *config, size_t size);

/*
 * Take part in carrying a region. What config points to need not live longer than the call, but
 * stores. 0; -EINVAL with a sentence; or as weir_fleet_open() and weir_share_join().
 */
WEIR_API WEIR_MUST_CHECK int weir_region_open(const struct weir_region_config *config,
					      struct weir_region **region, char *why,
					      size_t why_size);

/*
 * End it. What the region holds stays as it is until its lease ends, for another to carry. NULL is
 * allowed.
 */
WEIR_API void weir_region_close(struct weir_region *region);

/*
 * Its fleet above: for weir_fleet_step(), where it is manual, weir_fleet_refresh() and
 * weir_fleet_error(). Nothing else is to be joined in it. And its share there, for
 * weir_share_info_take(): WEIR_SHARE_LOCAL or WEIR_SHARE_LOST where another carries it. Both are
 * the region's.
 */
WEIR_API struct weir_fleet *weir_region_fleet(struct weir_region *region);
WEIR_API struct weir_share *weir_region_share(struct weir_region *region);

#ifdef __cplusplus
}
#endif
#endif
