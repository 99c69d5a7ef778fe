/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing partitions: a member erases its rows. If the store cannot be reached, the fleet goes on
 * trying, since its session, and with it these rows, may live on for long.
 */

#include "fleet/work/work.h"

#include <errno.h>
#include <stdlib.h>

#include "fleet/protocol/refresh.h"

#define AT_ONCE 100 /* rows of a commit; the member's own row fits in addition */

_Static_assert(AT_ONCE + 1 <= WEIR_STORE_ROWS_MAX, "a commit has room for all rows");

struct leaving {
	struct weir_store_check checks[AT_ONCE + 1];
	struct weir_store_write writes[AT_ONCE + 1];
	char keys[AT_ONCE][PARTITION_KEY_SIZE];
	size_t count;
};

static void erase(struct leaving *l, const char *key, uint64_t made)
{
	l->checks[l->count] = (struct weir_store_check){key, WEIR_STORE_CHECK_MADE, made};
	l->writes[l->count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL, 0};
}

static void erase_note(struct leaving *l, const struct weir_work *w, uint32_t i)
{
	char *key = l->keys[l->count];

	partition_key(w, "rewound", i, key, PARTITION_KEY_SIZE);
	erase(l, key, 0);
	l->checks[l->count - 1].kind = WEIR_STORE_CHECK_VERSION;
	l->checks[l->count - 1].version = w->partitions[i].rewound_version;
}

static void erase_partition(struct leaving *l, const struct weir_work *w, const char *what,
			    uint32_t i, uint64_t made)
{
	char *key = l->keys[l->count];

	partition_key(w, what, i, key, PARTITION_KEY_SIZE);
	erase(l, key, made);
}

/*
 * The member's own row goes with them: a commit under way that would claim a partition is then
 * refused.
 */
static void collect(struct leaving *l, const struct weir_work *w)
{
	for (uint32_t i = 0; i < w->config.count && l->count + 3 <= AT_ONCE; i++) {
		const struct partition *partition = &w->partitions[i];

		if (partition->owner == w->id)
			erase_partition(l, w, "partition", i, partition->made);
		if (partition->owner == w->id && partition->rewound_version != 0)
			erase_note(l, w, i);
		if (partition->requester == w->id)
			erase_partition(l, w, "request", i, partition->request_made);
	}
	if (w->own_made != 0)
		erase(l, w->own_key, w->own_made);
}

int work_leave(struct weir_work *w)
{
	int r;

	do {
		struct leaving l = {.count = 0};

		r = work_read(w, false);
		if (r != 0)
			return r;
		collect(&l, w);
		if (l.count == 0)
			return 1;
		r = weir_store_commit(w->fleet->store, 0, l.checks, l.count, l.writes, l.count,
				      NULL);
	} while (r == 0);
	return r;
}

/* Lose all partitions, and disable callbacks from here on. */
static void stop_callbacks(struct weir_work *w)
{
	for (uint32_t i = 0; i < work_used(w); i++)
		partition_give_up(w, i, false);
	work_report_units(w);
	w->config.on_units = NULL;
	w->config.on_failure = NULL;
	w->config.on_gain = NULL;
	w->config.on_request = NULL;
	w->config.on_lost = NULL;
}

void weir_work_close(struct weir_work *w)
{
	struct weir_fleet *f;

	if (w == NULL)
		return;
	f = w->fleet;
	fair_lock_take(&f->lock);
	stop_callbacks(w);
	participant_leave(f, &w->participant);
	fair_lock_release(&f->lock);
}
