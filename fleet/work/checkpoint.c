/* SPDX-License-Identifier: BSD-2-Clause */
/* Checkpoints: loading and writing them. */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHECKPOINT_ATTEMPTS 8 /* late writes of its own that may conflict with a write */

void checkpoint_key(const char *name, uint32_t partition, char key[PARTITION_KEY_SIZE])
{
	(void)snprintf(key, PARTITION_KEY_SIZE, "%s.checkpoints/%" PRIu32, name, partition);
}

/* A checkpoint as it is read, and the owner of its partition at that time. */
struct loading {
	const char *key, *owner_key; /* owner_key: NULL if not needed */
	struct checkpoint_record record;
	uint64_t version;    /* of the checkpoint's row; 0: none */
	uint64_t owner_made; /* commit that created the owner's row; 0: none */
	char *value;
	size_t room, size;
	int result;
};

static void load_row(struct loading *l, const struct weir_store_row *row)
{
	const char *value;

	l->result = -EPROTO;
	if (!checkpoint_parse(row->value, row->size, &l->record, &value))
		return;
	l->version = row->version;
	l->size = row->size - (size_t)(value - (const char *)row->value);
	l->result = l->record.none ? -ENOENT : l->size <= l->room ? 0 : -EMSGSIZE;
	if (l->result == 0 && l->size > 0)
		memcpy(l->value, value, l->size);
}

/* A prefix also matches other rows: 1 matches 17. */
static bool take_loaded(void *arg, const struct weir_store_row *row)
{
	struct loading *l = arg;

	if (strcmp(row->key, l->key) == 0)
		load_row(l, row);
	else if (l->owner_key != NULL && strcmp(row->key, l->owner_key) == 0)
		l->owner_made = row->made;
	return true;
}

static int load(struct weir_work *w, struct loading *l)
{
	const char *const prefixes[] = {l->key, l->owner_key};
	int r;

	l->result = -ENOENT;
	r = weir_store_read(w->fleet->store, prefixes, l->owner_key != NULL ? 2 : 1, take_loaded, l,
			    NULL);
	return r == 0 ? l->result : r;
}

int weir_work_load(struct weir_work *w, uint32_t partition, uint64_t *sequence, void *value,
		   size_t *size)
{
	char key[PARTITION_KEY_SIZE];
	struct loading l = {.key = key, .value = value, .room = *size};
	int r;

	*sequence = 0;
	if (partition >= w->slots)
		return -EINVAL;
	checkpoint_key(w->name, partition, key);
	r = load(w, &l);
	*size = l.size;
	*sequence = l.record.sequence;
	return r;
}

/* A checkpoint to be written, and the rows that decide whether it may be. */
struct checkpoint {
	struct weir_work *work;
	struct partition *partition;
	char key[PARTITION_KEY_SIZE], owner_key[PARTITION_KEY_SIZE];
	uint64_t fence, sequence;
	const void *value;
	size_t size;
};

/*
 * The last checkpoint is read once for each fence, and again after each write that was not
 * acknowledged. If it was set back since, the fence is void (work_rewind.c).
 */
static int read_sequence(const struct checkpoint *c)
{
	char value[WEIR_CHECKPOINT_SIZE_MAX];
	struct loading l = {
		.key = c->key,
		.owner_key = c->owner_key,
		.value = value,
		.room = sizeof(value),
	};
	int r;

	if (c->partition->known_fence == c->fence)
		return 0;
	r = load(c->work, &l);
	if (r != 0 && r != -ENOENT)
		return r;
	if (l.owner_made != c->fence || (l.record.rewinds > 0 && l.record.refused == c->fence))
		return -ESTALE;
	c->partition->last = l.record;
	c->partition->last_version = l.version;
	c->partition->known_fence = c->fence;
	return 0;
}

/*
 * Each write replaces exactly the version of the row that was known when it was sent. So at most
 * one of two concurrent writes happens, and a write that arrives late, after another was
 * acknowledged, finds that version gone.
 */
static int write_checkpoint(const struct checkpoint *c)
{
	struct checkpoint_record *last = &c->partition->last, record = *last;
	char text[CHECKPOINT_HEAD_SIZE + WEIR_CHECKPOINT_SIZE_MAX];
	const uint64_t known = c->partition->last_version;
	const struct weir_store_check checks[] = {
		{c->owner_key, WEIR_STORE_CHECK_MADE, c->fence},
		{c->key, known != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, known},
	};
	struct weir_store_write write = {c->key, WEIR_STORE_WRITE_PUT, text, 0};
	uint64_t version;
	int r;

	record.none = false;
	record.sequence = c->sequence;
	write.size = checkpoint_print(&record, c->value, c->size, text);
	r = weir_store_commit(c->work->fleet->store, 0, checks, 2, &write, 1, &version);
	if (r == 0) {
		*last = record;
		c->partition->last_version = version;
	} else {
		c->partition->known_fence = 0;
	}
	return r;
}

static int try_checkpoint(const struct checkpoint *c)
{
	int r = read_sequence(c);

	if (r != 0)
		return r;
	return c->sequence >= c->partition->last.sequence ? write_checkpoint(c) : -ERANGE;
}

/* Only late writes of this owner can conflict, each of them once, or a rewinding. */
static int retry_checkpoint(const struct checkpoint *c)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < CHECKPOINT_ATTEMPTS && r == -EAGAIN; i++)
		r = try_checkpoint(c);
	return r == -EAGAIN ? -EIO : r;
}

int weir_work_checkpoint(struct weir_work *w, uint32_t partition, uint64_t fence, uint64_t sequence,
			 const void *value, size_t size)
{
	struct checkpoint c = {
		.work = w,
		.fence = fence,
		.sequence = sequence,
		.value = value,
		.size = size,
	};
	int r;

	if (partition >= w->slots || (value == NULL && size > 0))
		return -EINVAL;
	if (size > WEIR_CHECKPOINT_SIZE_MAX)
		return -EMSGSIZE;
	if (fence == 0)
		return -ESTALE;
	c.partition = &w->partitions[partition];
	partition_key(w, "partition", partition, c.owner_key, sizeof(c.owner_key));
	checkpoint_key(w->name, partition, c.key);
	fair_lock_take(&w->checkpoints);
	r = retry_checkpoint(&c);
	fair_lock_release(&w->checkpoints);
	if (r == -ESTALE)
		partition_refuse(w, partition, fence);
	return r;
}
