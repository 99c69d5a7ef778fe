/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions: opening, their worth, checkpoints. */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/store/store.h"

#define RELAXED memory_order_relaxed

#define CHECKPOINT_ATTEMPTS 8 /* late writes of its own that may conflict with a write */

void weir_work_config_init_sized(struct weir_work_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

void partition_key(const struct weir_work *w, const char *what, uint32_t partition, char *key,
		   size_t size)
{
	(void)snprintf(key, size, "%s/%s/%" PRIu32, w->name, what, partition);
}

static void checkpoint_key(const struct weir_work *w, uint32_t partition, char *key, size_t size)
{
	(void)snprintf(key, size, "%s.checkpoints/%" PRIu32, w->name, partition);
}

void work_rename(struct weir_work *w)
{
	w->id = fleet_draw(w->fleet, 0) | 1;
	w->joined = false;
	(void)snprintf(w->own_key, sizeof(w->own_key), "%s/worker/%016" PRIx64, w->name, w->id);
}

/* The last one is worth the remainder. */
uint64_t partition_worth(const struct weir_work *w, uint32_t partition)
{
	const uint64_t before = (uint64_t)partition * w->config.factor;
	const uint64_t rest = w->config.capacity - before;

	return rest < w->config.factor ? rest : w->config.factor;
}

uint64_t weir_work_units(const struct weir_work *w)
{
	uint64_t units = w->config.reserved;

	if (w->config.strategy != WEIR_WORK_WANTED)
		return units;
	for (uint32_t i = 0; i < w->config.count; i++)
		if (weir_work_fence(w, i) != 0)
			units += partition_worth(w, i);
	return units;
}

int weir_work_demand_set(struct weir_work *w, uint64_t units)
{
	if (w->config.strategy != WEIR_WORK_WANTED || units > WEIR_SHARE_UNITS_MAX)
		return -EINVAL;
	atomic_store_explicit(&w->want, units, RELAXED);
	return 0;
}

/* A checkpoint as it is read, and the owner of its partition at that time. */
struct loading {
	const char *key, *owner_key; /* owner_key: NULL if not needed */
	uint64_t sequence, version;  /* version of the checkpoint's row; 0: none */
	uint64_t owner_made;         /* commit that created the owner's row; 0: none */
	char *value;
	size_t room, size;
	int result;
};

#define CHECKPOINT_HEAD "weir-checkpoint 1 "

bool checkpoint_read(const struct weir_store_row *row, uint64_t *sequence, const char **value,
		     size_t *size)
{
	const size_t head = strlen(CHECKPOINT_HEAD);
	const char *text = row->value, *line = memchr(text, '\n', row->size);
	char *end;

	if (line == NULL || row->size <= head || memcmp(text, CHECKPOINT_HEAD, head) != 0 ||
	    text[head] < '0' || text[head] > '9')
		return false;
	errno = 0;
	*sequence = strtoull(text + head, &end, 10);
	if (errno != 0 || end != line)
		return false;
	*value = line + 1;
	*size = row->size - (size_t)(line + 1 - text);
	return true;
}

static void load_row(struct loading *l, const struct weir_store_row *row)
{
	const char *value;

	l->result = -EPROTO;
	if (!checkpoint_read(row, &l->sequence, &value, &l->size))
		return;
	l->version = row->version;
	l->result = l->size <= l->room ? 0 : -EMSGSIZE;
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
	char key[WEIR_SHARE_NAME_MAX + 32];
	struct loading l = {.key = key, .value = value, .room = *size};
	int r;

	*sequence = 0;
	if (partition >= w->config.count)
		return -EINVAL;
	checkpoint_key(w, partition, key, sizeof(key));
	r = load(w, &l);
	*size = l.size;
	*sequence = l.sequence;
	return r;
}

/* A checkpoint to be written, and the rows that decide whether it may be. */
struct checkpoint {
	struct weir_work *work;
	struct partition *partition;
	char key[WEIR_SHARE_NAME_MAX + 32], owner_key[WEIR_SHARE_NAME_MAX + 32];
	uint64_t fence, sequence;
	const void *value;
	size_t size;
};

/*
 * The last checkpoint is read once for each fence, and again after each write that was not
 * acknowledged.
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

	if (c->partition->sequence_fence == c->fence)
		return 0;
	r = load(c->work, &l);
	if (r != 0 && r != -ENOENT)
		return r;
	if (l.owner_made != c->fence)
		return -ESTALE;
	c->partition->sequence = l.sequence;
	c->partition->sequence_version = l.version;
	c->partition->sequence_fence = c->fence;
	return 0;
}

/*
 * Each write replaces exactly the version of the row that was known when it was sent. So at most
 * one of two concurrent writes happens, and a write that arrives late, after another was
 * acknowledged, finds that version gone.
 */
static int write_checkpoint(const struct checkpoint *c)
{
	char text[WEIR_CHECKPOINT_SIZE_MAX + 64];
	const int head = snprintf(text, sizeof(text), CHECKPOINT_HEAD "%" PRIu64 "\n", c->sequence);
	const uint64_t known = c->partition->sequence_version;
	const struct weir_store_check checks[] = {
		{c->owner_key, WEIR_STORE_CHECK_MADE, c->fence},
		{c->key, known != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, known},
	};
	const struct weir_store_write write = {c->key, WEIR_STORE_WRITE_PUT, text,
					       (size_t)head + c->size};
	uint64_t version;
	int r;

	if (c->size > 0)
		memcpy(text + head, c->value, c->size);
	r = weir_store_commit(c->work->fleet->store, 0, checks, 2, &write, 1, &version);
	if (r == 0) {
		c->partition->sequence = c->sequence;
		c->partition->sequence_version = version;
	} else {
		c->partition->sequence_fence = 0;
	}
	return r;
}

static int try_checkpoint(const struct checkpoint *c)
{
	int r = read_sequence(c);

	if (r != 0)
		return r;
	return c->sequence >= c->partition->sequence ? write_checkpoint(c) : -ERANGE;
}

/* Only late writes of this owner can conflict, each of them once. */
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

	if (partition >= w->config.count || (value == NULL && size > 0))
		return -EINVAL;
	if (size > WEIR_CHECKPOINT_SIZE_MAX)
		return -EMSGSIZE;
	if (fence == 0)
		return -ESTALE;
	c.partition = &w->partitions[partition];
	partition_key(w, "partition", partition, c.owner_key, sizeof(c.owner_key));
	checkpoint_key(w, partition, c.key, sizeof(c.key));
	fair_lock_take(&w->checkpoints);
	r = retry_checkpoint(&c);
	fair_lock_release(&w->checkpoints);
	if (r == -ESTALE)
		partition_refuse(w, partition, fence);
	return r;
}

static uint64_t count_of(const struct weir_work_config *c)
{
	if (c->strategy != WEIR_WORK_WANTED)
		return c->count;
	return c->factor > 0 ? c->capacity / c->factor + (c->capacity % c->factor > 0) : 0;
}

static int check_config(const struct weir_work_config *c, char *why)
{
	const uint64_t count = c->size == sizeof(*c) ? count_of(c) : 0;

	if (c->size != sizeof(*c))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	if (!fleet_is_name(c->name))
		return store_say(-EINVAL, why,
				 "name must consist of 1 to %d letters, digits and -_.:@.",
				 WEIR_SHARE_NAME_MAX);
	if ((unsigned)c->strategy > WEIR_WORK_WANTED)
		return store_say(-EINVAL, why, "strategy is unknown.");
	if (c->strategy == WEIR_WORK_WANTED && (c->count != 0 || c->factor == 0))
		return store_say(-EINVAL, why,
				 "With WEIR_WORK_WANTED, count must be 0 and factor must not.");
	if (c->strategy != WEIR_WORK_WANTED &&
	    (c->capacity != 0 || c->factor != 0 || c->reserved != 0))
		return store_say(-EINVAL, why,
				 "capacity, factor and reserved require WEIR_WORK_WANTED.");
	if (c->capacity > WEIR_SHARE_UNITS_MAX || c->reserved > WEIR_SHARE_UNITS_MAX)
		return store_say(-EINVAL, why, "capacity or reserved is above 2^53.");
	if (count == 0 || count > WEIR_WORK_MAX)
		return store_say(-EINVAL, why,
				 "The number of partitions is %llu, not from 1 to %d.",
				 (unsigned long long)count, WEIR_WORK_MAX);
	return 0;
}

static struct weir_work *make(struct weir_fleet *f, const struct weir_work_config *c)
{
	const uint32_t count = (uint32_t)count_of(c);
	struct weir_work *w = calloc(1, sizeof(*w) + count * sizeof(w->partitions[0]));

	if (w == NULL)
		return NULL;
	w->participant.ops = &work_ops;
	w->fleet = f;
	w->config = *c;
	w->config.count = count;
	if (w->config.handover == 0)
		w->config.handover = 2 * f->refresh;
	(void)snprintf(w->name, sizeof(w->name), "%s", c->name);
	w->config.name = w->name;
	(void)snprintf(w->kind_key, sizeof(w->kind_key), "%s/partitions", w->name);
	w->lease = f->lease;
	w->participant.longest = WEIR_FOREVER;
	for (uint32_t i = 0; i < count; i++)
		atomic_init(&w->partitions[i].end, WEIR_FOREVER);
	fair_lock_init(&w->checkpoints);
	work_rename(w);
	return w;
}

static int add(struct weir_fleet *f, const struct weir_work_config *c, struct weir_work **work,
	       char *why)
{
	struct weir_work *w;

	for (struct participant *at = f->participants; at != NULL; at = at->next)
		if (at->ops == &work_ops && strcmp(((struct weir_work *)at)->name, c->name) == 0)
			return store_say(-EEXIST, why,
					 "This process has these partitions open already.");
	if (f->participant_count == WEIR_WORK_FLEET_MAX)
		return store_say(-ENOSPC, why,
				 "This process has %d sets of partitions open, the maximum.",
				 WEIR_WORK_FLEET_MAX);
	if (participants_watch(f) != 0)
		return store_say(-ENOMEM, why, "Starting a thread failed.");
	w = make(f, c);
	if (w == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	participant_join(f, &w->participant);
	*work = w;
	return 0;
}

int weir_work_open(struct weir_fleet *f, const struct weir_work_config *config,
		   struct weir_work **work, char *why, size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = check_config(config, text);

	*work = NULL;
	if (r == 0) {
		fair_lock_take(&f->lock);
		r = add(f, config, work, text);
		fair_lock_release(&f->lock);
	}
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

void work_free(struct weir_work *w)
{
	fair_lock_destroy(&w->checkpoints);
	free(w->members);
	free(w);
}
