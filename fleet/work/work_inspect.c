/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions from outside: their owners, and how far the work on them has come. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/work/work.h"

struct worker {
	uint64_t id;
	struct worker_record record;
};

struct inspection {
	struct weir_work_partition *partitions; /* WEIR_WORK_MAX elements */
	char (*rewinders)[LABEL_ROOM];          /* the same */
	const char *name;
	struct worker *workers;
	size_t count, room;
	uint32_t rows;
	int result;
};

/* Parse the number of a partition. False: not a valid one. */
static bool number_of(const char *text, uint32_t *partition)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	*partition = (uint32_t)n;
	return *end == '\0' && text[0] >= '0' && text[0] <= '9' && n < WEIR_WORK_MAX;
}

static bool take_checkpoint(struct inspection *l, uint32_t i, const struct weir_store_row *row)
{
	struct weir_work_partition *partition = &l->partitions[i];
	struct checkpoint_record record;
	const char *value;

	if (!checkpoint_parse(row->value, row->size, &record, &value))
		return false;
	partition->checkpoints = !record.none;
	partition->sequence = record.sequence;
	partition->size = row->size - (size_t)(value - (const char *)row->value);
	partition->rewinds = record.rewinds;
	partition->rewound_at = record.when;
	memcpy(l->rewinders[i], record.who, LABEL_ROOM);
	return true;
}

static bool take_owner(struct inspection *l, uint32_t i, const struct weir_store_row *row)
{
	struct owner_record owner;

	if (!owner_parse(row->value, row->size, &owner))
		return false;
	l->partitions[i].fence = row->made;
	l->partitions[i].owner = owner.id;
	l->partitions[i].units = owner.units;
	return true;
}

static int take_worker(struct inspection *l, const char *number, const struct weir_store_row *row)
{
	struct worker worker;

	if (!partition_read_id(number, strlen(number), '\0', &worker.id) ||
	    !worker_parse(row->value, row->size, &worker.record))
		return -EPROTO;
	if (l->count == l->room) {
		const size_t room = l->room > 0 ? 2 * l->room : 16;
		struct worker *workers = realloc(l->workers, room * sizeof(*workers));

		if (workers == NULL)
			return -ENOMEM;
		l->workers = workers;
		l->room = room;
	}
	l->workers[l->count++] = worker;
	return 0;
}

static bool take(void *arg, const struct weir_store_row *row)
{
	struct inspection *l = arg;
	const char *rest = row->key + strlen(l->name);
	uint32_t i;
	bool good;

	l->rows++;
	if (strncmp(rest, "/worker/", 8) == 0) {
		l->result = take_worker(l, rest + 8, row);
		return l->result == 0;
	}
	if (!number_of(strrchr(row->key, '/') + 1, &i))
		good = false;
	else if (strncmp(rest, "/partition/", 11) == 0)
		good = take_owner(l, i, row);
	else if (strncmp(rest, "/request/", 9) == 0)
		good = partition_read_id(row->value, row->size, '\n', &l->partitions[i].requester);
	else
		good = take_checkpoint(l, i, row);
	if (!good)
		l->result = -EPROTO;
	return good;
}

static int read_partitions(struct weir_store *store, struct inspection *l)
{
	static const char *const kinds[] = {"/worker/", "/partition/", "/request/",
					    ".checkpoints/"};
	char prefix[4][KEY_ROOM];
	const char *prefixes[4];
	int r;

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(prefix[i], KEY_ROOM, "%s%s", l->name, kinds[i]);
		prefixes[i] = prefix[i];
	}
	r = weir_store_read(store, prefixes, 4, take, l, NULL);
	if (r != 0 || l->result != 0)
		return r != 0 ? r : l->result;
	return l->rows > 0 ? 0 : -ENOENT;
}

static const char *label_of(const struct inspection *l, uint64_t id)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->workers[i].id == id)
			return l->workers[i].record.label;
	return "";
}

/* 0: it is not there. */
static uint32_t weight_of(const struct inspection *l, uint64_t id)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->workers[i].id == id)
			return l->workers[i].record.weight;
	return 0;
}

static void show(const struct inspection *l,
		 bool (*visit)(void *arg, const struct weir_work_partition *partition), void *arg)
{
	for (uint32_t i = 0; i < WEIR_WORK_MAX; i++) {
		struct weir_work_partition *partition = &l->partitions[i];

		partition->partition = i;
		partition->owner_label = label_of(l, partition->owner);
		partition->requester_label = label_of(l, partition->requester);
		partition->owner_weight = weight_of(l, partition->owner);
		partition->rewound_by = l->rewinders[i];
		if ((partition->fence != 0 || partition->requester != 0 ||
		     partition->checkpoints != 0 || partition->rewinds != 0) &&
		    !visit(arg, partition))
			return;
	}
}

int weir_work_inspect(struct weir_store *store, const char *name, uint32_t *workers,
		      bool (*visit)(void *arg, const struct weir_work_partition *partition),
		      void *arg)
{
	struct inspection l = {.name = name};
	int r;

	if (!fleet_is_name(name))
		return -EINVAL;
	l.partitions = calloc(WEIR_WORK_MAX, sizeof(*l.partitions));
	l.rewinders = calloc(WEIR_WORK_MAX, sizeof(*l.rewinders));
	r = l.partitions != NULL && l.rewinders != NULL ? read_partitions(store, &l) : -ENOMEM;
	if (r == 0 && workers != NULL)
		*workers = (uint32_t)l.count;
	if (r == 0 && visit != NULL)
		show(&l, visit, arg);
	free(l.workers);
	free(l.rewinders);
	free(l.partitions);
	return r;
}
