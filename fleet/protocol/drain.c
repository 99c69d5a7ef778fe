/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draining: a member gives back what it holds, and gets nothing until it is undrained. All members
 * read the drain row, and plan as if the drained member wanted nothing, so the others get what it
 * gives up. The drained member gives its units up itself, at its next refresh.
 */

#include "fleet/protocol/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/inspect.h"

bool drains_add(struct drains *d, const struct drain *drain)
{
	if (d->count == d->room) {
		const size_t room = d->room > 0 ? 2 * d->room : 4;
		struct drain *at = realloc(d->at, room * sizeof(*at));

		if (at == NULL)
			return false;
		d->at = at;
		d->room = room;
	}
	d->at[d->count++] = *drain;
	return true;
}

uint64_t drains_version(const struct drains *d, uint64_t id)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->at[i].id == id)
			return d->at[i].version;
	return 0;
}

bool drains_have(const struct drains *d, uint64_t id)
{
	return drains_version(d, id) != 0;
}

void drains_clear(struct drains *d)
{
	d->count = 0;
}

void drains_free(struct drains *d)
{
	free(d->at);
	*d = (struct drains){.count = 0};
}

/* Checks the member's row: a drain row of a member that is gone would stay for ever. */
static int drain(struct weir_store *store, const char *name, uint64_t id,
		 const struct limit_view *v)
{
	const struct seen_member *member = view_member(v, id);
	char key[KEY_ROOM], own[KEY_ROOM];
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, DRAIN_TEXT,
					       strlen(DRAIN_TEXT)};
	struct weir_store_check checks[] = {{own, WEIR_STORE_CHECK_MADE, 0},
					    {key, WEIR_STORE_CHECK_ABSENT, 0}};

	if (drains_have(&v->drains, id))
		return 0;
	if (member == NULL)
		return -ESRCH;
	checks[0].version = member->made;
	member_key(name, "drain", id, key);
	member_key(name, "m", id, own);
	return weir_store_commit(store, 0, checks, 2, &write, 1, NULL);
}

static int undrain(struct weir_store *store, const char *name, uint64_t id,
		   const struct limit_view *v)
{
	char key[KEY_ROOM];
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_ERASE, NULL, 0};
	const struct weir_store_check check = {key, WEIR_STORE_CHECK_VERSION,
					       drains_version(&v->drains, id)};

	if (!drains_have(&v->drains, id))
		return view_member(v, id) != NULL ? 0 : -ESRCH;
	member_key(name, "drain", id, key);
	return weir_store_commit(store, 0, &check, 1, &write, 1, NULL);
}

int weir_fleet_drain(struct weir_store *store, const char *name, uint64_t member, bool drained)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		struct limit_view v = {.count = 0};

		r = view_read(store, name, &v);
		if (r == 0)
			r = drained ? drain(store, name, member, &v)
				    : undrain(store, name, member, &v);
		view_free(&v);
	}
	return r;
}
