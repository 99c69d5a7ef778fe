/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leaving a limit. Once the row of a member is gone, its line of the ledger no longer counts.
 *
 * The store may be out of reach when the row is to be erased, while the session lives on for other
 * limits. So a share that was left is kept until its row is gone: each refresh erases the row again,
 * before it reads. If the session ends first, the row is gone with it.
 */

#include <errno.h>

#include "fleet/cancel.h"
#include "fleet/protocol/allocator.h"
#include "fleet/protocol/refresh.h"

/* A row that was never read may yet be made: it is erased again until a lease has passed. */
static bool is_gone(const struct weir_share *s)
{
	return s->phase == SHARE_ERASED &&
	       (s->fence != 0 || fleet_now(s->fleet) >= s->left + s->fleet->lease);
}

static void drop_gone(struct weir_fleet *f)
{
	struct weir_share **at = &f->left;

	while (*at != NULL) {
		struct weir_share *s = *at;

		if (!is_gone(s)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		share_free(s);
	}
}

/* Erase as many rows as one commit takes, and move *from behind them. */
static int erase_rows(struct weir_fleet *f, struct weir_share **from)
{
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	struct weir_share *const first = *from;
	size_t count = 0;
	int r;

	for (; *from != NULL && count < WEIR_STORE_ROWS_MAX; *from = (*from)->next)
		writes[count++] = (struct weir_store_write){(*from)->own_key,
							    WEIR_STORE_WRITE_ERASE, NULL, 0};
	r = weir_store_commit(f->store, 0, NULL, 0, writes, count, NULL);
	if (r != 0)
		return fleet_fail(f, r);
	for (struct weir_share *s = first; s != *from; s = s->next)
		share_move(s, SHARE_ROW_ERASED);
	return 0;
}

int fleet_erase_left(struct weir_fleet *f)
{
	struct weir_share *next = f->left;
	int r = 0;

	while (next != NULL && r == 0)
		r = erase_rows(f, &next);
	drop_gone(f);
	return r;
}

void fleet_forget_left(struct weir_fleet *f)
{
	while (f->left != NULL) {
		struct weir_share *s = f->left;

		f->left = s->next;
		share_free(s);
	}
}

/* After this, no callback of it is called. */
static void unlink_share(struct weir_share *s)
{
	struct weir_fleet *f = s->fleet;
	struct weir_share **at;

	for (at = &f->shares; *at != s; at = &(*at)->next)
		;
	pthread_mutex_lock(&f->notify_lock);
	pthread_mutex_lock(&f->report_lock);
	*at = s->next;
	pthread_mutex_unlock(&f->report_lock);
	pthread_mutex_unlock(&f->notify_lock);
	f->count--;
}

void weir_share_leave(struct weir_share *s)
{
	struct weir_fleet *f;
	int cancel;

	if (s == NULL)
		return;
	f = s->fleet;
	cancel = cancel_hold();
	fair_lock_take(&f->lock);
	unlink_share(s);
	allocator_resign(s);
	if (f->session != 0 && s->phase != SHARE_OUTSIDE) {
		share_move(s, SHARE_LEFT);
		s->left = fleet_now(f);
		s->next = f->left;
		f->left = s;
		if (fleet_erase_left(f) != 0) {
			f->refresh_now = true;
			fleet_ring(f);
		}
	} else {
		share_free(s);
	}
	fair_lock_release(&f->lock);
	cancel_release(cancel);
}
