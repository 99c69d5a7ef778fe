/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Setting checkpoints back.
 *
 * One commit writes the checkpoint, with the fence of the owner in it, and a note for that owner,
 * NAME/rewound/I. From then on no checkpoint by that fence is written: a write that is under way
 * finds another version of the row, and the next one finds its fence there. The owner loses the
 * partition when it finds either, erases its row, and may claim the partition by another fence. So
 * what follows for its program is what always follows when a partition is lost and gained: it loads
 * the checkpoint and goes on from there.
 *
 * The row stays when the checkpoint is set back to nothing: a first checkpoint that is under way
 * would be written if there were no row.
 *
 * Where the partition has an owner, the commit does not check the version of the checkpoint: an
 * owner that writes one after the other would always be faster. The check of the owner's row
 * excludes all other writers, and that of the note another rewinding.
 */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTEMPTS 64 /* an owner may come or go between reading and writing */

/* Where a checkpoint is set back to. */
struct rewind {
	struct weir_store *store;
	const char *name;
	bool nothing;
	uint64_t sequence;
	const void *value;
	size_t size;
	char who[LABEL_ROOM];
};

/* A partition as it is read. */
struct position {
	uint32_t partition;
	char key[PARTITION_KEY_SIZE], owner_key[PARTITION_KEY_SIZE], note_key[PARTITION_KEY_SIZE];
	char kind_key[PARTITION_KEY_SIZE];
	struct checkpoint_record record;
	uint64_t version, owner_made, note_version; /* 0: there is no such row */
	uint32_t count;                             /* of partitions; 0: not known */
	bool good;
};

static bool take_kind(struct position *p, const struct weir_store_row *row)
{
	struct work_record kind;

	if (!work_parse(row->value, row->size, &kind))
		return false;
	p->count = kind.count;
	return true;
}

static bool take_checkpoint(struct position *p, const struct weir_store_row *row)
{
	const char *value;

	p->version = row->version;
	return checkpoint_parse(row->value, row->size, &p->record, &value);
}

static bool take_position(void *arg, const struct weir_store_row *row)
{
	struct position *p = arg;

	if (strcmp(row->key, p->owner_key) == 0)
		p->owner_made = row->made;
	else if (strcmp(row->key, p->note_key) == 0)
		p->note_version = row->version;
	else if (strcmp(row->key, p->kind_key) == 0)
		p->good = take_kind(p, row);
	else if (strcmp(row->key, p->key) == 0)
		p->good = take_checkpoint(p, row);
	return p->good;
}

static int read_position(const struct rewind *rewind, uint32_t partition, struct position *p)
{
	const char *const prefixes[] = {p->key, p->owner_key, p->note_key, p->kind_key};
	const char *name = rewind->name;
	int r;

	*p = (struct position){.partition = partition, .good = true};
	checkpoint_key(name, partition, p->key);
	(void)snprintf(p->owner_key, PARTITION_KEY_SIZE, "%s/partition/%" PRIu32, name, partition);
	(void)snprintf(p->note_key, PARTITION_KEY_SIZE, "%s/rewound/%" PRIu32, name, partition);
	(void)snprintf(p->kind_key, PARTITION_KEY_SIZE, "%s/partitions", name);
	r = weir_store_read(rewind->store, prefixes, 4, take_position, p, NULL);
	return r == 0 && !p->good ? -EPROTO : r;
}

/* The checks: that the owner is the same, or still none, and that no other program rewinds. */
static void check_position(const struct position *p, struct weir_store_check checks[2])
{
	const bool owned = p->owner_made != 0;
	const uint64_t version = owned ? p->note_version : p->version;

	checks[0] = (struct weir_store_check){
		p->owner_key, owned ? WEIR_STORE_CHECK_MADE : WEIR_STORE_CHECK_ABSENT,
		p->owner_made};
	checks[1] = (struct weir_store_check){
		owned ? p->note_key : p->key,
		version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, version};
}

static struct checkpoint_record record_of(const struct rewind *rewind, const struct position *p)
{
	struct timespec now;
	struct checkpoint_record record = {
		.none = rewind->nothing,
		.sequence = rewind->sequence,
		.rewinds = p->record.rewinds + 1,
		.refused = p->owner_made,
	};

	clock_gettime(CLOCK_REALTIME, &now);
	record.when = (uint64_t)now.tv_sec;
	memcpy(record.who, rewind->who, sizeof(record.who));
	return record;
}

static int write_position(const struct rewind *rewind, const struct position *p)
{
	const struct checkpoint_record record = record_of(rewind, p);
	char text[CHECKPOINT_HEAD_SIZE + WEIR_CHECKPOINT_SIZE_MAX], note[24];
	const struct weir_store_write writes[] = {
		{p->key, WEIR_STORE_WRITE_PUT, text,
		 checkpoint_print(&record, rewind->value, rewind->size, text)},
		{p->note_key, WEIR_STORE_WRITE_PUT, note,
		 (size_t)snprintf(note, sizeof(note), "%" PRIu64 "\n", p->owner_made)},
	};
	struct weir_store_check checks[2];

	check_position(p, checks);
	return weir_store_commit(rewind->store, 0, checks, 2, writes, p->owner_made != 0 ? 2 : 1,
				 NULL);
}

static bool is_back(const struct rewind *rewind, const struct position *p)
{
	if (rewind->nothing)
		return true;
	return p->version != 0 && !p->record.none && rewind->sequence <= p->record.sequence;
}

/* Set one back. -ENOENT: there is no such partition; -ERANGE: it is not back. */
static int rewind_one(const struct rewind *rewind, uint32_t partition)
{
	struct position p;
	int r = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		r = read_position(rewind, partition, &p);
		if (r != 0)
			return r;
		if (partition >= p.count && p.version == 0)
			return -ENOENT;
		if (!is_back(rewind, &p))
			return -ERANGE;
		r = write_position(rewind, &p);
	}
	return r;
}

/* All partitions that there are, or that have a checkpoint. */
struct census {
	const char *name;
	uint32_t count;
	bool has_checkpoint[WEIR_WORK_MAX];
	bool good;
};

static bool count_row(void *arg, const struct weir_store_row *row)
{
	struct census *c = arg;
	const char *number = strrchr(row->key, '/') + 1;
	struct work_record kind;
	char *end;
	unsigned long n;

	if (row->key[strlen(c->name)] == '/') {
		c->good = work_parse(row->value, row->size, &kind) && kind.count <= WEIR_WORK_MAX;
		c->count = c->good ? kind.count : 0;
		return c->good;
	}
	n = strtoul(number, &end, 10);
	c->good = *end == '\0' && number[0] >= '0' && number[0] <= '9' && n < WEIR_WORK_MAX;
	if (c->good)
		c->has_checkpoint[n] = true;
	return c->good;
}

static int count_all(const struct rewind *rewind, struct census *c)
{
	char kind[PARTITION_KEY_SIZE], checkpoints[PARTITION_KEY_SIZE];
	const char *const prefixes[] = {kind, checkpoints};
	int r;

	(void)snprintf(kind, sizeof(kind), "%s/partitions", rewind->name);
	(void)snprintf(checkpoints, sizeof(checkpoints), "%s.checkpoints/", rewind->name);
	r = weir_store_read(rewind->store, prefixes, 2, count_row, c, NULL);
	return r == 0 && !c->good ? -EPROTO : r;
}

/* Those that are not above the sequence stay as they are. */
static int rewind_all(const struct rewind *rewind)
{
	struct census c = {.name = rewind->name, .good = true};
	int r = count_all(rewind, &c), done = 0;
	bool any = false;

	for (uint32_t i = 0; i < WEIR_WORK_MAX && r == 0; i++) {
		if (i >= c.count && !c.has_checkpoint[i])
			continue;
		any = true;
		r = rewind_one(rewind, i);
		done += r == 0;
		if (r == -ERANGE || r == -ENOENT)
			r = 0;
	}
	if (r == 0 && !any)
		r = -ENOENT;
	return r == 0 ? done : r;
}

static int rewind_checkpoints(struct rewind *rewind, uint32_t partition, const char *by)
{
	int r;

	if (!fleet_is_name(rewind->name) || (rewind->value == NULL && rewind->size > 0) ||
	    (by != NULL && !is_word(by, WEIR_FLEET_LABEL_MAX)) ||
	    (partition != WEIR_WORK_ALL && partition >= WEIR_WORK_MAX))
		return -EINVAL;
	if (rewind->size > WEIR_CHECKPOINT_SIZE_MAX)
		return -EMSGSIZE;
	if (by != NULL)
		(void)snprintf(rewind->who, sizeof(rewind->who), "%s", by);
	else
		fleet_label_process(rewind->who);
	if (partition == WEIR_WORK_ALL)
		return rewind_all(rewind);
	r = rewind_one(rewind, partition);
	return r == 0 ? 1 : r;
}

int weir_work_rewind(struct weir_store *store, const char *name, uint32_t partition,
		     uint64_t sequence, const void *value, size_t size, const char *by)
{
	struct rewind rewind = {
		.store = store,
		.name = name,
		.sequence = sequence,
		.value = value,
		.size = size,
	};

	return rewind_checkpoints(&rewind, partition, by);
}

int weir_work_restart(struct weir_store *store, const char *name, uint32_t partition,
		      const char *by)
{
	struct rewind rewind = {.store = store, .name = name, .nothing = true};

	return rewind_checkpoints(&rewind, partition, by);
}
