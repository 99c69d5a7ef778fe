/*
 * A fleet and its shares, inside.
 *
 * word      written by                                   order    pairs with
 * --------  -------------------------------------------  -------  ------------------------------
 * leased    publish, by who has the fleet's lock         relaxed  deadline carries it
 * lost      publish                                      relaxed  nothing: a number
 * deadline  publish: after leased                        release  weir_share_units: acquire, and
 *                                                                 then leased
 * want      weir_share_demand_set: store                       relaxed  nothing: a number
 * demand    weir_share_demand_add: add                       relaxed  nothing: a number
 * throttled weir_share_throttled: 1; a refresh: 0        relaxed  nothing: a mark
 *
 * Who reads a deadline reads at least what was leased with it. He may read less or more of the same
 * lease, as it was an instant before: that is as if he had come then.
 */
#ifndef WEIR_FLEET_SHARE_H
#define WEIR_FLEET_SHARE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fleet/protocol/participant.h"
#include "fleet/protocol/plan.h"
#include "fleet/protocol/share_phase.h"

#define LEASE_DEFAULT    (15 * WEIR_S)
#define LEASE_MIN        (20 * WEIR_MS)
#define LEASE_MAX        (3600 * WEIR_S)
#define LEARNING_DEFAULT (15 * WEIR_S) /* the same, whatever leases are configured */

#define WANT_UNSAID UINT64_MAX /* of the word want: it is made of the demand */

/* A limit as it was read: what is of a later commit has happened after that was asked. */
struct look {
	weir_time asked;
	uint64_t version;
};

#define LOOKS 4 /* refreshes that a region's carrier may take for one */

/* What a share reports about itself (shown.c). */
struct shown {
	struct weir_share_info info; /* with the state by a lease that goes on */
	enum weir_share_state without_lease;
	char key[KEY_ROOM];
	uint32_t seats;          /* members that units are reserved for */
	weir_dur lease, longest; /* the limit's, and the longest allowed */
};

struct weir_share {
	struct weir_fleet *fleet;
	struct weir_share *next;
	struct weir_share_config config;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char own_key[KEY_ROOM], limit_key[KEY_ROOM], ledger_key[KEY_ROOM], up_key[KEY_ROOM];
	char drain_key[KEY_ROOM], last_key[KEY_ROOM]; /* of a drain: of id, of last_id */
	uint64_t id;
	uint64_t last_id; /* the number under which it was there last; 0: it never was */
	bool drained;     /* nothing may be used */

	_Atomic uint64_t leased, lost, deadline;
	_Atomic uint64_t want, demand;
	_Atomic uint32_t throttled;

	struct shown shown; /* of showing */

	/* All below wants the fleet's lock. */
	uint64_t seconds[DEMAND_SECONDS]; /* of demand, the last one first */
	uint64_t demand_seen;

	struct limit_record limit; /* as the store has it; before, as configured */
	enum share_phase phase;
	uint64_t fence;           /* the commit that made its row; 0: it was not read */
	weir_time left;           /* when it was left */
	uint64_t held;            /* of what is shared, used now */
	weir_time until;          /* of the lease that it is held by */
	weir_time bound;          /* no lease is longer: of what is carried from above, that is */
	weir_dur longest;         /* that a lease may be, by the limit and by the store */
	weir_time latest;         /* end of a lease, of that, since the last reading */
	weir_time above;          /* so long what is carried is sure */
	uint64_t carried;         /* of the capacity, if it is */
	struct look looks[LOOKS]; /* the last one first */
	uint64_t effective;
	uint32_t members;
	bool learning;
	bool surplus;   /* nothing is reserved for it: there are more members than that */
	bool crowded;   /* there are more members than something is reserved for */
	uint64_t floor; /* of a region: what is handed out below */
	enum line_phase line;
	uint64_t unsettled_version; /* of the ledger, which the commit in doubt checks */
	uint32_t throttle_seen;
	uint64_t told;    /* of wants, to the store */
	uint64_t applied; /* as the next, wants telling */
	bool has_applied;
	uint64_t conflicts, refreshes;

	/* Of the refresh that is going on. */
	struct limit_view view;
	struct plan plan;
	bool planned; /* by a reading of this refresh */
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

	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool runs, ending, hurried;

	/* Taken after lock, and never held while the store is asked. */
	pthread_mutex_t telling; /* of the list of shares, and what they have told */
	pthread_cond_t sooner;
	pthread_t teller;
	weir_time told_next; /* when the teller looks again */
	bool told_all;

	struct weir_share *shares;
	unsigned count;
	struct weir_share *left;               /* those whose rows may still be there */
	struct weir_region *region;            /* whose way to the store above this is; or NULL */
	struct participant *participants;      /* the list is of lock and owning */
	struct participant *participants_left; /* closed, and their rows may be there yet */
	unsigned participant_count;

	/* Taken after lock, and never held while the fleet asks the store. */
	pthread_mutex_t owning;
	pthread_cond_t sooner_over;
	pthread_t watcher;
	weir_time watch_next; /* when it looks again */
	bool watches;

	/* Of what is shown: taken last, and held for copying alone. */
	pthread_mutex_t showing;

	uint64_t session;   /* 0: none */
	weir_time deadline; /* of the session, for us */
	bool kept;          /* in this refresh */
	weir_time next_refresh, next_second;
	bool reachable;
	bool refused;  /* the store answers, and has not taken a write since it refused one */
	bool strange;  /* a limit in the store is of no version that is known here */
	char why[256]; /* of showing */

	phase_observer_fn *observer; /* of tests; or NULL */
};

weir_time fleet_now(const struct weir_fleet *fleet);

/*
 * Until then, on a clock that a condition can wait by, but no longer than a second: a machine that
 * slept is late by no more. False: it was signalled.
 */
bool fleet_wait(struct weir_fleet *fleet, weir_time next, pthread_cond_t *signal,
		pthread_mutex_t *lock);

/* A thread to which no signal of the program goes. 0, or a negative errno. */
int fleet_thread(struct weir_fleet *fleet, pthread_t *thread, void *(*work)(void *));

bool fleet_is_name(const char *name);

/* Whether a limit can be like that: 0; -EINVAL and a sentence. */
int limit_check(const struct limit_record *limit, char *why);

/* Open the store that a configuration means; *own is closed by who opens it. */
int fleet_open_store(const struct weir_fleet_config *config, struct weir_store **store,
		     struct weir_store **own, char *why);

/* A fleet that does nothing yet, NULL where it fails; and what begins and ends its doing. */
int fleet_prepare(const struct weir_fleet_config *config, struct weir_fleet **fleet, char *why);
int fleet_start(struct weir_fleet *fleet, char *why);
void fleet_stop(struct weir_fleet *fleet);

/* A number below most; any, if that is 0. */
uint64_t fleet_draw(struct weir_fleet *fleet, uint64_t most);

/* Make known what may be used, and until when; tell who wants to be told. */
void share_publish(struct weir_share *share);

/* How long after the request a grant has not ended yet, by any clock. */
weir_dur fleet_usable(weir_dur granted);

/* Tell who wants to be told, if there is something new. telling is held. */
void share_tell(struct weir_share *share);

/* Report it as it is now. */
void share_show(struct weir_share *share);

void share_free(struct weir_share *share);

/* What it has without asking the store; and without a lease. */
uint64_t share_reserved(const struct weir_share *share);
uint64_t share_reserved_unleased(const struct weir_share *share);

/* It is leased for as long as the session is, and what is carried from above. */
void share_lease(struct weir_share *share);

/* So much is held, as the ledger has it, which is acknowledged. */
void share_hold(struct weir_share *share, uint64_t grant);

/* Nothing is held any more. */
void share_drop(struct weir_share *share);

/* Erase the rows of the shares that were left: 0, or as the store has it. */
int fleet_take_leave(struct weir_fleet *fleet);

/* Their rows went with the session. */
void fleet_forget_left(struct weir_fleet *fleet);

/* Another number, under which nobody has written anything. */
void share_rename(struct weir_share *share);

/* Another's number, and what goes with it. */
void share_name_as(struct weir_share *share, uint64_t id);

/* Whether it has a lease that has not ended. */
bool share_is_leased(const struct weir_share *share);

uint64_t share_wants(const struct weir_share *share);

/* Its row, when it wants that. */
struct member_record share_record(const struct weir_share *share, uint64_t wants);

/* Keep the session, look at all shares, and take what is due. The lock is held. */
int fleet_refresh(struct weir_fleet *fleet);

/* The same, for a region that may. */
int fleet_refresh_own(struct weir_fleet *fleet);

#endif
