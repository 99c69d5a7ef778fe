/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_top_past.c - what limits and members had, for their bars.
 */
#include "fleet_top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void lines_clear(struct lines *l)
{
	free(l->at);
	*l = (struct lines){.count = 0};
}

struct line *line_named(const struct lines *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->at[i].name, name) == 0)
			return &l->at[i];
	return NULL;
}

/* Without memory there is no past. */
static void line_add(struct lines *l, const char *name, const struct point *point)
{
	struct line *line = line_named(l, name), *larger;

	if (line == NULL) {
		larger = realloc(l->at, (l->count + 1) * sizeof(*larger));
		if (larger == NULL)
			return;
		l->at = larger;
		line = &larger[l->count++];
		*line = (struct line){.seen = false};
		snprintf(line->name, sizeof(line->name), "%s", name);
	}
	line->seen = true;
	past_add(&line->past, point);
}

static void lines_forget_the_gone(struct lines *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (!l->at[i].seen)
			continue;
		l->at[kept] = l->at[i];
		l->at[kept++].seen = false;
	}
	l->count = kept;
}

/* What is lacking stands out, as refusals do. */
static struct point point_of(uint64_t most, uint64_t has, uint64_t wants)
{
	return (struct point){
		.limit = most,
		.inflight = has,
		.rates = {.rejected = wants > has ? (double)(wants - has) : 0},
	};
}

uint64_t shares_of(const struct fleet_reading *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->member_count; i++)
		if (r->members[i].fence != 0)
			sum += fleet_share(&r->members[i]);
	return sum;
}

const char *member_name(const struct weir_fleet_member *member, char *text, size_t size)
{
	if (member->id != 0)
		snprintf(text, size, "%016" PRIx64, member->id);
	else
		snprintf(text, size, "-"); /* a drained label that no member has */
	return text;
}

void watch_remember_limits(struct watch *top)
{
	for (size_t i = 0; i < top->limits.count; i++) {
		const struct weir_fleet_limit *l = &top->limits.at[i].limit;
		const struct point point = point_of(l->effective, l->granted, l->wanted);

		line_add(&top->limit_lines, top->limits.at[i].name, &point);
	}
	lines_forget_the_gone(&top->limit_lines);
}

void watch_remember_members(struct watch *top, const struct fleet_reading *r)
{
	struct point point = point_of(r->limit.effective, shares_of(r), r->limit.wanted);
	char name[20];

	line_add(&top->member_lines, "all", &point);
	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_fleet_member *m = &r->members[i];

		if (m->fence == 0)
			continue;
		point = point_of(r->limit.effective, fleet_share(m), m->wants);
		line_add(&top->member_lines, member_name(m, name, sizeof(name)), &point);
	}
	lines_forget_the_gone(&top->member_lines);
}
