/*
 * What takes part in the refreshes of a fleet beside its shares: partitioned work (fleet/work). The
 * protocol knows it only by the functions below.
 *
 * Its rows live and die with the fleet's session, and what it owns with the fleet's lease. So a
 * refresh carries it along, the end of a lease ends what it owns, and a lost session gives it a new
 * number.
 */
#ifndef WEIR_FLEET_PARTICIPANT_H
#define WEIR_FLEET_PARTICIPANT_H

#include <stdbool.h>

#include <weir/base.h>

struct participant;
struct weir_fleet;

/* The fleet's lock is held in all of them. */
struct participant_ops {
	/*
	 * Read, plan and commit, and keep the session if this refresh has not done so. Returns 0,
	 * -EEXIST where it is configured otherwise than the members that are there, or another
	 * negative errno.
	 */
	int (*refresh)(struct participant *participant);

	/*
	 * Lose what has ended by the clock. The lock owning is held too, and the fleet's lock need
	 * not be: the thread that watches calls this while the fleet waits for the store.
	 */
	void (*lapse)(struct participant *participant);

	/* When something ends next; WEIR_FOREVER: nothing does. Locks as for lapse. */
	weir_time (*next)(const struct participant *participant);

	/* The lease is over: lose everything. */
	void (*drop)(struct participant *participant);

	/* Take another number: the rows of the former one are gone with the session. */
	void (*renew)(struct participant *participant);

	/* Erase its rows. Returns 1 once there is none, or a negative errno. */
	int (*leave)(struct participant *participant);

	void (*free)(struct participant *participant);
};

/* The first member of what takes part. */
struct participant {
	const struct participant_ops *ops;
	struct participant *next; /* of lock and owning */
	weir_dur longest;         /* lease that the store allows; WEIR_FOREVER: any */
	bool hasty;               /* of owning: something has lapsed, and its row is to be erased */
};

/* Of all these, the fleet's lock is held. */

/* Begin to take part, with the next refresh, which is due at once. */
void participant_join(struct weir_fleet *fleet, struct participant *participant);

/* End taking part: it is freed, at once or when its rows are erased. */
void participant_leave(struct weir_fleet *fleet, struct participant *participant);

/* Refresh all of them: 0, or the first error. */
int participants_refresh(struct weir_fleet *fleet);

/* Erase the rows of those that have left, as far as the store can be reached: 0, or its error. */
int participants_erase_left(struct weir_fleet *fleet);

/* The rows of those that have left are gone with the session: free them. */
void participants_forget_left(struct weir_fleet *fleet);

/* All lose what has ended. True: there is a row to be erased. */
bool participants_lapse(struct weir_fleet *fleet);

/* When something of them ends next; WEIR_FOREVER: nothing does. */
weir_time participants_next(struct weir_fleet *fleet);

/* The session is gone, and their rows with it: they go on under other numbers. */
void participants_lose_session(struct weir_fleet *fleet);

/* Drop and free all of them. */
void participants_free(struct weir_fleet *fleet);

/*
 * The thread in which they lapse in time while the fleet waits for the store; a manual fleet has
 * none. Starting it twice is one thread. Returns 0, or a negative errno of pthread_create().
 */
int participants_watch(struct weir_fleet *fleet);
void participants_unwatch(struct weir_fleet *fleet); /* the lock is not held */

#endif
