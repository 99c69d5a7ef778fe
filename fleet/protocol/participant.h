/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Participants: what takes part in the refreshes of a fleet beside its shares. Today that is
 * partitioned work (fleet/work), which the protocol knows only by the functions below.
 *
 * The rows of a participant are bound to the fleet's session, and what it owns ends with the fleet's
 * lease. So each refresh includes it, the end of the lease ends what it owns, and it takes a new
 * number when the session is lost.
 */
#ifndef WEIR_FLEET_PARTICIPANT_H
#define WEIR_FLEET_PARTICIPANT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/fleet.h>

struct participant;
struct weir_fleet;

/* What a participant shows in metrics. */
struct participant_numbers {
	char name[WEIR_SHARE_NAME_MAX + 1];
	double partitions, owned, units; /* now */
	double gained, lost, forced;     /* in all; forced: of the lost */
};

/* The fleet's lock is held in all of these, but perhaps not in lapse and next. */
struct participant_ops {
	/*
	 * Read, plan and commit, and keep the session if this refresh has not done so. Returns 0,
	 * -EEXIST if the members that are there are configured differently, or another negative
	 * errno.
	 */
	int (*refresh)(struct participant *participant);

	/*
	 * Lose what has ended by the clock. The lock owning is held. The watcher thread calls this
	 * also while the fleet waits for the store.
	 */
	void (*lapse)(struct participant *participant);

	/* When something it owns ends next; WEIR_FOREVER: nothing does. owning is held. */
	weir_time (*next)(const struct participant *participant);

	/* Lose everything: the lease has ended. */
	void (*drop)(struct participant *participant);

	/* Take a new number: the rows under the old one are gone with the session. */
	void (*renew)(struct participant *participant);

	/*
	 * What has become of the last refresh: its own result, or that of what failed before its
	 * turn.
	 */
	void (*note)(struct participant *participant, int result);

	/* Erase its rows. Returns 1 once none is left, or a negative errno. */
	int (*leave)(struct participant *participant);

	void (*free)(struct participant *participant);

	/* Copy its numbers. report_lock alone is held: takes no lock, and calls no callback. */
	void (*count)(const struct participant *participant, struct participant_numbers *numbers);
};

/* The first field of the structure of a participant. */
struct participant {
	const struct participant_ops *ops;
	struct participant *next; /* of lock, owning and report_lock */
	weir_dur longest;         /* lease that the store allows; WEIR_FOREVER: any */
	bool erase_due;           /* of owning: something has lapsed, and its row is to be erased */
	/*
	 * It is to be refreshed before the next refresh of all: at once, or at that time. The first
	 * is set by any thread, which then rings (share.h); the other is the participant's own.
	 */
	_Atomic bool hurry;
	weir_time soon; /* 0: with the others */
	bool hurried;   /* this refresh is for that alone: it begins nothing else */
	bool reached;   /* by the refresh of all that is under way, with that result */
	int result;
};

/* The fleet's lock is held in all functions below, unless they say otherwise. */

/* Add a participant, and start a refresh at once. */
void participant_join(struct weir_fleet *fleet, struct participant *participant);

/* Remove a participant. It is freed once its rows are erased. */
void participant_leave(struct weir_fleet *fleet, struct participant *participant);

/* Before and after a refresh of all, which had that result. */
void participants_begin(struct weir_fleet *fleet);
void participants_end(struct weir_fleet *fleet, int result);

/* Refresh all participants. Returns 0, or the first error. */
int participants_refresh(struct weir_fleet *fleet);

/* Refresh those that are to be refreshed before the others. */
void participants_hurry(struct weir_fleet *fleet, weir_time now);

/* Erase the rows of participants that have left. Returns 0, -EIO or -ESTALE. */
int participants_erase_left(struct weir_fleet *fleet);

/* Free participants that have left: their rows are gone with the session. */
void participants_forget_left(struct weir_fleet *fleet);

/* Let all of them lose what has ended. Returns true if a row is to be erased. */
bool participants_lapse(struct weir_fleet *fleet);

/* When something that they own ends, or one is to be refreshed; WEIR_FOREVER: never. */
weir_time participants_next(struct weir_fleet *fleet);

/* The session is gone, and their rows with it: all go on under new numbers. */
void participants_lose_session(struct weir_fleet *fleet);

/* Drop and free all of them. */
void participants_free(struct weir_fleet *fleet);

/*
 * Start the watcher thread, which lets participants lapse in time while the fleet waits for the
 * store. A second call does nothing, nor does one for a manual fleet. Returns 0, or a negative
 * errno of pthread_create().
 */
int participants_watch(struct weir_fleet *fleet);
void participants_unwatch(struct weir_fleet *fleet); /* the fleet's lock is not held */

#endif
