/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fleet_reading *add(struct fleet_readings *readings, const char *name)
{
	struct fleet_reading *larger = realloc(readings->at,
					       (readings->count + 1) * sizeof(*readings->at));

	if (larger == NULL)
		return NULL;
	readings->at = larger;
	larger[readings->count] = (struct fleet_reading){.other_version = false};
	weir_fleet_limit_init(&larger[readings->count].limit);
	weir_work_size_init(&larger[readings->count].work);
	snprintf(larger[readings->count].name, sizeof(larger->name), "%s", name);
	return &larger[readings->count++];
}

/* Make room for one more element. False if memory ran out. */
static bool append(void **list, size_t *count, const void *item, size_t size)
{
	char *larger = realloc(*list, (*count + 1) * size);

	if (larger == NULL)
		return false;
	memcpy(larger + *count * size, item, size);
	*list = larger;
	++*count;
	return true;
}

/* Keep a copy, since visited text is valid during the visit only. NULL if memory ran out. */
static const char *keep(struct fleet_reading *r, const char *text)
{
	const size_t size = strlen(text) + 1;
	struct kept *kept = malloc(sizeof(*kept) + size);

	if (kept == NULL)
		return NULL;
	memcpy(kept->text, text, size);
	kept->next = r->labels;
	r->labels = kept;
	return kept->text;
}

static bool add_member(void *arg, const struct weir_fleet_member *member)
{
	struct fleet_reading *r = arg;
	struct weir_fleet_member own = *member;
	void *list = r->members;

	own.label = keep(r, member->label);
	own.mismatch = keep(r, member->mismatch);
	own.reason = keep(r, member->reason);
	r->full = own.label == NULL || own.mismatch == NULL || own.reason == NULL ||
		  !append(&list, &r->member_count, &own, sizeof(own));
	r->members = list;
	return !r->full;
}

static bool add_partition(void *arg, const struct weir_work_partition *partition)
{
	struct fleet_reading *r = arg;
	struct weir_work_partition own = *partition;
	void *list = r->partitions;

	own.owner_label = keep(r, partition->owner_label);
	own.requester_label = keep(r, partition->requester_label);
	own.rewound_by = keep(r, partition->rewound_by);
	r->full = own.owner_label == NULL || own.requester_label == NULL ||
		  own.rewound_by == NULL || !append(&list, &r->partition_count, &own, sizeof(own));
	r->partitions = list;
	r->owned += partition->owner != 0;
	r->checkpoints += partition->checkpoints;
	return !r->full;
}

static void forget(struct fleet_reading *r)
{
	for (struct kept *kept = r->labels, *next; kept != NULL; kept = next) {
		next = kept->next;
		free(kept);
	}
	free(r->members);
	free(r->partitions);
}

int fleet_read(struct weir_store *store, const char *name, struct fleet_readings *readings)
{
	struct fleet_reading *reading = add(readings, name);
	int r = -ENOMEM, partitions = 0;

	if (reading == NULL)
		return r;
	r = weir_fleet_inspect(store, name, &reading->limit, add_member, reading);
	if ((r == 0 && !reading->full) || r == -ENOENT)
		partitions = weir_work_inspect(store, name, &reading->workers, add_partition,
					       reading);
	if (partitions == 0 && weir_work_size_take(store, name, &reading->work) != 0)
		weir_work_size_init(&reading->work);
	if (r == -ENOENT || (partitions != 0 && partitions != -ENOENT))
		r = partitions;
	if (reading->full)
		r = -ENOMEM;
	if (r != 0) {
		forget(reading);
		readings->count--;
	}
	return r;
}

struct all {
	struct fleet_readings *readings;
	bool full;
};

static bool add_entry(void *arg, const struct weir_fleet_entry *entry)
{
	struct all *all = arg;
	struct fleet_reading *reading = add(all->readings, entry->name);

	all->full = reading == NULL;
	if (all->full)
		return false;
	if (entry->limit != NULL)
		reading->limit = *entry->limit;
	reading->other_version = entry->other_version != 0;
	reading->workers = entry->workers;
	reading->owned = entry->owned;
	reading->checkpoints = entry->checkpoints;
	return true;
}

int fleet_read_all(struct weir_store *store, struct fleet_readings *readings)
{
	struct all all = {.readings = readings};
	int r = weir_fleet_list(store, add_entry, &all);

	return all.full ? -ENOMEM : r;
}

void fleet_forget(struct fleet_readings *readings)
{
	for (size_t i = 0; i < readings->count; i++)
		forget(&readings->at[i]);
	free(readings->at);
	*readings = (struct fleet_readings){.count = 0};
}

/* Templates that are being read. */
struct template_list {
	struct fleet_templates *templates;
	bool full;
};

static bool add_template(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	struct template_list *list = arg;
	struct fleet_template_reading reading = {.limit = *limit};
	void *at = list->templates->at;

	snprintf(reading.pattern, sizeof(reading.pattern), "%s", pattern);
	list->full = !append(&at, &list->templates->count, &reading, sizeof(reading));
	list->templates->at = at;
	return !list->full;
}

int fleet_templates_read(struct weir_store *store, struct fleet_templates *templates)
{
	struct template_list list = {.templates = templates};
	int r = weir_fleet_template_list(store, add_template, &list);

	return list.full ? -ENOMEM : r;
}

void fleet_templates_forget(struct fleet_templates *templates)
{
	free(templates->at);
	*templates = (struct fleet_templates){.count = 0};
}

uint64_t fleet_share(const struct weir_fleet_member *member)
{
	return member->drained == 0 ? member->reserved + member->grant : member->grant;
}

bool fleet_is_surplus(const struct weir_fleet_limit *limit, const struct weir_fleet_member *member)
{
	return limit->reserved > 0 && member->reserved == 0 && member->fence != 0;
}
