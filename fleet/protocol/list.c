/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listing the limits and the partitioned work in a store, by their names.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/inspect.h"
#include "fleet/protocol/share.h"

#define CHECKPOINTS ".checkpoints"

struct found {
	char name[WEIR_SHARE_NAME_MAX + 1];
	struct limit_view view;
	uint32_t workers, owned, checkpoints;
};

struct list {
	struct found *at; /* sorted by name */
	size_t count, room;
	bool full;
};

/* The index of a name, or where it is to be inserted. */
static size_t index_of(const struct list *l, const char *name)
{
	size_t begin = 0, end = l->count;

	while (begin < end) {
		const size_t middle = begin + (end - begin) / 2;

		if (strcmp(l->at[middle].name, name) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

/* Returns NULL without memory. */
static struct found *found_of(struct list *l, const char *name)
{
	const size_t index = index_of(l, name);

	if (index < l->count && strcmp(l->at[index].name, name) == 0)
		return &l->at[index];
	if (l->count == l->room) {
		const size_t room = l->room > 0 ? 2 * l->room : 16;
		struct found *at = realloc(l->at, room * sizeof(*at));

		if (at == NULL)
			return NULL;
		l->at = at;
		l->room = room;
	}
	memmove(&l->at[index + 1], &l->at[index], (l->count - index) * sizeof(l->at[0]));
	l->count++;
	l->at[index] = (struct found){.workers = 0};
	memcpy(l->at[index].name, name, strlen(name) + 1);
	view_clear(&l->at[index].view);
	return &l->at[index];
}

/* Checkpoints are in NAME.checkpoints/; the suffix is removed from name. */
static bool is_checkpoint(char *name, const char *rest)
{
	const size_t length = strlen(name), end = strlen(CHECKPOINTS);

	if (length <= end || strcmp(name + length - end, CHECKPOINTS) != 0 || rest[0] == '\0' ||
	    strspn(rest, "0123456789") != strlen(rest))
		return false;
	name[length - end] = '\0';
	return true;
}

static bool take(void *arg, const struct weir_store_row *row)
{
	const char *rest = strchr(row->key, '/') + 1;
	char name[WEIR_STORE_KEY_MAX + 1];
	struct list *l = arg;
	struct found *found;
	bool checkpoint;

	memcpy(name, row->key, (size_t)(rest - row->key) - 1);
	name[rest - row->key - 1] = '\0';
	checkpoint = is_checkpoint(name, rest);
	if (!fleet_is_name(name))
		return true; /* not a row of weir */
	found = found_of(l, name);
	if (found == NULL) {
		l->full = true;
		return false;
	}
	found->checkpoints += checkpoint;
	found->workers += strncmp(rest, "worker/", 7) == 0;
	found->owned += strncmp(rest, "partition/", 10) == 0;
	l->full = !checkpoint && !view_take(&found->view, rest, row);
	return !l->full;
}

static struct weir_fleet_entry entry_of(struct found *found, struct weir_fleet_limit *limit)
{
	struct limit_view *v = &found->view;
	const bool good = v->has_limit && !v->other_version;

	weir_fleet_limit_init(limit);
	if (good && view_tabulate(v)) {
		view_sort(v);
		view_fill(v, limit);
	}
	return (struct weir_fleet_entry){
		.name = found->name,
		.limit = good ? limit : NULL,
		.other_version = v->other_version,
		.workers = found->workers,
		.owned = found->owned,
		.checkpoints = found->checkpoints,
	};
}

static bool is_something(const struct weir_fleet_entry *e)
{
	return e->limit != NULL || e->other_version || e->workers + e->owned + e->checkpoints > 0;
}

int weir_fleet_list(struct weir_store *store,
		    bool (*visit)(void *arg, const struct weir_fleet_entry *entry), void *arg)
{
	static const char *const all[] = {""};
	struct list l = {.count = 0};
	struct weir_store_view view;
	int r = weir_store_read(store, all, 1, take, &l, &view);
	bool more = true;

	if (r == 0 && l.full)
		r = -ENOMEM;
	for (size_t i = 0; i < l.count; i++) {
		struct weir_fleet_limit limit;
		struct weir_fleet_entry entry;

		l.at[i].view.proven = view.proven;
		entry = entry_of(&l.at[i], &limit);

		more = more && r == 0 && (!is_something(&entry) || visit(arg, &entry));
		view_free(&l.at[i].view);
	}
	free(l.at);
	return r;
}
