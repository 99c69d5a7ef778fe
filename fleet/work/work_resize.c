/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changing a capacity of partitions, and what each is worth, for all members.
 *
 * A capacity is a line of units, and each partition is a piece of it: the row of an owner says which
 * units it is for. Why the units of all owners never exceed the greater of the old capacity and the
 * new one:
 *
 * - A partition is claimed by a commit that checks the version of NAME/partitions. So the claim is of
 *   the capacity and the factor that are in the store at that instant, and a claim of the earlier
 *   ones that is under way fails.
 * - A member claims a partition only if it has read no row that is for one of its units. Since the
 *   version is still the same, rows that were made after that reading are of the same capacity and
 *   factor, and their partitions have other units, or the same key. Rows of earlier ones can only
 *   have gone.
 * - So no unit ever has two owners, and all units of owners are below the capacity that was in the
 *   store when their rows were made.
 *
 * Each member that reads a change gives up the rows that are not for a whole partition as it is now,
 * and claims others. Partitions of the same factor keep their units, but for the last one.
 */

#include "fleet/work/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ATTEMPTS 64 /* each member that joins writes the row too */

struct kind_reading {
	const char *key;
	struct work_record record;
	uint64_t version; /* 0: there is no such row */
	bool good;
};

static bool take_kind(void *arg, const struct weir_store_row *row)
{
	struct kind_reading *k = arg;

	if (strcmp(row->key, k->key) != 0)
		return true;
	k->version = row->version;
	k->good = work_parse(row->value, row->size, &k->record);
	return k->good;
}

static int read_kind(struct weir_store *store, struct kind_reading *k)
{
	int r = weir_store_read(store, &k->key, 1, take_kind, k, NULL);

	if (r != 0)
		return r;
	if (!k->good)
		return -EPROTO;
	return k->version != 0 ? 0 : -ENOENT;
}

static int resize_once(struct weir_store *store, const char *key, uint64_t capacity,
		       uint64_t factor)
{
	struct kind_reading k = {.key = key, .good = true};
	int r = read_kind(store, &k);
	char text[RECORD_SIZE];
	struct work_record record;
	uint64_t count;

	if (r != 0)
		return r;
	record = k.record;
	record.capacity = capacity;
	record.factor = factor != 0 ? factor : record.factor;
	record.changes++;
	count = work_count(record.capacity, record.factor);
	if (k.record.factor == 0 || count == 0 || count > WEIR_WORK_MAX)
		return -EINVAL;
	record.count = (uint32_t)count;
	const struct weir_store_check check = {key, WEIR_STORE_CHECK_VERSION, k.version};
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, text,
					       work_print(&record, text)};

	return weir_store_commit(store, 0, &check, 1, &write, 1, NULL);
}

static void kind_key(const char *name, char key[PARTITION_KEY_SIZE])
{
	(void)snprintf(key, PARTITION_KEY_SIZE, "%s/partitions", name);
}

int weir_work_resize(struct weir_store *store, const char *name, uint64_t capacity, uint64_t factor)
{
	char key[PARTITION_KEY_SIZE];
	int r = -EAGAIN;

	if (!fleet_is_name(name) || capacity > WEIR_SHARE_UNITS_MAX)
		return -EINVAL;
	kind_key(name, key);
	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++)
		r = resize_once(store, key, capacity, factor);
	return r;
}

void weir_work_size_init_sized(struct weir_work_size *info, size_t size)
{
	memset(info, 0, size);
	info->size = size;
}

int weir_work_size_take(struct weir_store *store, const char *name, struct weir_work_size *info)
{
	char key[PARTITION_KEY_SIZE];
	struct kind_reading k = {.key = key, .good = true};
	struct weir_work_size full;
	int r;

	if (!fleet_is_name(name))
		return -EINVAL;
	kind_key(name, key);
	r = read_kind(store, &k);
	if (r != 0)
		return r;
	full = (struct weir_work_size){
		.size = info->size,
		.count = k.record.count,
		.capacity = k.record.capacity,
		.factor = k.record.factor,
		.lease = k.record.lease * WEIR_MS,
		.changes = k.record.changes,
	};
	memcpy(info, &full, full.size < sizeof(full) ? full.size : sizeof(full));
	return 0;
}
