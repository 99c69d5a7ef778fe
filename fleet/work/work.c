/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions: opening, and their worth. */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/store/store.h"

#define RELAXED memory_order_relaxed

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

void work_rename(struct weir_work *w)
{
	w->id = fleet_draw(w->fleet, 0) | 1;
	w->joined = false;
	(void)snprintf(w->own_key, sizeof(w->own_key), "%s/worker/%016" PRIx64, w->name, w->id);
}

void work_use(struct weir_work *w, uint32_t count)
{
	if (count > work_used(w))
		atomic_store_explicit(&w->used, count, RELAXED);
}

uint64_t work_count(uint64_t capacity, uint64_t factor)
{
	return factor > 0 ? capacity / factor + (capacity % factor > 0) : 0;
}

/* The last one is worth the remainder. */
uint64_t partition_worth(const struct weir_work *w, uint32_t partition)
{
	const uint64_t before = (uint64_t)partition * w->config.factor;
	const uint64_t rest = w->config.capacity - before;

	return rest < w->config.factor ? rest : w->config.factor;
}

/*
 * If a partition is gained meanwhile, another that was counted already may have been given up for
 * it.
 */
uint64_t weir_work_units(const struct weir_work *w)
{
	uint64_t units, gained, before;

	if (w->config.strategy != WEIR_WORK_WANTED)
		return w->config.reserved;
	gained = atomic_load_explicit(&w->gained, RELAXED);
	do {
		before = gained;
		units = w->config.reserved;
		for (uint32_t i = 0; i < work_used(w); i++)
			if (weir_work_fence(w, i) != 0)
				units += atomic_load_explicit(&w->partitions[i].units, RELAXED);
		gained = atomic_load_explicit(&w->gained, RELAXED);
	} while (gained != before);
	return units;
}

int weir_work_demand_set(struct weir_work *w, uint64_t units)
{
	if (w->config.strategy != WEIR_WORK_WANTED || units > WEIR_SHARE_UNITS_MAX)
		return -EINVAL;
	atomic_store_explicit(&w->want, units, RELAXED);
	return 0;
}

static uint64_t count_of(const struct weir_work_config *c)
{
	return c->strategy == WEIR_WORK_WANTED ? work_count(c->capacity, c->factor) : c->count;
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
	if (c->strategy == WEIR_WORK_WANTED && (c->weight != 0 || c->hold != 0))
		return store_say(
			-EINVAL, why,
			"weight and hold are not for WEIR_WORK_WANTED, which moves nothing.");
	if (c->weight > WEIR_SHARE_WEIGHT_MAX)
		return store_say(-EINVAL, why, "weight is above 2^20.");
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
	const uint32_t slots = c->strategy == WEIR_WORK_WANTED ? WEIR_WORK_MAX : count;
	struct weir_work *w = calloc(1, sizeof(*w) + slots * sizeof(w->partitions[0]));

	if (w == NULL)
		return NULL;
	w->participant.ops = &work_ops;
	w->fleet = f;
	w->config = *c;
	w->config.count = count;
	w->reported = c->reserved;
	w->slots = slots;
	atomic_init(&w->used, count);
	if (w->config.weight == 0)
		w->config.weight = 1;
	if (w->config.handover == 0)
		w->config.handover = 2 * f->refresh;
	(void)snprintf(w->name, sizeof(w->name), "%s", c->name);
	w->config.name = w->name;
	(void)snprintf(w->kind_key, sizeof(w->kind_key), "%s/partitions", w->name);
	w->lease = f->lease;
	w->participant.longest = WEIR_FOREVER;
	for (uint32_t i = 0; i < slots; i++)
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
