/*
 * The parts of a refresh: the session (session.c), what is read and planned (refresh.c), and what
 * is written (commit.c).
 */
#ifndef WEIR_FLEET_REFRESH_H
#define WEIR_FLEET_REFRESH_H

#include "fleet/protocol/share.h"

#define READ_MAX WEIR_STORE_ROWS_MAX /* limits of a reading: a prefix each */

/* The shares that are being looked at, and what there is no memory for. */
struct batch {
	struct weir_share *shares[READ_MAX];
	size_t count;
	weir_time asked;
	bool full;
	bool probed; /* one of them asks whether the store takes writes */
};

/*
 * Whether a refresh goes on after that error. Without a store, or a session, there is no use in
 * it; what is wrong with one limit need not be wrong with others.
 */
bool refresh_goes_on(int r);

/* Set a sentence of the fleet's own; returns r. */
__attribute__((format(printf, 3, 4))) int fleet_say(struct weir_fleet *fleet, int r,
						    const char *format, ...);

/*
 * Make the store's sentence for r the fleet's, and remember whether it was a refusal; the same for
 * another store.
 */
int fleet_fail(struct weir_fleet *fleet, int r);
int fleet_fail_of(struct weir_fleet *fleet, struct weir_store *store, int r);

/*
 * The rows of this process are gone with the session, or will be in a moment: so it goes on under
 * other numbers. What is held is held to the lease's end.
 */
void session_forget(struct weir_fleet *fleet);

/* 0, or as the store has it. Where it turns out to be over, another one is begun. */
int session_begin(struct weir_fleet *fleet);
int session_keep(struct weir_fleet *fleet);

/* As weir_store_read(); the first of a refresh keeps the session. */
int session_read(struct weir_fleet *fleet, const char *const *prefixes, size_t count,
		 weir_store_row_fn *row, void *arg, struct weir_store_view *view);

/*
 * All that is to be written of a batch, many at once, or each by itself. 0, also where another was
 * quicker; or as the store has it.
 */
int batch_commit(struct weir_fleet *fleet, struct batch *batch, bool together);

#endif
