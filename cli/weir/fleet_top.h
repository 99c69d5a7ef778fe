/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_top.h - what the files of weir fleet top share.
 */
#ifndef FLEET_TOP_H
#define FLEET_TOP_H

#include "fleet.h"
#include "live.h"

/* The history of a limit, by its name, or of a member, by its number. */
struct line {
	char name[WEIR_SHARE_NAME_MAX + 1];
	struct past past;
	bool seen;
};

struct lines {
	struct line *at;
	size_t count;
};

/* What is shown, and how. */
struct watch {
	struct live live;
	struct weir_store *store;
	const char *asked; /* NULL: all */

	struct fleet_readings limits; /* all */
	struct lines limit_lines;

	struct fleet_readings detail; /* the chosen one; empty if it could not be read */
	struct lines member_lines;    /* the first one is the sum */
};

/* NULL if there is none of that name. */
struct line *line_named(const struct lines *lines, const char *name);
void lines_clear(struct lines *lines);

/* Add the latest reading to the history: of all limits, or of one limit and its members. */
void watch_remember_limits(struct watch *top);
void watch_remember_members(struct watch *top, const struct fleet_reading *reading);

/* The name under which a member's history is kept. */
const char *member_name(const struct weir_fleet_member *member, char *text, size_t size);

/* The sum of all members' shares. */
uint64_t shares_of(const struct fleet_reading *reading);

void watch_draw_header(void *arg, struct page *page);
void watch_draw_row(void *arg, const char *name, struct page *page);
void watch_draw_sum(void *arg, struct page *page);
void watch_draw_members(void *arg, struct page *page);

#endif
