/* SPDX-License-Identifier: BSD-2-Clause */
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
 *	mine.capacity = 500;		calls per second, of all processes together
 *	mine.apply = set_pace;		called with this process's part of it
 *	if (weir_share_join(fleet, &mine, &share, why, sizeof(why)) != 0)
 *		die(why);
 *	...
 *	weir_share_demand_add(share, 1);	for each call that arrives, admitted or not
 *
 * A process holds a leased share of a limit, in whole units of whatever the limit counts: calls per
 * second, bytes per minute, calls in flight. It admits calls within its share by itself; no call
 * ever waits for the store. A thread in each process renews the lease, writes down what the
 * process wants, and takes what is allotted to it (docs/fleet-design.md describes the protocol):
 *
 * - The sum of all shares never exceeds the capacity: a share grows only into units that no other
 *   member holds. When the capacity is cut, all shares shrink, and none grows until the sum fits.
 * - Capacity that no member wants is headroom: half of it is handed out, so that bursts are
 *   admitted. A share that is outgrown asks for more at once.
 * - A lease ends for its holder before it ends for the store. So a process that is stopped, cut off
 *   or dead no longer uses units that others are given, as long as it calls weir_share_units() for
 *   each call.
 * - Each lease has a fence, a number that never goes back. An action guarded by it, see
 *   weir_share_fence(), cannot be carried out by a member that has lost the lease.
 * - Without a store, a process uses its lease until it ends, and then what weir_share_config.loss
 *   allows.
 *
 * Thread safety. Any thread may call any function of this header at any time, except that
 * weir_fleet_close() and weir_share_leave() end the object they are given. weir_share_units(),
 * weir_share_demand_set(), weir_share_demand_add() and weir_share_throttled() take no lock and make
 * no system call apart from reading the clock. weir_share_info_take(), weir_share_fence(),
 * weir_fleet_error(), weir_fleet_store(), weir_region_fleet() and weir_region_share() never wait
 * for the store: they return what the last refresh left behind. All others may wait for the store,
 * or for a refresh that is waiting for it, and get their turn after it: a store that never answers
 * does not make the refreshes of the fleet's own thread keep them out.
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
#define WEIR_FLEET_SHARES_MAX 256 /* in one process */
#define WEIR_FLEET_LABEL_MAX  63

#define WEIR_FLEET_PATTERN_MAX   200  /* characters */
#define WEIR_FLEET_TEMPLATES_MAX 1000 /* in a store */

/* How a capacity is divided among members by what they want. */
enum weir_allotment {
	WEIR_ALLOT_FAIR,         /* max-min fair by weight: unused shares go to other members */
	WEIR_ALLOT_PROPORTIONAL, /* equal shares; unused ones are divided by unmet demand */
	WEIR_ALLOT_STATIC,       /* the whole capacity to each member: not divided at all */
	WEIR_ALLOT_NONE,         /* to each member what it wants: usage is only counted */
};

/* Whether a share may be larger than what its member wants, as long as the capacity is idle. */
enum weir_headroom {
	WEIR_HEADROOM_MEASURED, /* if the demand is measured by weir_share_demand_add() */
	WEIR_HEADROOM_ALWAYS,
	WEIR_HEADROOM_NEVER,
};

/* What a share is once its lease has ended and the store cannot be reached. */
enum weir_loss {
	WEIR_LOSS_RESERVED, /* the reserved units, possibly 0; never exceeds the capacity */
	/*
	 * The capacity divided by the number of members last seen, if that is more than what is
	 * reserved. The sum stays within the capacity, except while some members have reached the
	 * store again and others have not.
	 */
	WEIR_LOSS_EVEN,
	WEIR_LOSS_HOLD, /* unchanged: may exceed the capacity once other members get units */
	WEIR_LOSS_OPEN, /* the whole capacity to each member */
};

/* The state of a share, which determines its units. */
enum weir_share_state {
	WEIR_SHARE_LOCAL,    /* no lease yet: only the reserved units */
	WEIR_SHARE_LEASED,   /* leased, and the store answers */
	WEIR_SHARE_HOLDING,  /* leased; the store did not answer the last request */
	WEIR_SHARE_LEARNING, /* leased; the store lost its data, so old leases must end first */
	WEIR_SHARE_LOST,     /* the lease has ended: weir_share_config.loss determines the units */
	WEIR_SHARE_DRAINED,  /* no units, not even reserved ones: see weir_fleet_drain() */
	WEIR_SHARE_FROZEN,   /* leased; the store answers, but refuses writes */
	WEIR_SHARE_SURPLUS,  /* leased, but nothing reserved: more members than configured */
};

/*
 * A change of the state of a share; or, where from and to are the same, of whether there is a
 * weir_share_info.mismatch. All of it is valid during the callback only.
 */
struct weir_share_change {
	const char *name;               /* of the limit */
	enum weir_share_state from, to; /* a share begins in WEIR_SHARE_LOCAL */
	uint64_t units;                 /* that the process may use from then on */
	weir_time time;                 /* when it was noticed, on the fleet's clock */
	const char *reason;             /* weir_share_info.reason; "" if there is none */
	/*
	 * Changes before this one that were not reported, for want of memory or because more than
	 * a thousand were waiting for the callback.
	 */
	uint64_t missed;
};

/* The name of a state, such as "leased"; NULL: there is no such state. Any thread. */
WEIR_API const char *weir_share_state_name(enum weir_share_state state);

struct weir_fleet_config {
	size_t size; /* set by weir_fleet_config_init() */

	/*
	 * A store of the caller's, which must outlive the fleet. NULL: the fleet opens its own,
	 * from:
	 */
	struct weir_store *store;
	const struct weir_store_config *store_config; /* NULL: from address only */
	const char *address;                          /* weir_store_config.address */

	/*
	 * The length of a lease, which is also how long the share of a dead member is unavailable
	 * to the others. It is bounded by the lease of the limit, which is that of the member that
	 * created the limit, and by learning. If it is shortened by these, it is renewed more
	 * often, and weir_share_info.reason says so. Default: 15 s, or the store's minimum if that
	 * is longer.
	 */
	weir_dur lease;
	/*
	 * The interval between refreshes, which renew the lease and recompute shares. Each interval
	 * is multiplied by a random factor from 0.8 to 1.3. A share whose demand outgrows its units
	 * is refreshed earlier, about ten times in an interval at most. Default: a third of the
	 * lease.
	 */
	weir_dur refresh;

	uint32_t manual;                /* 1: no thread; the caller calls weir_fleet_step() */
	uint64_t seed;                  /* of the jitter; 0: drawn from the kernel */
	const struct weir_clock *clock; /* CLOCK_BOOTTIME; any other requires manual */

	/*
	 * A label that identifies this process to observers: 1 to WEIR_FLEET_LABEL_MAX letters,
	 * digits and -_.:@. It is attached to all shares and partitions of the process. The fleet
	 * itself does not use it, and it need not be unique. Copied. NULL: HOST:PID, with - in
	 * place of all other characters, and a long HOST truncated.
	 */
	const char *label;

	/*
	 * How long old leases may still last where a store cannot rule out that it has lost
	 * acknowledged data (weir_store_view.proven); new members are given nothing for that time.
	 * No lease in such a store is longer than this. So give the same value to all processes
	 * that ever share a store, whatever their leases are. A limit may have another time to
	 * learn (weir_fleet_limit.learning_period). Default: 15 s; from 20 ms to an hour.
	 */
	weir_dur learning;

	/*
	 * Called for each change of the state of a share: at the end of a refresh, and when a lease
	 * ends, even while a request to the store is pending. Calls are serialized, come in order,
	 * and hold no lock: a callback may take its time, and call any function of the fleet except
	 * weir_fleet_close() and weir_region_close() of its own fleet. They come from a thread of
	 * their own; with a manual fleet, from the thread that calls weir_fleet_step() or
	 * weir_fleet_refresh(), when its work is done. Changes may still be reported after
	 * weir_share_leave(), but not after weir_fleet_close(). May be NULL.
	 */
	void (*on_change)(void *arg, const struct weir_share_change *change);
	void *on_change_arg;

	/*
	 * 1: do not watch the store. Otherwise a thread of a fleet that is not manual watches it
	 * (weir_store_watch_open()), if it can be watched, and shares are refreshed early: when an
	 * operator has changed the limit or drained members, and, for a share that lacks units, when
	 * other members may have given some back. That is at most once in an eighth of refresh, or in
	 * 50 ms, or in a second, whichever is in the middle.
	 */
	uint32_t poll_only;
};

/*
 * The configuration of a share. Fields marked (limit) belong to the limit, and take effect only in
 * the member that creates it in the store first, and only if there is no template for its name
 * (weir_fleet_template_set()).
 */
struct weir_share_config {
	size_t size; /* set by weir_share_config_init() */

	const char *name; /* name of the limit: letters, digits and -_.:@ */
	/*
	 * (limit) Units of all members together; at most WEIR_SHARE_UNITS_MAX. 0 where the limit
	 * exists, or there is a template for it: take it as it is, and do not compare it (weir_share_info.mismatch).
	 */
	uint64_t capacity;
	enum weir_allotment allotment; /* (limit) default: WEIR_ALLOT_FAIR */
	/*
	 * (limit) Units that each member may use from the first moment on, without a lease and
	 * without a store. reserved * members units of the capacity are set aside for them.
	 * Default: 0, none.
	 */
	uint64_t reserved;
	/*
	 * (limit) The greatest number of members; 0 if nothing is reserved. If there are more,
	 * those that joined last become WEIR_SHARE_SURPLUS once they have reached the store:
	 * nothing is reserved for them until there are fewer members. While there are too many, the
	 * reserved units of the others end with their leases.
	 */
	uint32_t members;

	uint32_t weight;     /* default: 1; at most WEIR_SHARE_WEIGHT_MAX */
	int32_t priority;    /* default: 0; demand of a higher priority is satisfied first */
	weir_dur period;     /* 1 s; the time that units refer to, for weir_share_demand_add() */
	enum weir_loss loss; /* default: WEIR_LOSS_RESERVED */
	/*
	 * Headroom lets a member admit a burst, or begin, without asking first: half of the
	 * capacity that no member wants is divided, half of that by weight and half in proportion
	 * to demand. It is given back when others want it, with the next refresh. Default:
	 * WEIR_HEADROOM_MEASURED. weir_share_of_limiter(), and weir_share_of_rate() with a batcher,
	 * set WEIR_HEADROOM_ALWAYS.
	 */
	enum weir_headroom headroom;

	/*
	 * Called with the new number of units after each change. Calls are serialized, and come
	 * from threads of the fleet, or from the thread that calls weir_fleet_step(),
	 * weir_fleet_refresh() or another function of this header. The end of a lease is reported
	 * when it happens, even while a request to the store is pending, except with a manual
	 * fleet. Callbacks must not block on the store, directly or indirectly. May be NULL.
	 */
	void (*apply)(void *arg, uint64_t units);
	/*
	 * Returns the current demand, in units; called before demand is written to the store, and
	 * about ten times between two refreshes, to find out whether more is needed at once. The
	 * greatest value since the last refresh counts. Must not block on the store either. NULL:
	 * weir_share_demand_set() or weir_share_demand_add() is used.
	 */
	uint64_t (*wants)(void *arg);
	void *arg;
	/*
	 * For units that cannot be taken back at once, such as those that the process has lent to
	 * other programs for a time. Called in each refresh, before any units are given back, with
	 * the units that the share is to have. Returns how many are in use: while the lease lasts,
	 * the share gives back no more than the rest. From the return on, the process may not put
	 * units to use beyond the greater of both numbers, nor beyond weir_share_units(). Units whose
	 * use has ended are given back with the next refresh. Must not block on the store, and must
	 * call no function of the fleet that may wait for it. A limit with an allocator gets nothing
	 * back until no more is lent than the share is to have. NULL: none. Not called in a region.
	 */
	uint64_t (*lent)(void *arg, uint64_t units);

	/*
	 * (limit) 1: one of the members is elected to divide the capacity, and the others read what
	 * it has granted them, so that thousands of members can share the limit. All processes
	 * should set this for such a limit: one that does not reads the rows of all members once,
	 * when it joins. Default: 0, each member reads the rows of all.
	 */
	uint32_t allocated;
};

#define weir_fleet_config_init(config) weir_fleet_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_fleet_config_init_sized(struct weir_fleet_config *config, size_t size);
#define weir_share_config_init(config) weir_share_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_share_config_init_sized(struct weir_share_config *config, size_t size);

/*
 * Open a fleet: a store, a session in it, and a thread. A server need not be reachable yet: the
 * fleet goes on trying.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid, or the store grants no lease that short; why (may be
 *          NULL) gets a sentence, truncated to why_size
 * Other errors are those of weir_store_open().
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_open(const struct weir_fleet_config *config,
					     struct weir_fleet **fleet, char *why, size_t why_size);

/*
 * Leave all limits and free the fleet. Its units become available to others at once if the store
 * can be reached. NULL is allowed.
 */
WEIR_API void weir_fleet_close(struct weir_fleet *fleet);

/*
 * Do the work that is due, and return the time at which there will be more, on the fleet's clock.
 * For manual fleets. May block on the store.
 */
WEIR_API weir_time weir_fleet_step(struct weir_fleet *fleet);

/*
 * Refresh all shares and partitions now, without waiting for the interval to pass.
 * weir_fleet_error() has a sentence about each error.
 *
 * Returns 0, or a negative errno:
 * -EPROTO: a limit or partitions in the store have another format version
 * -EEXIST: partitions are configured differently by the members that the store knows
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_fleet_refresh(struct weir_fleet *fleet);

/* The error sentence of the last refresh, or of the one in progress; "" if there was no error. */
WEIR_API void weir_fleet_error(struct weir_fleet *fleet, char *text, size_t size);

/*
 * Join a limit. The share begins with what is reserved, and gets the rest once the store has been
 * read: immediately with a thread, with the next weir_fleet_refresh() otherwise.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid; why (may be NULL) gets a sentence
 * -EEXIST: this process has joined the limit already
 * -ENOSPC: there are WEIR_FLEET_SHARES_MAX shares already
 * -ENOMEM: out of memory
 */
WEIR_API WEIR_MUST_CHECK int weir_share_join(struct weir_fleet *fleet,
					     const struct weir_share_config *config,
					     struct weir_share **share, char *why, size_t why_size);

/*
 * Leave the limit. Stop using its units before the call. They are available to others at once; if
 * the store does not answer, they are with the fleet's next refresh, or when the lease ends. NULL
 * is allowed.
 */
WEIR_API void weir_share_leave(struct weir_share *share);

/*
 * The units that this process may use now, including reserved ones. After the end of the lease 0,
 * unless weir_share_config.loss allows more.
 */
WEIR_API uint64_t weir_share_units(const struct weir_share *share);

/*
 * Set the demand, in units, until the next call. Returns 0, or -EINVAL: more than
 * WEIR_SHARE_UNITS_MAX.
 */
WEIR_API int weir_share_demand_set(struct weir_share *share, uint64_t units);

/*
 * Add units that were requested now, whether admitted or refused. Unless demand is set by
 * weir_share_demand_set() or wants(), it is then estimated from the requests: what there were in the
 * last second (in the last period, if that is longer, up to ten seconds), or the mean of the last
 * ten seconds, with the most weight on the last one, if that is more.
 */
WEIR_API void weir_share_demand_add(struct weir_share *share, uint64_t units);

/*
 * Report that the backend signalled overload although the limit was kept, because it has other
 * users. All members together then use 0.7 of what they did, once per refresh at most, down to a
 * tenth of the capacity. Each refresh in which no member reports overload restores a twentieth of
 * the capacity.
 */
WEIR_API void weir_share_throttled(struct weir_share *share);

/*
 * Connects a limiter to a share of calls in flight. The limiter's limit is the lesser of what it
 * learns locally and its share (weir_limit_cap()). Its demand is 1.25 times the number of calls in
 * flight and waiting, plus one; where calls were refused, as much more as would have admitted them;
 * never more than it has learned. Calls in flight when a lease ends are not interrupted.
 */
struct weir_share_limiter {
	struct weir_limiter *limiter;
	uint64_t admitted, refused; /* opaque */
	uint32_t first;             /* opaque */
};

/* Set apply, wants, headroom and arg of config. *link and the limiter must outlive the share. */
WEIR_API void weir_share_of_limiter(struct weir_share_config *config,
				    struct weir_share_limiter *link, struct weir_limiter *limiter);

struct weir_share_info {
	size_t size; /* set by weir_share_info_init() */
	enum weir_share_state state;
	uint64_t units;     /* the same as weir_share_units() */
	uint64_t wants;     /* demand, as last written to the store */
	uint64_t capacity;  /* of the limit, as recorded in the store */
	uint64_t effective; /* capacity, less what throttling takes */
	uint64_t fence;     /* of this lease; 0: no lease */
	uint32_t members;   /* number of members last seen */
	weir_time deadline; /* end of the lease, on the fleet's clock */
	uint64_t conflicts; /* commits that failed because another member committed first */
	uint64_t refreshes;
	/*
	 * A sentence that explains an abnormal state, or says what is wrong in a normal one. "" if
	 * the state is WEIR_SHARE_LEASED without any problem.
	 */
	char reason[256];
	/*
	 * A sentence if this process is configured with another limit than the store has: another
	 * capacity, allotment, reserved or members. What the store has counts, so one of the two was
	 * not meant; weir_fleet_change() and weir_fleet_configure() change the limit. "" if they do
	 * not differ, if the limit has not been read yet, or if weir_share_config.capacity is 0,
	 * which takes the limit as it is.
	 */
	char mismatch[256];
};

#define weir_share_info_init(info) weir_share_info_init_sized((info), sizeof(*(info)))
WEIR_API void weir_share_info_init_sized(struct weir_share_info *info, size_t size);
/*
 * Report the state that the last refresh left behind. The units, and whether there is a lease, are
 * current.
 */
WEIR_API void weir_share_info_take(struct weir_share *share, struct weir_share_info *info);

/* Size of the key that weir_share_fence() fills in, in bytes. */
#define WEIR_SHARE_KEY_SIZE (WEIR_SHARE_NAME_MAX + 32)

/*
 * Fill in a check for weir_store_commit() that passes only while this lease is held. The key is
 * copied to key, to which check->key points. So the check stays valid as long as the caller's key
 * does, even after the share is gone.
 *
 * Returns 0, or a negative errno:
 * -ESTALE: there is no lease
 */
WEIR_API int weir_share_fence(struct weir_share *share, struct weir_store_check *check,
			      char key[WEIR_SHARE_KEY_SIZE]);

/* A member of a limit, as any process that can read the store sees it. */
struct weir_fleet_member {
	uint64_t id;
	uint64_t fence; /* of its lease, or of the lease it is about to get */
	uint64_t wants;
	uint64_t grant; /* units of the shared part; reserved is on top of it */
	uint32_t weight;
	int32_t priority;
	/*
	 * 1: it must hold nothing. A drained member that is not present has fence 0: it is drained
	 * again when it returns with another number. A drained label that no member has is listed
	 * as a member with id and fence 0.
	 */
	uint32_t drained;
	/* weir_fleet_config.label, valid during the visit; "" of a drained number not present */
	const char *label;
	uint64_t reserved; /* units reserved for it; 0: none, or it is surplus */
	/* weir_share_info.mismatch of its process, likewise; "" if it is configured as the limit */
	const char *mismatch;
	/*
	 * A sentence, likewise: why it holds nothing of the shared part, as it wants nothing, is
	 * drained, others hold everything, or old leases must end first. "" if it holds some.
	 */
	const char *reason;
	uint32_t label_drained; /* 1: its label is drained, see weir_fleet_drain_label() */
};

/* A limit, as recorded in the store. */
struct weir_fleet_limit {
	size_t size; /* set by weir_fleet_limit_init() */
	uint64_t capacity, effective;
	enum weir_allotment allotment;
	uint64_t reserved;
	uint32_t members_max; /* as configured; 0: nothing is reserved */
	uint32_t members;     /* present now */
	uint64_t granted;     /* to all members together, of the shared part */
	weir_dur lease;
	uint64_t version; /* of the limit's configuration; 0: there is no such limit */
	uint64_t wanted;  /* by all members together */
	/*
	 * Filled in by weir_fleet_inspect() and weir_fleet_list(): how long leases may still last
	 * that the store may have forgotten, while nothing grows (0: it knows all of them); and a
	 * sentence, why nothing is granted, or "".
	 */
	weir_dur learning;
	char reason[128];
	/*
	 * Filled in by the same: units of capacity that a region holds in the store above. They are
	 * not the limit's own, so subtract them before weir_fleet_configure().
	 */
	uint64_t carried;
	/*
	 * How long members learn where the store may have forgotten leases of this limit, in place
	 * of their own weir_fleet_config.learning: at least lease, so that no lease outlasts it, at
	 * most an hour. 0: their own. Older programs go by their own. Only weir_fleet_configure()
	 * and templates write it: a limit that members create again after a loss is without it.
	 * If lease and this are shortened, leases from before may outlast it for as long as they
	 * were, if the store loses data meanwhile.
	 */
	weir_dur learning_period;
	/*
	 * 1: an allocator divides the capacity (weir_share_config.allocated). It can be changed only
	 * while there are no members.
	 */
	uint32_t allocated;
	/* Filled in by the same: the label of the member that is the allocator; "": there is none. */
	char allocator[WEIR_FLEET_LABEL_MAX + 1];
};

#define weir_fleet_limit_init(limit) weir_fleet_limit_init_sized((limit), sizeof(*(limit)))
WEIR_API void weir_fleet_limit_init_sized(struct weir_fleet_limit *limit, size_t size);

/*
 * Inspect a limit without joining it. Fills *limit, and visits its members in the order of their
 * numbers, followed by drained members that are not present, until visit() (may be NULL) returns
 * false.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name is invalid
 * -ENOENT: there is no such limit
 * -EPROTO: the limit has another format version
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_fleet_inspect(struct weir_store *store, const char *name,
				struct weir_fleet_limit *limit,
				bool (*visit)(void *arg, const struct weir_fleet_member *member),
				void *arg);

/*
 * Change the capacity of a limit for all members. After a cut, the sum of all shares fits once each
 * member has refreshed.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: capacity exceeds WEIR_SHARE_UNITS_MAX or is less than what is reserved, or the name is
 *          invalid
 * -ENOENT: there is no such limit
 * -EPROTO: the limit has another format version
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_fleet_change(struct weir_store *store, const char *name, uint64_t capacity);

/*
 * Create a limit before any member joins it (version 0), or change one for all members (version as
 * filled in by weir_fleet_inspect()). The fields used are capacity, allotment, reserved,
 * members_max, lease, which bounds the leases of its members (0: 15 s), learning_period and
 * allocated. Until each member has refreshed, some have the old number of reserved units and some the
 * new one.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the values are invalid; why (may be NULL) gets a sentence, truncated to why_size
 * -EAGAIN: the limit exists already, or has changed since
 * -EBUSY: allocated is not as it is in the store, and the limit has members
 * Other errors are those of weir_store_commit().
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_configure(struct weir_store *store, const char *name,
						  const struct weir_fleet_limit *limit, char *why,
						  size_t why_size);

/*
 * Check what weir_fleet_configure() would refuse in any store, without writing.
 *
 * Returns 0, or -EINVAL: the name or the values are invalid; why (may be NULL) gets a sentence,
 * truncated to why_size
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_limit_check(const char *name,
						    const struct weir_fleet_limit *limit, char *why,
						    size_t why_size);

/*
 * Remove a limit that has no members. The next member that joins it creates it again, by a template
 * or with its own configuration.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name is invalid
 * -ENOENT: there is no such limit
 * -EBUSY: it has members
 * -EPROTO: the limit has another format version
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_fleet_remove(struct weir_store *store, const char *name);

/*
 * Drain a member, or undo that. With its next refresh, a drained member gives up all that it holds,
 * and may use nothing, not even reserved units. What it wanted goes to the others, within a refresh
 * of each. It stays drained when its session ends and when it returns with another number, but not
 * when its process is restarted: weir_fleet_drain_label() is for that.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name is invalid
 * -ENOENT: there is no such limit
 * -ESRCH: the limit has no such member
 * -EBUSY: it is to be undrained, and its label is drained: use weir_fleet_drain_label()
 * -EPROTO: the limit has another format version
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_fleet_drain(struct weir_store *store, const char *name, uint64_t member,
			      bool drained);

/*
 * Drain all members with a label, present or not yet, or undo that. They stay drained when their
 * processes are restarted under the same label, so give each process a label of its own
 * (weir_fleet_config.label): the default one has a process id, which another process may get. A
 * process that was started anew may use what is reserved until it has read the store.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name or the label is invalid
 * -ENOENT: there is no such limit
 * -ESRCH: it is to be undrained, and neither is it drained nor does a member have it
 * -EPROTO: the limit has another format version
 * Other errors are those of weir/store.h.
 */
WEIR_API int weir_fleet_drain_label(struct weir_store *store, const char *name, const char *label,
				    bool drained);

/* What a store contains under one name. */
struct weir_fleet_entry {
	const char *name;
	const struct weir_fleet_limit *limit; /* NULL: none, or one of another format version */
	uint32_t other_version;               /* 1: there is one of another format version */
	/*
	 * Of weir/work.h: the number of members, of partitions with an owner, and of partitions
	 * with a checkpoint.
	 */
	uint32_t workers, owned, checkpoints;
};

/*
 * Visit all names of limits and partitions in a store, in order, until visit() returns false.
 *
 * Returns 0, or a negative errno:
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_fleet_list(struct weir_store *store,
			     bool (*visit)(void *arg, const struct weir_fleet_entry *entry),
			     void *arg);

/*
 * Add a template of limits, or change the one with that pattern. The fields used are those of
 * weir_fleet_configure(). version is 0, or what weir_fleet_template_get(), _list() or _match() have
 * filled in: then nothing is written if any template has changed since.
 *
 * When a member makes a limit, as it joins one that the store does not have, the limit gets the
 * settings of the template that its name matches, whatever the member is configured with
 * (weir_share_info.mismatch says if that differs); without one, those of the member. A template
 * changes no limit that exists, and weir_fleet_configure() makes limits without one. Programs that
 * do not know of templates make limits without them, too.
 *
 * A pattern has the characters of a name, * for any characters or none, and ? for one character.
 * If several match, the pattern with the most characters other than * and ? is taken; of those, one
 * with the fewest *; of those, the first in the order of bytes. So a name itself comes before all
 * patterns.
 *
 * All templates are one row of the store. If it is damaged or of another format version, functions
 * of templates fail with -EPROTO, and members make limits as they are configured and say so
 * (weir_share_info.reason). Removing all templates repairs it.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the pattern or the values are invalid; why (may be NULL) gets a sentence, truncated to
 *          why_size, as with all other errors
 * -EAGAIN: the templates have changed since
 * -ENOSPC: there are WEIR_FLEET_TEMPLATES_MAX of them, or the store has no room
 * -EPROTO: the templates have another format version
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_commit().
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_template_set(struct weir_store *store, const char *pattern,
						     const struct weir_fleet_limit *limit,
						     char *why, size_t why_size);

/*
 * Check what weir_fleet_template_set() would refuse in any store, without writing.
 *
 * Returns 0, or -EINVAL: the pattern or the values are invalid; why (may be NULL) gets a sentence,
 * truncated to why_size
 */
WEIR_API WEIR_MUST_CHECK int weir_fleet_template_check(const char *pattern,
						       const struct weir_fleet_limit *limit,
						       char *why, size_t why_size);

/*
 * Read a template: the settings of *limit, and version, which is that of all templates together; 0
 * if there are none. version is also filled in if this template is missing.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the pattern is invalid
 * -ENOENT: there is no such template
 * -EPROTO: the templates have another format version
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_fleet_template_get(struct weir_store *store, const char *pattern,
				     struct weir_fleet_limit *limit);

/*
 * Visit all templates, in the order of the bytes of their patterns, until visit() returns false.
 * Pattern and limit are valid during the visit; limit is as weir_fleet_template_get() has it.
 *
 * Returns 0, or a negative errno:
 * -EPROTO: the templates have another format version
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_fleet_template_list(struct weir_store *store,
				      bool (*visit)(void *arg, const char *pattern,
						    const struct weir_fleet_limit *limit),
				      void *arg);

/*
 * Find the template that a limit of this name would be made with now: its pattern (may be NULL),
 * and *limit as weir_fleet_template_get() has it.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the name is invalid
 * -ENOENT: no template matches
 * -EPROTO: the templates have another format version
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_read().
 */
WEIR_API int weir_fleet_template_match(struct weir_store *store, const char *name,
				       char pattern[WEIR_FLEET_PATTERN_MAX + 1],
				       struct weir_fleet_limit *limit);

/*
 * Remove a template; NULL: all of them, also damaged ones. Limits that were made with it stay as
 * they are.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the pattern is invalid
 * -ENOENT: there is no such template, or none at all
 * -EPROTO: the templates have another format version, and only one is to be removed
 * -ENOMEM: out of memory
 * Other errors are those of weir_store_commit().
 */
WEIR_API int weir_fleet_template_remove(struct weir_store *store, const char *pattern);

/* The store that a fleet uses: for the functions above, and for commits guarded by fences. */
WEIR_API struct weir_store *weir_fleet_store(struct weir_fleet *fleet);

/*
 * A region: the members of a limit in one store, below, together form one member of a limit in
 * another store, above. They share what the region holds above, by leases that end before the
 * region's own. Its members join the limit below like any other, with a capacity that does not
 * exceed what is reserved for the region above; 0 if nothing is. What the region holds above comes
 * on top of that. So a template below that the limit's name matches needs such a capacity, too.
 *
 * Any process that reaches both stores may open the region, and several should: one of them is the
 * leader, and if it is gone, another takes over with what the region holds. Regions may be nested.
 */
struct weir_region;

struct weir_region_config {
	size_t size; /* set by weir_region_config_init() */

	/*
	 * The fleet above: its store, timing, label and on_change. Here the lease is 30 s by
	 * default, and refresh a sixth of the lease. Let the lease be at least twice as long as the
	 * members' leases.
	 */
	const struct weir_fleet_config *above;
	/*
	 * The limit above, and the region as a member of it. weight 0: the sum of its members'
	 * weights. The demand of the region is that of its members, so wants is not used. Nor is
	 * loss: without the store above, the region has what is reserved.
	 */
	const struct weir_share_config *limit;
	/*
	 * The store below. lease is how long a leader may be silent before another process takes
	 * over; default: a third of the lease above. No other field is used.
	 */
	const struct weir_fleet_config *below;
	const char *name; /* name of the limit below; NULL: the same as above */
};

#define weir_region_config_init(config) weir_region_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_region_config_init_sized(struct weir_region_config *config, size_t size);

/*
 * Take part in a region, as its leader or ready to become it. Nothing that config points to is used
 * after the call, except stores.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid; why (may be NULL) gets a sentence
 * Other errors are those of weir_fleet_open() and weir_share_join().
 */
WEIR_API WEIR_MUST_CHECK int weir_region_open(const struct weir_region_config *config,
					      struct weir_region **region, char *why,
					      size_t why_size);

/*
 * Stop taking part. What the region holds stays as it is until its lease ends, so that another
 * process can take over. NULL is allowed.
 */
WEIR_API void weir_region_close(struct weir_region *region);

/*
 * The region's fleet above, for weir_fleet_step() if it is manual, for weir_fleet_refresh() and for
 * weir_fleet_error(). Do not join anything else in it. And its share there, for
 * weir_share_info_take(): WEIR_SHARE_LOCAL or WEIR_SHARE_LOST while another process is the leader.
 * The region owns both.
 */
WEIR_API struct weir_fleet *weir_region_fleet(struct weir_region *region);
WEIR_API struct weir_share *weir_region_share(struct weir_region *region);

#ifdef __cplusplus
}
#endif
#endif
