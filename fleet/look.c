/*
 * A limit from outside: what the store says of it, and changing it.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "share.h"

#define CHANGES_MAX 8 /* whoever is in between, is not so often */

void weir_fleet_limit_init_sized(struct weir_fleet_limit *limit, size_t size)
{
	memset(limit, 0, size);
	limit->size = size;
}

struct weir_store *weir_fleet_store(struct weir_fleet *f)
{
	return f->store;
}

static bool take(void *arg, const struct weir_row *row)
{
	return view_take(arg, strchr(row->key, '/') + 1, row);
}

/* All of it; -ENOENT, -EPROTO. */
static int read_limit(struct weir_store *store, const char *name, struct limit_view *v)
{
	char prefix[WEIR_SHARE_NAME_MAX + 2];
	const char *prefixes[] = {prefix};
	int r;

	if (!fleet_is_name(name))
		return -EINVAL;
	(void)snprintf(prefix, sizeof(prefix), "%s/", name);
	view_clear(v);
	r = weir_store_read(store, prefixes, 1, take, v, NULL);
	if (r != 0)
		return r;
	if (v->strange)
		return -EPROTO;
	return v->has_limit ? 0 : -ENOENT;
}

static void fill(const struct limit_view *v, struct weir_fleet_limit *limit)
{
	const size_t size = limit->size;
	struct weir_fleet_limit full = {
		.size = size,
		.capacity = v->limit.capacity,
		.effective = view_effective(v, v->ledger.throttle),
		.allotment = v->limit.allotment,
		.reserved = v->limit.reserved,
		.members_max = v->limit.members,
		.members = (uint32_t)v->count,
		.lease = v->limit.lease * WEIR_MS,
	};

	for (size_t i = 0; i < v->count; i++)
		full.granted += view_grant(v, &v->members[i]);
	memcpy(limit, &full, size < sizeof(full) ? size : sizeof(full));
}

static void show(const struct limit_view *v,
		 bool (*visit)(void *arg, const struct weir_fleet_member *member), void *arg)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct seen_member *m = &v->members[i];
		const struct weir_fleet_member member = {
			.id = m->id,
			.fence = m->made,
			.wants = m->record.wants,
			.grant = view_grant(v, m),
			.weight = m->record.weight,
			.priority = m->record.priority,
		};

		if (!visit(arg, &member))
			return;
	}
}

int weir_fleet_look(struct weir_store *store, const char *name, struct weir_fleet_limit *limit,
		    bool (*visit)(void *arg, const struct weir_fleet_member *member), void *arg)
{
	struct limit_view v = {.count = 0};
	int r = read_limit(store, name, &v);

	if (r == 0) {
		view_sort(&v);
		fill(&v, limit);
		if (visit != NULL)
			show(&v, visit, arg);
	}
	view_free(&v);
	return r;
}

static int change(struct weir_store *store, const char *name, uint64_t capacity)
{
	char key[WEIR_SHARE_NAME_MAX + 8], text[RECORD_SIZE];
	struct limit_view v = {.count = 0};
	struct weir_check check = {key, WEIR_CHECK_VERSION, 0};
	struct weir_write write = {key, WEIR_WRITE_PUT, text, 0};
	int r = read_limit(store, name, &v);

	view_free(&v);
	if (r != 0)
		return r;
	if (v.limit.members > 0 && v.limit.reserved > capacity / v.limit.members)
		return -EINVAL;
	(void)snprintf(key, sizeof(key), "%s/cfg", name);
	v.limit.capacity = capacity;
	check.version = v.limit_version;
	write.size = limit_print(&v.limit, text);
	return weir_store_commit(store, 0, &check, 1, &write, 1, NULL);
}

int weir_fleet_change(struct weir_store *store, const char *name, uint64_t capacity)
{
	int r = -EAGAIN;

	if (capacity > WEIR_SHARE_UNITS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++)
		r = change(store, name, capacity);
	return r;
}
