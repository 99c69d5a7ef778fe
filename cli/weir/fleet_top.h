/*
 * fleet_top.h - what the parts of weir fleet top share.
 */
#ifndef FLEET_TOP_H
#define FLEET_TOP_H

#include "fleet.h"
#include "limiters.h"

/* Something with a past: a limit, by its name, or a member, by its number. */
struct line {
	char name[WEIR_SHARE_NAME_MAX + 1];
	struct past past;
	bool seen;
};

struct lines {
	struct line *at;
	size_t count;
};

enum view {
	LIST,
	DETAIL,
	HELP,
};

/* What is watched, and how it is shown. */
struct watch {
	struct weir_store *store;
	const char *asked; /* NULL: all */
	weir_dur interval;
	bool unicode, paused;
	enum view view, before; /* before: under the help */
	char why[512];          /* what could not be read; empty: nothing */

	struct fleet_readings limits; /* all */
	struct lines limit_lines;
	char chosen[WEIR_SHARE_NAME_MAX + 1];

	struct fleet_readings detail; /* the chosen one; empty: it could not be read */
	struct lines member_lines;    /* the first one is that of the sum */
	unsigned offset;              /* of the first line that is shown */
};

/* NULL: it has none. */
struct line *line_named(const struct lines *lines, const char *name);
void lines_clear(struct lines *lines);

/* What was read is in the past, too: of all limits, or of one and its members. */
void watch_remember_limits(struct watch *top);
void watch_remember_members(struct watch *top, const struct fleet_reading *reading);

/* Under which a member has its past. */
const char *member_name(const struct weir_fleet_member *member, char *text, size_t size);

/* What all members have together. */
uint64_t shares_of(const struct fleet_reading *reading);

void watch_draw(struct watch *top); /* its offset is kept within what there is */

#endif
