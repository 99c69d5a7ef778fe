/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inspecting a limit in a store, without being a member of it.
 */

#include "fleet/protocol/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/protocol/mismatch.h"
#include "fleet/protocol/reason.h"
#include "fleet/protocol/share.h"

void weir_fleet_limit_init_sized(struct weir_fleet_limit *limit, size_t size)
{
	memset(limit, 0, size);
	limit->size = size;
}

struct weir_store *weir_fleet_store(struct weir_fleet *f)
{
	return f->store;
}

/* A view that is being read, and whether there was no memory for all of it. */
struct reading {
	struct limit_view *view;
	bool full;
};

static bool take(void *arg, const struct weir_store_row *row)
{
	struct reading *reading = arg;

	reading->full = !view_take(reading->view, strchr(row->key, '/') + 1, row);
	return !reading->full;
}

int view_read(struct weir_store *store, const char *name, struct limit_view *v)
{
	char prefix[WEIR_SHARE_NAME_MAX + 2];
	const char *prefixes[] = {prefix};
	struct reading reading = {.view = v};
	struct weir_store_view read;
	int r;

	if (!fleet_is_name(name))
		return -EINVAL;
	(void)snprintf(prefix, sizeof(prefix), "%s/", name);
	view_clear(v);
	r = weir_store_read(store, prefixes, 1, take, &reading, &read);
	if (r != 0)
		return r;
	v->proven = read.proven;
	if (reading.full || !view_tabulate(v))
		return -ENOMEM;
	if (v->other_version)
		return -EPROTO;
	return v->has_limit ? 0 : -ENOENT;
}

void view_fill(const struct limit_view *v, struct weir_fleet_limit *limit)
{
	const size_t size = limit->size;
	struct weir_fleet_limit full = {
		.size = size,
		.capacity = v->limit.capacity + v->carried,
		.effective = view_effective(v, v->ledger.throttle),
		.allotment = v->limit.allotment,
		.reserved = v->limit.reserved,
		.members_max = v->limit.members,
		.members = (uint32_t)v->count,
		.lease = v->limit.lease * WEIR_MS,
		.version = v->limit_version,
		.learning = view_learning(v),
		.carried = v->carried,
		.learning_period = v->limit.learning * WEIR_MS,
		.allocated = v->limit.allocated,
	};

	for (size_t i = 0; i < v->count; i++) {
		full.granted += view_grant(v, &v->members[i]);
		full.wanted += v->members[i].record.wants;
	}
	if (v->limit.allocated && v->grants.elected != 0)
		memcpy(full.allocator, v->grants.allocator.label, sizeof(full.allocator));
	reason_of_limit(v, full.reason);
	memcpy(limit, &full, size < sizeof(full) ? size : sizeof(full));
}

/* Returns true if visit() has ended the visit. */
static bool show_members(const struct limit_view *v,
			 bool (*visit)(void *arg, const struct weir_fleet_member *member),
			 void *arg)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct seen_member *m = &v->members[i];
		char mismatch[MISMATCH_SIZE], reason[REASON_SIZE];
		const struct weir_fleet_member member = {
			.id = m->id,
			.fence = m->made,
			.wants = m->record.wants,
			.grant = view_grant(v, m),
			.weight = m->record.weight,
			.priority = m->record.priority,
			.drained = drains_have(&v->drains, m->id, m->record.label),
			.label_drained = drains_have_label(&v->drains, m->record.label),
			.label = m->record.label,
			.reserved = view_reserved(v, m),
			.mismatch = mismatch,
			.reason = reason,
		};

		mismatch_print(&m->record.own, &v->limit, mismatch);
		reason_of_member(v, m, reason);
		if (!visit(arg, &member))
			return true;
	}
	return false;
}

static bool is_present(const struct limit_view *v, const char *label)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->members[i].record.label, label) == 0)
			return true;
	return false;
}

#define DRAINED_ABSENT "An operator has drained it, and it is not present."

/* Drained labels that no member has. Returns true if visit() has ended the visit. */
static bool show_labels(const struct limit_view *v,
			bool (*visit)(void *arg, const struct weir_fleet_member *member), void *arg)
{
	const char *at = v->drains.labels;
	char label[LABEL_ROOM];

	while (drains_next_label(&at, label)) {
		const struct weir_fleet_member member = {
			.drained = 1,
			.label_drained = 1,
			.label = label,
			.mismatch = "",
			.reason = DRAINED_ABSENT,
		};

		if (!is_present(v, label) && !visit(arg, &member))
			return true;
	}
	return false;
}

static void show_absent(const struct limit_view *v,
			bool (*visit)(void *arg, const struct weir_fleet_member *member), void *arg)
{
	for (size_t i = 0; i < v->drains.count; i++) {
		const struct weir_fleet_member member = {
			.id = v->drains.at[i].id,
			.drained = 1,
			.label = "",
			.mismatch = "",
			.reason = DRAINED_ABSENT,
		};

		if (view_member(v, member.id) == NULL && !visit(arg, &member))
			return;
	}
}

int weir_fleet_inspect(struct weir_store *store, const char *name, struct weir_fleet_limit *limit,
		       bool (*visit)(void *arg, const struct weir_fleet_member *member), void *arg)
{
	struct limit_view v = {.count = 0};
	int r = view_read(store, name, &v);

	if (r == 0) {
		view_sort(&v);
		view_fill(&v, limit);
		if (visit != NULL && !show_members(&v, visit, arg) && !show_labels(&v, visit, arg))
			show_absent(&v, visit, arg);
	}
	view_free(&v);
	return r;
}
