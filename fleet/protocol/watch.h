/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the store: a thread that learns of changes, and what a change means for the shares of the
 * fleet. It moves refreshes forward, and nothing else: whatever is missed is found by the next
 * regular one.
 */
#ifndef WEIR_FLEET_WATCH_H
#define WEIR_FLEET_WATCH_H

#include <pthread.h>

#include <weir/fleet.h>

#include "fleet/store/notices.h"

#define OWN_COMMITS 64 /* the last ones, of which reports are ignored */

struct weir_share;

/* What the store is watched for. */
enum watch_aim {
	AIM_LIMIT = 1, /* the limit's configuration, and drained members: each member */
	AIM_UNITS = 2, /* members that leave, or want less: a member that wants more */
	AIM_LINES = 4, /* the ledger: a member of which others still hold what is due to it */
	AIM_GRANT = 8, /* its grant: a member of a limit with an allocator, in place of these */
};

/* Of a share. Under the fleet's lock. */
struct share_watch {
	uint8_t aim;      /* enum watch_aim, as the store is watched for it; 0: not yet */
	uint64_t id;      /* of the member whose grant is watched */
	uint8_t unneeded; /* refreshes in a row for which it could have been less */
	uint64_t seen;    /* version of the store, as it was last read */
	bool changed;     /* its limit may have: it is to be refreshed */
	bool freed;       /* others may have given units back: likewise, if it lacks some */
	unsigned vain;    /* early refreshes in a row that have brought no units */
	uint64_t units;   /* when the last one of them began */
	weir_time due;    /* of the early refresh */
};

struct watching {
	/* Under the fleet's lock. */
	bool enabled;
	weir_time earlier; /* when the last early refresh began */
	uint64_t own[OWN_COMMITS];
	unsigned own_count;
	unsigned shares;   /* how many it is aimed at */
	unsigned failures; /* refreshes in a row that failed */

	/* Under lock, which is taken after the fleet's, and never held during a request. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct weir_store_watch *watch; /* on which the thread waits; or NULL */
	struct watched *next;           /* what it is to watch from now on; NULL: the same */
	struct notices *notices;        /* that the fleet's thread has not taken */
	bool runs, ends;
};

/* Whether to watch is known when a fleet is made; the thread is started with the others. */
void watching_init(struct weir_fleet *fleet, const struct weir_fleet_config *config);
int watching_start(struct weir_fleet *fleet);
void watching_stop(struct weir_fleet *fleet); /* no lock is held */
void watching_free(struct weir_fleet *fleet);

/* The fleet's lock is held in all of the following. */

/* After a refresh: watch what matters now. */
void watching_aim(struct weir_fleet *fleet);

/* A commit of the fleet had that version. */
void watching_own(struct weir_fleet *fleet, uint64_t version);

/* Take what was reported, and set when shares are to be refreshed. */
void watching_take(struct weir_fleet *fleet, weir_time now, weir_dur interval);

/* Whether an early refresh is due, and when the next one is; WEIR_FOREVER: none. */
bool watching_asks(struct weir_fleet *fleet, weir_time now);
weir_time watching_next(const struct weir_fleet *fleet);

/* An early refresh begins; all shares were refreshed. */
void watching_early(struct weir_fleet *fleet, weir_time now);
void watching_refreshed(struct weir_fleet *fleet, bool failed);

#endif
