/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the rows of partitions from the store. */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/refresh.h"

#define KINDS 5 /* of rows */

static bool add_member(struct weir_work *w, uint64_t id, uint32_t weight)
{
	if (w->count == w->room) {
		const size_t room = w->room > 0 ? 2 * w->room : 16;
		struct balance_member *members = realloc(w->members, room * sizeof(*members));

		if (members == NULL)
			return false;
		w->members = members;
		w->room = room;
	}
	w->members[w->count++] = (struct balance_member){id, weight};
	return true;
}

bool partition_read_id(const char *text, size_t size, char after, uint64_t *id)
{
	char copy[20], *end;

	if (size == 0 || size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	errno = 0;
	*id = strtoull(copy, &end, 16);
	return errno == 0 && end != copy && *end == after && *id != 0;
}

/* A reading in progress, and its error. */
struct reading {
	struct weir_work *work;
	int result;
};

/*
 * The number of a partition. False: not a number. One of a member that is configured with more of
 * them is not below slots.
 */
static bool read_number(const char *text, unsigned long *i)
{
	char *end;

	*i = strtoul(text, &end, 10);
	return *end == '\0' && end != text;
}

static int take_request(struct weir_work *w, const char *number, const struct weir_store_row *row)
{
	unsigned long i;
	uint64_t id;

	if (!read_number(number, &i) || !partition_read_id(row->value, row->size, '\n', &id))
		return -EPROTO;
	if (i >= w->slots)
		return 0;
	w->partitions[i].requester = id;
	w->partitions[i].request_made = row->made;
	return 0;
}

/* Units that a row does not name may be any: no other member claims one as long as it is there. */
static int take_owner(struct weir_work *w, const char *number, const struct weir_store_row *row)
{
	struct owner_record owner;
	struct partition *partition;
	unsigned long i;

	if (!read_number(number, &i) || !owner_parse(row->value, row->size, &owner))
		return -EPROTO;
	w->rows++;
	if (i >= w->slots)
		return 0;
	work_use(w, (uint32_t)i + 1);
	partition = &w->partitions[i];
	partition->owner = owner.id;
	partition->made = row->made;
	partition->from = owner.from;
	partition->worth = owner.units > 0 ? owner.units : WEIR_SHARE_UNITS_MAX;
	return 0;
}

bool partition_read_rewound(const struct weir_store_row *row, uint64_t *fence)
{
	char text[24], *end;

	if (row->size == 0 || row->size >= sizeof(text))
		return false;
	memcpy(text, row->value, row->size);
	text[row->size] = '\0';
	errno = 0;
	*fence = strtoull(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && strcmp(end, "\n") == 0;
}

static int take_rewound(struct weir_work *w, const char *number, const struct weir_store_row *row)
{
	unsigned long i;
	uint64_t fence;

	if (!read_number(number, &i) || !partition_read_rewound(row, &fence))
		return -EPROTO;
	if (i >= w->slots)
		return 0;
	w->partitions[i].rewound = fence;
	w->partitions[i].rewound_version = row->version;
	return 0;
}

static int take_kind(struct weir_work *w, const struct weir_store_row *row)
{
	w->kind_version = row->version;
	return work_parse(row->value, row->size, &w->kind) ? 0 : -EPROTO;
}

static int take_worker(struct weir_work *w, const char *number, const struct weir_store_row *row)
{
	struct worker_record worker;
	uint64_t id;

	if (!partition_read_id(number, strlen(number), '\0', &id) ||
	    !worker_parse(row->value, row->size, &worker))
		return -EPROTO;
	if (id == w->id)
		w->own_made = row->made;
	return add_member(w, id, worker.weight) ? 0 : -ENOMEM;
}

static bool take_row(void *arg, const struct weir_store_row *row)
{
	struct reading *r = arg;
	struct weir_work *w = r->work;
	const char *rest = row->key + strlen(w->name) + 1;

	if (strncmp(rest, "partition/", 10) == 0)
		r->result = take_owner(w, rest + 10, row);
	else if (strncmp(rest, "request/", 8) == 0)
		r->result = take_request(w, rest + 8, row);
	else if (strncmp(rest, "rewound/", 8) == 0)
		r->result = take_rewound(w, rest + 8, row);
	else if (strncmp(rest, "worker/", 7) == 0)
		r->result = take_worker(w, rest + 7, row);
	else if (strcmp(rest, "partitions") == 0)
		r->result = take_kind(w, row);
	return r->result == 0;
}

static bool is_member(const struct weir_work *w, uint64_t id)
{
	return balance_find(w->members, w->count, id) != NULL;
}

static void clear(struct weir_work *w)
{
	w->count = 0;
	w->own_made = w->kind_version = 0;
	w->rows = 0;
	for (uint32_t i = 0; i < w->slots; i++) {
		struct partition *partition = &w->partitions[i];

		partition->owner = partition->made = partition->requester =
			partition->request_made = 0;
		partition->rewound = partition->rewound_version = 0;
	}
}

/*
 * A request counts only while its member is present. A partition without an owner may be reserved
 * for a request.
 */
static void note_requests(struct weir_work *w)
{
	const weir_time now = fleet_now(w->fleet);

	for (uint32_t i = 0; i < work_used(w); i++) {
		struct partition *partition = &w->partitions[i];

		if (!is_member(w, partition->requester))
			partition->requester = 0;
		if (partition->owner != 0 || partition->requester == 0 ||
		    partition->requester == w->id)
			partition->free_since = 0;
		else if (partition->free_since == 0)
			partition->free_since = now;
	}
}

/*
 * Whether every lease that the store may have forgotten has ended. A store that can forget also
 * forgets how long leases were, so no member has a longer one than learning, which is the same for
 * all.
 */
static void note_proof(struct weir_work *w, weir_time asked, weir_dur proven)
{
	const weir_dur lease = w->kind_version != 0 ? w->kind.lease * WEIR_MS : 0;
	const weir_dur learning = w->fleet->learning;

	if (lease > w->lease)
		w->lease = lease;
	w->learning = proven < (w->lease > learning ? w->lease : learning);
	w->participant.longest = proven != WEIR_FOREVER ? learning : WEIR_FOREVER;
	w->latest = proven != WEIR_FOREVER ? asked + fleet_usable(learning) : WEIR_FOREVER;
}

int work_read(struct weir_work *w, bool keep)
{
	static const char *const kinds[KINDS] = {"worker/", "partition/", "request/", "rewound/",
						 "partitions"};
	struct reading reading = {.work = w};
	char prefix[KINDS][PARTITION_KEY_SIZE];
	const char *prefixes[KINDS];
	const weir_time asked = fleet_now(w->fleet);
	struct weir_store_view view;
	int r;

	for (size_t i = 0; i < KINDS; i++) {
		(void)snprintf(prefix[i], PARTITION_KEY_SIZE, "%s/%s", w->name, kinds[i]);
		prefixes[i] = prefix[i];
	}
	clear(w);
	r = keep ? session_read(w->fleet, prefixes, KINDS, take_row, &reading, &view)
		 : weir_store_read(w->fleet->store, prefixes, KINDS, take_row, &reading, &view);
	if (r != 0 || reading.result != 0)
		return r != 0 ? r : reading.result;
	balance_sort(w->members, w->count);
	note_requests(w);
	note_proof(w, asked, view.proven);
	return 0;
}
