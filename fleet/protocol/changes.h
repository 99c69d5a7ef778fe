/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the states of shares, and the application's callback for them.
 */
#ifndef WEIR_FLEET_CHANGES_H
#define WEIR_FLEET_CHANGES_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/fleet.h>

#define CHANGES_WAITING_MAX 1024 /* that wait for the callback */

struct change;

/* Under report_lock, except what does not change while the fleet is open. */
struct changes {
	void (*call)(void *arg, const struct weir_share_change *change); /* NULL: no callback */
	void *arg;
	struct change *first, **end;
	unsigned count;
	uint64_t missed; /* since the last one in the list */
	bool busy;       /* a thread is calling the callback */
	bool ends;       /* the thread is to end */
	bool runs;       /* there is a thread */
	pthread_cond_t wake;
	pthread_t thread;
};

void changes_init(struct weir_fleet *fleet, const struct weir_fleet_config *config);
void changes_free(struct weir_fleet *fleet);

/* Start the thread that calls the callback, if there is one. Returns 0 or a negative errno. */
int changes_start(struct weir_fleet *fleet);
void changes_stop(struct weir_fleet *fleet); /* no lock is held */

/* Note the state of a share if it has changed. report_lock is not held. */
void share_note(struct weir_share *share);

/* Call the callback for what has been noted. For manual fleets; no lock is held. */
void changes_deliver(struct weir_fleet *fleet);

#endif
