/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fleet and its shares, inside. Public functions and the refresh, in the fleet's thread, change
 * them under the fleet's lock. Callers that ask what a share may use take no lock; they read the
 * words below.
 *
 * word      written by                                  order    pairs with
 * --------  ------------------------------------------  -------  ------------------------------
 * leased    share_publish(), under the fleet's lock     relaxed  deadline carries it
 * lost      share_publish(), share_drop()               relaxed  nothing: a number
 * deadline  share_publish(): after leased               release  weir_share_units(): acquire, and
 *                                                                then leased
 * want      weir_share_demand_set(): store              relaxed  nothing: a number
 * demand    weir_share_demand_add(): add                relaxed  nothing: a number
 * throttled weir_share_throttled(): 1; a refresh: 0     relaxed  nothing: a mark
 * rung      fleet_ring(): true; the fleet's thread,     acq_rel  the exchange of the other: what was
 *           when it wakes: false                                 stored before it rang
 *
 * A thread that reads a deadline reads the value of leased that was stored before it, or a later
 * one. A later one belongs to the same lease, or to one that was published an instant later: the
 * result is as if the thread had called an instant later.
 */
#ifndef WEIR_FLEET_SHARE_H
#define WEIR_FLEET_SHARE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "fleet/fair_lock.h"
#include "fleet/protocol/changes.h"
#include "fleet/protocol/demand.h"
#include "fleet/protocol/participant.h"
#include "fleet/protocol/plan.h"
#include "fleet/protocol/share_phase.h"
#include "fleet/protocol/watch.h"

#define LEASE_DEFAULT    (15 * WEIR_S)
#define LEASE_MIN        (20 * WEIR_MS)
#define LEASE_MAX        (3600 * WEIR_S)
#define LEARNING_DEFAULT (15 * WEIR_S) /* whatever leases are configured */

#define ASKS_MAX 10 /* in an interval between refreshes, about: of a share that asks (ask.c) */

#define WANT_UNSET UINT64_MAX /* want: the application has not set it; demand is used */

/* A reading of the store: its clock time here, and the version of the store that it returned. */
struct past_reading {
	weir_time asked; /* when the request was sent; 0: no such reading */
	uint64_t version;
};

#define READINGS 4 /* the leader of a region may take this many refreshes for one tick */

/* What a share reports about itself (report.c). */
struct share_report {
	struct weir_share_info info;         /* its state holds while the lease does */
	enum weir_share_state without_lease; /* the state after that */
	char key[KEY_ROOM];                  /* of its row */
	uint32_t seats;                      /* members for which units are reserved */
	weir_dur lease, longest;             /* the limit's lease; the longest allowed */
	bool untemplated;
};

/* What a fleet reports about itself, as of the last refresh. */
struct fleet_report {
	bool up, writable, durable; /* of the store */
	uint64_t refreshes, failures, sessions;
	weir_dur took;
	weir_time succeeded; /* the end of the last one that did; 0: there was none */
};

struct weir_share {
	struct weir_fleet *fleet;
	struct weir_share *next;
	struct weir_share_config config;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char own_key[KEY_ROOM], limit_key[KEY_ROOM], ledger_key[KEY_ROOM], up_key[KEY_ROOM];
	char learning_key[KEY_ROOM];
	char drain_key[KEY_ROOM], last_key[KEY_ROOM]; /* of the drain rows of id and of last_id */
	uint64_t id;
	uint64_t last_id; /* under which it was a member last; 0: it never was one */
	bool drained;     /* by an operator: it may use nothing */

	_Atomic uint64_t leased, lost, deadline;
	_Atomic uint64_t want, demand;
	_Atomic uint32_t throttled;

	/* Under report_lock. */
	struct share_report report;
	enum weir_share_state noted; /* the last one of which a change was noted */
	bool mismatch_noted;         /* likewise */
	uint64_t changes;            /* that were noted */

	/* Everything below is under the fleet's lock. */
	struct demand measured;
	uint64_t returned; /* by config.wants(), at most, since the last regular refresh */

	/* Asking at once (ask.c). */
	weir_time next_ask;     /* not before */
	unsigned asked;         /* times in a row without success */
	uint64_t units_at_last; /* when it asked last */

	struct share_watch watch;

	/* What is known of its rows. */
	enum share_phase phase;
	uint64_t fence;            /* the commit that made its row; 0: it was not read */
	weir_time left;            /* when the application left it */
	struct limit_record limit; /* as read; before that, as configured */
	struct limit_record made;  /* that the limit is made with where it is missing */
	/* The templates could not be read when the limit was missing; and which limit that became. */
	bool untemplated;
	uint64_t untemplated_version; /* 0: not read yet */
	enum line_phase line;
	uint64_t unsettled_version; /* of the ledger, which the commit in doubt checks */

	/* What it holds. */
	uint64_t held;           /* units beyond what is reserved, used now */
	weir_time until;         /* end of the lease on them; 0: no lease */
	weir_dur longest;        /* lease that the limit and the store allow */
	weir_time latest;        /* end of a lease that long since the last reading */
	weir_time carried_bound; /* no lease ends after that: units are carried from above */

	/* Of a limit that is carried from above, by a region. */
	weir_time carried_until;                /* what is carried is certain until then */
	uint64_t carried;                       /* units of the capacity */
	struct past_reading readings[READINGS]; /* the last one first */

	/* What the last plan has found. */
	uint64_t effective; /* capacity, less what throttling takes */
	uint32_t members;   /* 0: there was no plan yet */
	bool learning;      /* the store may have forgotten leases: they end first */
	weir_time learned;  /* when they have ended */
	bool lacks;         /* other members still hold some of what is due to it */
	bool surplus;       /* nothing is reserved for it: it came after the last seat was taken */
	bool crowded;       /* there are more members than seats */
	uint64_t floor;     /* of a region's share: units that may be in use below */
	uint32_t throttle_seen; /* in the ledger, at the last refresh */

	/* Of an allocated limit. */
	struct allocator *allocator; /* this process divides the capacity (allocator.c); or NULL */
	bool vacant;                 /* the last reading has shown no allocator */
	uint64_t elected;            /* or one that is this process: the commit that made its row */
	weir_time rests_until;       /* it does not stand before */
	unsigned waited;             /* refreshes since its demand has changed by a little */
	bool narrow;                 /* the last reading was of its own rows alone */
	uint64_t given_up, uses;     /* it uses no more than that of the grant with that number */
	bool awaits;                 /* there is no grant for it yet */
	unsigned looks;              /* how often it asks for what it may have been granted */

	uint64_t wants_written; /* wants, as its row has them, or will after this refresh */
	uint64_t applied;       /* units, as config.apply was called last */
	bool has_applied;       /* both of notify_lock */
	uint64_t conflicts, refreshes;

	/* Of the refresh that is under way. */
	struct limit_view view;
	struct plan plan;
	bool planned; /* at least once */
	enum share_step step;
};

struct weir_fleet {
	struct weir_store *store;
	struct weir_store *own_store; /* closed with the fleet; or NULL */
	const struct weir_clock *clock;
	weir_dur lease, refresh, learning;
	bool manual;
	uint64_t random;
	char label[LABEL_ROOM];

	struct fair_lock lock;
	pthread_t thread;
	sem_t bell;        /* on which the thread waits, without the lock */
	_Atomic bool rung; /* it has been posted since the thread woke last */
	bool runs, ending;
	bool refresh_now; /* do not wait for next_refresh */

	/*
	 * The thread that calls config.apply when a lease ends, also while the fleet waits for the
	 * store. Taken after lock, and never held during a request to the store.
	 */
	pthread_mutex_t notify_lock; /* of the list of shares, and of applied */
	pthread_cond_t notify_wake;
	pthread_t notifier;
	weir_time notify_next; /* when the notifier checks again */
	bool notifier_ends;

	struct weir_share *shares; /* under lock, notify_lock and report_lock */
	unsigned count;
	struct weir_share *left;          /* by the application; their rows may still be there */
	struct weir_region *region;       /* of which this is the fleet above; or NULL */
	struct participant *participants; /* under lock, owning and report_lock */
	struct participant *participants_left; /* closed; their rows may still be there */
	unsigned participant_count;

	/*
	 * The same for what participants own. Taken after lock, and never held while the fleet
	 * waits for the store.
	 */
	pthread_mutex_t owning;
	pthread_cond_t sooner_over;
	pthread_t watcher;
	weir_time watch_next; /* when the watcher checks again */
	bool watches;

	/* Of report and why, and of the lists: taken last, and held only for copying. */
	pthread_mutex_t report_lock;
	struct fleet_report report;
	struct changes changes;

	struct watching watching;

	uint64_t session;                  /* 0: none */
	weir_time deadline;                /* of the session, by the clock of this process */
	weir_time kept;                    /* when the request was sent that kept it last */
	bool session_kept;                 /* it is not to be kept again in this refresh */
	weir_time next_refresh, next_tick; /* next_tick: of demand */
	bool asks;          /* in this refresh: a share has asked, and it is not a regular one */
	bool reachable;     /* the store, at the last refresh */
	bool refused;       /* the store has refused a write, and has taken none since */
	bool other_version; /* a limit in the store is of a version that is unknown here */
	char why[256];      /* the last error, as a sentence */

	phase_observer_fn *observer; /* of tests; or NULL */
};

weir_time fleet_now(const struct weir_fleet *fleet);

/*
 * Wait until next, by a clock that a condition can wait by, but at most a second, so that a machine
 * that was suspended is late by no more. Returns false if it was signalled.
 */
bool fleet_wait(struct weir_fleet *fleet, weir_time next, pthread_cond_t *signal,
		pthread_mutex_t *lock);

/* Wake the fleet's thread, which looks for what is due. Takes no lock: for any thread. */
void fleet_ring(struct weir_fleet *fleet);

/* Start a thread with all signals blocked. Returns 0 or a negative errno. */
int fleet_thread(struct weir_fleet *fleet, pthread_t *thread, void *(*work)(void *));

bool fleet_is_name(const char *name);

/* The label of this process: HOST:PID. */
void fleet_label_process(char label[LABEL_ROOM]);

/* Check a limit. Returns 0, or -EINVAL and a sentence. */
int limit_check(const struct limit_record *limit, char *why);

/* Open the store of a configuration. The caller closes *own, which may be NULL. */
int fleet_open_store(const struct weir_fleet_config *config, struct weir_store **store,
		     struct weir_store **own, char *why);

/* Make a fleet without threads; start them; stop them. Each returns 0 or a negative errno. */
int fleet_prepare(const struct weir_fleet_config *config, struct weir_fleet **fleet, char *why);
int fleet_start(struct weir_fleet *fleet, char *why);
void fleet_stop(struct weir_fleet *fleet);

/* A random number below most; any number, if most is 0. */
uint64_t fleet_draw(struct weir_fleet *fleet, uint64_t most);

/* From 0.8 to 1.3 times as long, at random, so that members do not refresh all at once. */
weir_dur fleet_jitter(struct weir_fleet *fleet, weir_dur time);

/* Between regular refreshes, as configured, or less if a lease is shorter than the session's. */
weir_dur fleet_interval(const struct weir_fleet *fleet);

/*
 * From the time that the store has granted: how long the grant can be used, counted from before the
 * request was sent, whatever the clocks.
 */
weir_dur fleet_usable(weir_dur granted);

/* Publish what may be used and until when, and notify the application. */
void share_publish(struct weir_share *share);

/* Call config.apply if the units have changed. notify_lock is held. */
void share_notify(struct weir_share *share);

/* Copy what it reports. */
void share_report(struct weir_share *share);

/* What it reports now. report_lock is held. */
void share_info(const struct weir_share *share, struct weir_share_info *info);

/* Copy what the fleet reports after a refresh that began then, and failed or not. */
void fleet_report(struct weir_fleet *fleet, weir_time began, bool failed);

void share_free(struct weir_share *share);

/* Units that are reserved for it while it has a lease, and without one. */
uint64_t share_reserved(const struct weir_share *share);
uint64_t share_reserved_unleased(const struct weir_share *share);

/* Extend the lease to the end of the session's, or of what is carried, whichever is first. */
void share_lease(struct weir_share *share);

/* Hold that many units by a lease: the ledger has them, and that is acknowledged. */
void share_hold(struct weir_share *share, uint64_t grant);

/* End the lease. */
void share_drop(struct weir_share *share);

/* Erase the rows of the shares that were left. Returns 0 or a negative errno. */
int fleet_erase_left(struct weir_fleet *fleet);

/* Free the shares that were left: their rows are gone with the session. */
void fleet_forget_left(struct weir_fleet *fleet);

/* Take a new random number, under which no row was ever written. */
void share_renumber(struct weir_share *share);

/* Take that number. */
void share_set_id(struct weir_share *share, uint64_t id);

/* Whether it has a lease that has not ended. */
bool share_is_leased(const struct weir_share *share);

uint64_t share_wants(struct weir_share *share);

/* Whether it takes headroom beyond what it wants. */
bool share_is_elastic(const struct weir_share *share);

/*
 * Whether it is to be refreshed at once, as its demand has outgrown its units. interval is that
 * between refreshes.
 */
bool share_asks(struct weir_share *share, weir_time now, weir_dur interval);

/* After a refresh: whether an allocator has yet to answer what it has written. */
void share_await(struct weir_share *share);

/* Whether something was wanted in the last second, so that it is to be looked at each tick. */
bool share_is_busy(const struct weir_share *share);

/* Its row, with those wants. */
struct member_record share_record(const struct weir_share *share, uint64_t wants);

/*
 * Keep the session; read, plan and commit all shares and participants. The lock is held. Returns 0,
 * or the first error that stands in the way of others:
 * -EIO:    the store cannot be reached
 * -EPROTO: a limit in the store is of a version that is unknown here
 * or another error of the store
 */
int fleet_refresh(struct weir_fleet *fleet);

/* The same without a region's election, and begun once: -ESTALE if the session has ended. */
int fleet_refresh_own(struct weir_fleet *fleet);

#endif
