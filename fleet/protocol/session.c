/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session of a fleet: beginning it, keeping it, losing it.
 *
 * A lease counts from before the request was sent that kept the session, less a hundredth, for
 * clocks that differ, and less 2 ms. So it ends here before it ends in the store.
 */

#include "fleet/protocol/refresh.h"

#include <errno.h>

weir_dur fleet_usable(weir_dur granted)
{
	const weir_dur margin = granted / 100 + 2 * WEIR_MS;

	return granted > margin ? granted - margin : 0;
}

void session_forget(struct weir_fleet *f)
{
	f->session = 0;
	fleet_forget_left(f);
	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		s->fence = s->given_up = 0;
		share_move(s, SHARE_SESSION_LOST);
		line_move(s, LINE_SESSION_LOST);
		share_renumber(s);
		share_report(s);
	}
	participants_lose_session(f);
}

static void note_kept(struct weir_fleet *f, weir_time sent, weir_dur granted)
{
	f->kept = sent;
	f->deadline = sent + fleet_usable(granted);
	f->session_kept = true;
}

int session_begin(struct weir_fleet *f)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r = weir_store_begin(f->store, f->lease, &f->session, &granted);

	if (r != 0) {
		f->session = 0;
		return fleet_fail(f, r);
	}
	fleet_count_session(f);
	note_kept(f, sent, granted);
	return 0;
}

int session_keep(struct weir_fleet *f)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r = weir_store_keep(f->store, f->session, &granted);

	if (r == -ESTALE) {
		session_forget(f);
		return session_begin(f);
	}
	if (r != 0)
		return fleet_fail(f, r);
	note_kept(f, sent, granted);
	return 0;
}

int session_read(struct weir_fleet *f, const char *const *prefixes, size_t count,
		 weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r;

	if (f->session_kept)
		return weir_store_read(f->store, prefixes, count, row, arg, view);
	r = weir_store_keep_and_read(f->store, f->session, &granted, prefixes, count, row, arg,
				     view);
	if (r == 0)
		note_kept(f, sent, granted);
	if (r != -ESTALE)
		return r;
	session_forget(f);
	r = session_begin(f);
	return r == 0 ? weir_store_read(f->store, prefixes, count, row, arg, view) : r;
}
