/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a refresh: the session (session.c), reading and planning (refresh.c), and writing
 * (commit.c).
 */
#ifndef WEIR_FLEET_REFRESH_H
#define WEIR_FLEET_REFRESH_H

#include "fleet/protocol/share.h"

#define READ_MAX WEIR_STORE_ROWS_MAX /* limits in a reading: each takes one prefix */

/* Shares that are read together. */
struct batch {
	struct weir_share *shares[READ_MAX];
	size_t count;
	weir_time asked; /* when the last reading was sent */
	bool full;       /* there was no memory for a row */
	bool probed;     /* a share of it has STEP_PROBE */
	/* Of the templates that limits which are missing are made by. */
	bool templates_read;        /* the row may be read */
	uint64_t templates_version; /* of the row; 0: there is none */
};

/*
 * Whether a refresh goes on with other shares after that error: not if there is no store or no
 * session. An error of one limit does not concern the others.
 */
bool refresh_goes_on(int r);

/* Set the fleet's last error to a sentence. Returns r. */
__attribute__((format(printf, 3, 4))) int fleet_say(struct weir_fleet *fleet, int r,
						    const char *format, ...);

/*
 * Set the fleet's last error to the store's sentence. Returns r. fleet_fail() is for the fleet's
 * own store, and notes whether the store has refused a write; fleet_fail_of() is for any store.
 */
int fleet_fail(struct weir_fleet *fleet, int r);
int fleet_fail_of(struct weir_fleet *fleet, struct weir_store *store, int r);

/* A session was begun. */
void fleet_count_session(struct weir_fleet *fleet);

/*
 * The session has ended, or is about to: its rows are gone, so all shares and participants go on
 * under new numbers. What a share holds, it holds until its lease ends.
 */
void session_forget(struct weir_fleet *fleet);

/* Begin or keep the session. A session that has ended is begun anew. 0 or a negative errno. */
int session_begin(struct weir_fleet *fleet);
int session_keep(struct weir_fleet *fleet);

/* As weir_store_read(); the first one of a refresh also keeps the session. */
int session_read(struct weir_fleet *fleet, const char *const *prefixes, size_t count,
		 weir_store_row_fn *row, void *arg, struct weir_store_view *view);

/*
 * Write what a batch has to write: in commits of many shares, or of one share each. Returns 0, also
 * after a conflict with another member, or a negative errno.
 */
int batch_commit(struct weir_fleet *fleet, struct batch *batch, bool together);

#endif
