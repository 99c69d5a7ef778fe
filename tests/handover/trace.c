/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing a trace. */

#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "fleet/work/work.h"

#define RELAXED memory_order_relaxed

static const char *const state_names[] = {"none", "owned", "asked", "leaving", "over"};

static enum part_state state_of(const struct weir_work *w, uint32_t i)
{
	const struct partition *p = &w->partitions[i];
	const uint64_t fence = atomic_load_explicit(&p->fence, RELAXED);

	if (fence == 0)
		return PART_NONE;
	if (weir_work_fence(w, i) == 0)
		return PART_OVER;
	if (atomic_load_explicit(&p->leave, RELAXED) == fence)
		return PART_LEAVING;
	return p->notified_fence == fence ? PART_ASKED : PART_OWNED;
}

/* Facts about the last fence that the member owned the partition by. */
static void print_facts(const struct weir_work *w, uint32_t i, uint64_t fence, weir_time now)
{
	const struct partition *p = &w->partitions[i];
	const weir_time until = atomic_load_explicit(&w->until, RELAXED);

	printf(until != 0 && now < until ? " lease" : " lease-over");
	if (now >= atomic_load_explicit(&p->end, RELAXED))
		printf(" hand-over-over");
	if (p->requester != 0 && p->requester != w->id)
		printf(" wanted");
	if (atomic_load_explicit(&p->released_fence, RELAXED) == fence)
		printf(" given-up");
	if (atomic_load_explicit(&p->refused, RELAXED) == fence)
		printf(" refused");
	if (p->owner != w->id || p->made != fence)
		printf(" unread");
	if (p->rewound == fence && fence != 0)
		printf(" noted");
	if (p->held_fence == fence && now - p->held_since >= w->config.hold)
		printf(" held");
}

static void print_part(weir_time time, uint32_t i, unsigned process, uint64_t id,
		       enum part_state state, uint64_t fence)
{
	printf("%.6f part %" PRIu32 " %u %" PRIx64 " %s %" PRIu64, (double)time / WEIR_S, i,
	       process, id, state_names[state], fence);
}

/* It owns nothing any more, and has no callbacks. */
static void trace_gone(weir_time time, unsigned process, struct trace_member *last, const char *why)
{
	for (uint32_t i = 0; i < TRACE_PARTITIONS; i++) {
		if (last->states[i] == PART_NONE)
			continue;
		print_part(time, i, process, last->id, PART_NONE, last->fences[i]);
		printf(" %s\n", why);
	}
	if (last->id != 0)
		printf("%.6f %s %u %" PRIx64 "\n", (double)time / WEIR_S, why, process, last->id);
	*last = (struct trace_member){0};
}

static void trace_part(weir_time time, unsigned process, struct trace_member *last,
		       const struct weir_work *w, uint32_t i, weir_time now)
{
	const uint64_t fence = atomic_load_explicit(&w->partitions[i].fence, RELAXED);
	const enum part_state state = state_of(w, i);
	const uint64_t given = atomic_load_explicit(&w->partitions[i].released_fence, RELAXED);
	const bool gives = state == PART_NONE && given != last->given[i];
	uint64_t shown = fence != 0 ? fence : last->fences[i];

	if (!gives && state == last->states[i] && (state == PART_NONE || fence == last->fences[i]))
		return;
	if (gives)
		shown = given;
	print_part(time, i, process, last->id, state, shown);
	print_facts(w, i, shown, now);
	printf("\n");
	last->states[i] = state;
	last->fences[i] = shown;
	last->given[i] = given;
}

void trace_member(const struct trace *t, weir_time time, unsigned process,
		  struct trace_member *last, const struct weir_work *w, const char *why,
		  weir_time now)
{
	if (!t->on)
		return;
	if (w == NULL) {
		trace_gone(time, process, last, why);
		return;
	}
	/* What it owned under another number it has lost before. */
	if (last->id == 0)
		last->id = w->id;
	for (uint32_t i = 0; i < TRACE_PARTITIONS; i++)
		trace_part(time, process, last, w, i, now);
	last->id = w->id;
}

void trace_begin(struct trace *t)
{
	t->now = (struct trace_rows){.count = 0};
}

static struct trace_line *line_of(struct trace_rows *rows, const char *key)
{
	const unsigned long i = strtoul(strrchr(key, '/') + 1, NULL, 10);

	if (strncmp(key, "work/worker/", 12) == 0) {
		CHECK(rows->count < TRACE_WORKERS);
		return &rows->workers[rows->count++];
	}
	if (strncmp(key, "work/partition/", 15) == 0 && i < TRACE_PARTITIONS)
		return &rows->rows[i];
	if (strncmp(key, "work/request/", 13) == 0 && i < TRACE_PARTITIONS)
		return &rows->requests[i];
	if (strncmp(key, "work/rewound/", 13) == 0 && i < TRACE_PARTITIONS)
		return &rows->rewound[i];
	if (strncmp(key, "work.checkpoints/", 17) == 0 && i < TRACE_PARTITIONS)
		return &rows->checkpoints[i];
	return NULL;
}

bool trace_row(void *arg, const struct weir_store_row *row)
{
	struct trace *t = arg;
	struct trace_line *line = line_of(&t->now, row->key);
	struct checkpoint_record checkpoint;
	struct owner_record owner;
	const char *value;

	if (line == NULL)
		return true;
	line->made = row->made;
	line->version = row->version;
	if (strncmp(row->key, "work/worker/", 12) == 0) {
		line->member = strtoull(row->key + 12, NULL, 16);
	} else if (row->key[4] == '.') {
		CHECK(checkpoint_parse(row->value, row->size, &checkpoint, &value));
		line->sequence = checkpoint.sequence;
	} else if (strncmp(row->key, "work/partition/", 15) == 0) {
		CHECK(owner_parse(row->value, row->size, &owner));
		line->member = owner.id;
	} else if (strncmp(row->key, "work/rewound/", 13) == 0) {
		CHECK(partition_read_rewound(row, &line->fence));
	} else {
		CHECK(partition_read_id(row->value, row->size, '\n', &line->member));
	}
	return true;
}

/* One row gone and another made is two changes. */
static void print_owner(weir_time time, const char *what, unsigned i, const struct trace_line *last,
			const struct trace_line *now, const char *cause)
{
	if (last->made == now->made)
		return;
	if (last->made != 0)
		printf("%.6f %s %u - %" PRIu64 " %s\n", (double)time / WEIR_S, what, i, last->made,
		       cause);
	if (now->made != 0)
		printf("%.6f %s %u %" PRIx64 " %" PRIu64 " %s\n", (double)time / WEIR_S, what, i,
		       now->member, now->made, cause);
}

static bool has_worker(const struct trace_rows *rows, uint64_t id)
{
	for (unsigned i = 0; i < rows->count; i++)
		if (rows->workers[i].member == id)
			return true;
	return false;
}

static void print_workers(weir_time time, const struct trace *t, const char *cause)
{
	for (unsigned i = 0; i < t->now.count; i++)
		if (!has_worker(&t->last, t->now.workers[i].member))
			printf("%.6f worker %" PRIx64 " %" PRIu64 " %s\n", (double)time / WEIR_S,
			       t->now.workers[i].member, t->now.workers[i].made, cause);
	for (unsigned i = 0; i < t->last.count; i++)
		if (!has_worker(&t->now, t->last.workers[i].member))
			printf("%.6f worker %" PRIx64 " 0 %s\n", (double)time / WEIR_S,
			       t->last.workers[i].member, cause);
}

static void print_checkpoint(weir_time time, unsigned i, const struct trace *t, uint64_t fence,
			     const char *cause)
{
	const struct trace_line *now = &t->now.checkpoints[i];

	if (now->version != t->last.checkpoints[i].version)
		printf("%.6f checkpoint %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
		       (double)time / WEIR_S, i, now->sequence, now->version, fence, cause);
}

static void print_rewound(weir_time time, unsigned i, const struct trace *t, const char *cause)
{
	const struct trace_line *last = &t->last.rewound[i], *now = &t->now.rewound[i];

	if (now->version != last->version)
		printf("%.6f rewound %u %" PRIu64 " %" PRIu64 " %s\n", (double)time / WEIR_S, i,
		       now->version != 0 ? now->fence : last->fence, now->version, cause);
}

void trace_end(struct trace *t, weir_time time, const char *cause, uint64_t fence)
{
	for (unsigned i = 0; i < TRACE_PARTITIONS; i++) {
		print_owner(time, "row", i, &t->last.rows[i], &t->now.rows[i], cause);
		print_owner(time, "request", i, &t->last.requests[i], &t->now.requests[i], cause);
		print_checkpoint(time, i, t, fence, cause);
		print_rewound(time, i, t, cause);
	}
	print_workers(time, t, cause);
	t->last = t->now;
}
