/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuring a limit: making it before any member joins, changing it for all, removing it.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/protocol/inspect.h"
#include "fleet/protocol/share.h"
#include "fleet/store/store.h"

#define OWN_ROWS 6 /* of a limit itself: cfg, led, up, drained, learning, grants */

int limit_check(const struct limit_record *l, char *why)
{
	__extension__ const unsigned __int128 aside = (unsigned __int128)l->reserved * l->members;

	if (l->capacity > WEIR_SHARE_UNITS_MAX)
		return store_say(-EINVAL, why, "capacity is above 2^53.");
	if ((unsigned)l->allotment > WEIR_ALLOT_NONE)
		return store_say(-EINVAL, why, "allotment is not one of enum weir_allotment.");
	if ((l->reserved == 0) != (l->members == 0))
		return store_say(-EINVAL, why, "reserved and members belong together.");
	if (aside > l->capacity)
		return store_say(-EINVAL, why,
				 "What is reserved for all members is above the capacity.");
	if (l->learning != 0 && l->learning < l->lease)
		return store_say(-EINVAL, why,
				 "learning is shorter than lease: leases could outlast it.");
	return 0;
}

static struct weir_store_check as_read(const char *key, uint64_t version)
{
	return (struct weir_store_check){
		key, version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, version};
}

/*
 * Write the limit if its row has that version; 0: if there is no row. A limit that becomes
 * allocated, or is so no longer, begins without a ledger and without grants. v is how it was read,
 * without members, or NULL if it stays of its kind.
 */
static int write_limit(struct weir_store *store, const char *name, const struct limit_record *l,
		       uint64_t version, const struct limit_view *v)
{
	char key[KEY_ROOM], learning_key[KEY_ROOM], ledger[KEY_ROOM], grants[KEY_ROOM];
	char text[RECORD_SIZE], learning[RECORD_SIZE];
	const struct weir_store_check checks[] = {
		as_read(key, version),
		as_read(ledger, v != NULL ? v->ledger_version : 0),
		as_read(grants, v != NULL ? v->grants.version : 0),
	};
	struct weir_store_write writes[] = {
		{key, WEIR_STORE_WRITE_PUT, text, limit_print(l, text)},
		{learning_key, WEIR_STORE_WRITE_ERASE, NULL, 0},
		{ledger, WEIR_STORE_WRITE_ERASE, NULL, 0},
		{grants, WEIR_STORE_WRITE_ERASE, NULL, 0},
	};

	if (l->learning != 0)
		writes[1] = (struct weir_store_write){learning_key, WEIR_STORE_WRITE_PUT, learning,
						      learning_print(l->learning, learning)};
	(void)snprintf(key, sizeof(key), "%s/cfg", name);
	(void)snprintf(learning_key, sizeof(learning_key), "%s/" LEARNING_KEY, name);
	(void)snprintf(ledger, sizeof(ledger), "%s/led", name);
	(void)snprintf(grants, sizeof(grants), "%s/grants", name);
	return weir_store_commit(store, 0, checks, v != NULL ? 3 : 1, writes, v != NULL ? 4 : 2,
				 NULL);
}

struct limit_record limit_record_of(const struct weir_fleet_limit *limit)
{
	return (struct limit_record){
		.capacity = limit->capacity,
		.allotment = limit->allotment,
		.reserved = limit->reserved,
		.members = limit->members_max,
		.lease = (limit->lease != 0 ? limit->lease : LEASE_DEFAULT) / WEIR_MS,
		.learning = limit->learning_period / WEIR_MS,
		.allocated = limit->allocated != 0,
	};
}

int limit_check_settings(const struct weir_fleet_limit *limit, char *why)
{
	struct limit_record record;

	if (limit->size != sizeof(*limit))
		return store_say(-EINVAL, why, "The limit has the size of another version.");
	if (limit->lease != 0 && (limit->lease < LEASE_MIN || limit->lease > LEASE_MAX))
		return store_say(-EINVAL, why, "lease is not from 20 ms to an hour.");
	if (limit->learning_period != 0 &&
	    (limit->learning_period < LEASE_MIN || limit->learning_period > LEASE_MAX))
		return store_say(-EINVAL, why, "learning is not from 20 ms to an hour.");
	record = limit_record_of(limit);
	return limit_check(&record, why);
}

static int check(const char *name, const struct weir_fleet_limit *limit, char *why)
{
	if (!fleet_is_name(name))
		return store_say(-EINVAL, why, "A name has 1 to %d letters, digits and -_.:@.",
				 WEIR_SHARE_NAME_MAX);
	return limit_check_settings(limit, why);
}

/*
 * Erase grants, none of which has a member any more, until one commit takes the rest. The row
 * "grants" must be as it was read: then no allocator has written one since.
 */
static int erase_grants(struct weir_store *store, const char *name, const struct limit_view *v)
{
	char all[KEY_ROOM], keys[WEIR_STORE_ROWS_MAX][KEY_ROOM];
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	const struct weir_store_check check = as_read(all, v->grants.version);
	int r = 0;

	(void)snprintf(all, sizeof(all), "%s/grants", name);
	for (size_t from = 0; from < v->grants.count && r == 0;) {
		size_t count = 0;

		for (; count < WEIR_STORE_ROWS_MAX && from < v->grants.count; count++, from++) {
			member_key(name, "grant", v->grants.at[from].id, keys[count]);
			writes[count] = (struct weir_store_write){keys[count],
								  WEIR_STORE_WRITE_ERASE, NULL, 0};
		}
		r = weir_store_commit(store, 0, &check, 1, writes, count, NULL);
	}
	return r;
}

/* Write a limit that is there: of the other kind only if it has no members. */
static int rewrite_limit(struct weir_store *store, const char *name, const struct limit_record *l,
			 uint64_t version, char *why)
{
	struct limit_view v = {.count = 0};
	int r = view_read(store, name, &v);

	/* A row that is of another version does not stand in the way of what was read of this one. */
	if ((r == 0 || (r == -EPROTO && v.has_limit)) && v.limit.allocated == l->allocated)
		r = write_limit(store, name, l, version, NULL);
	else if (r == 0 && v.count > 0)
		r = store_say(-EBUSY, why,
			      "It has members: whether it is allocated can be changed only while "
			      "there are none.");
	else if (r == 0)
		r = erase_grants(store, name, &v);
	if (r == 0 && v.limit.allocated != l->allocated)
		r = write_limit(store, name, l, version, &v);
	view_free(&v);
	return r == -ENOENT ? -EAGAIN : r;
}

static int configure(struct weir_store *store, const char *name,
		     const struct weir_fleet_limit *limit, char *why)
{
	struct limit_record record;
	int r = check(name, limit, why);

	if (r != 0)
		return r;
	record = limit_record_of(limit);
	r = limit->version == 0 ? write_limit(store, name, &record, 0, NULL)
				: rewrite_limit(store, name, &record, limit->version, why);
	if (r == -EAGAIN)
		(void)store_say(r, why, "%s",
				limit->version != 0 ? "It has changed since it was read."
						    : "It is there already.");
	else if (r != 0 && why[0] == '\0')
		weir_store_error(store, why, WHY_SIZE);
	return r;
}

int weir_fleet_limit_check(const char *name, const struct weir_fleet_limit *limit, char *why,
			   size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = check(name, limit, text);

	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

int weir_fleet_configure(struct weir_store *store, const char *name,
			 const struct weir_fleet_limit *limit, char *why, size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = configure(store, name, limit, text);

	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

int weir_fleet_change(struct weir_store *store, const char *name, uint64_t capacity)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		struct weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		r = weir_fleet_inspect(store, name, &limit, NULL, NULL);
		limit.capacity = capacity;
		if (r == 0)
			r = weir_fleet_configure(store, name, &limit, NULL, 0);
	}
	return r;
}

/*
 * Erase the limit with its ledger, what is carried for it, and its drain rows. The limit, ledger
 * and "up" rows must be as they were read, so that a limit that a member has joined meanwhile stays.
 */
static int erase(struct weir_store *store, const char *name, const struct limit_view *v)
{
	static const char *const rows[OWN_ROWS] = {"cfg",       "led",        "up",
						   DRAINED_KEY, LEARNING_KEY, "grants"};
	char key[OWN_ROWS][KEY_ROOM], drains[WEIR_STORE_ROWS_MAX - OWN_ROWS][KEY_ROOM];
	const struct weir_store_check checks[OWN_ROWS] = {
		{key[0], WEIR_STORE_CHECK_VERSION, v->limit_version},
		as_read(key[1], v->ledger_version),
		as_read(key[2], v->up_version),
		as_read(key[3], v->drains.labels_version),
		as_read(key[4], v->learning_version),
		as_read(key[5], v->grants.version),
	};
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	size_t count = 0;

	for (; count < OWN_ROWS; count++) {
		(void)snprintf(key[count], KEY_ROOM, "%s/%s", name, rows[count]);
		writes[count] = (struct weir_store_write){key[count], WEIR_STORE_WRITE_ERASE, NULL,
							  0};
	}
	for (; count < WEIR_STORE_ROWS_MAX && count - OWN_ROWS < v->drains.count; count++) {
		member_key(name, "drain", v->drains.at[count - OWN_ROWS].id,
			   drains[count - OWN_ROWS]);
		writes[count] = (struct weir_store_write){drains[count - OWN_ROWS],
							  WEIR_STORE_WRITE_ERASE, NULL, 0};
	}
	return weir_store_commit(store, 0, checks, OWN_ROWS, writes, count, NULL);
}

int weir_fleet_remove(struct weir_store *store, const char *name)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		struct limit_view v = {.count = 0};

		r = view_read(store, name, &v);
		if (r == 0)
			r = v.count > 0 ? -EBUSY : erase_grants(store, name, &v);
		if (r == 0)
			r = erase(store, name, &v);
		view_free(&v);
	}
	return r;
}
