/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.h - what the files of weir top share.
 */
#ifndef TOP_H
#define TOP_H

#include "page.h"

enum sort {
	SORT_NAME,
	SORT_LIMIT,
	SORT_INFLIGHT,
	SORT_WAITING,
	SORT_RTT,
	SORT_ADMITTED,
	SORT_REJECTED,
	SORT_DROPPED,
	SORTS,
};

struct top {
	struct limiters limiters;
	weir_dur interval;
	bool unicode;
	char why[256]; /* what could not be read last; "" if nothing */

	/* Of the list. */
	enum sort sort;
	bool ascending;         /* reversed */
	bool partitions;        /* shown */
	char filter[64];        /* a part of the name; "" for all */
	char chosen[NAME_ROOM]; /* the limiter under the cursor */

	/* Of the details. */
	unsigned offset; /* the first line shown */

	bool paused;
};

/* The time that the bars span: "1m", "30s". */
const char *top_span(const struct top *top, char *text, size_t size);

/* The chosen limiter, or NULL. */
const struct watched *top_chosen(const struct top *top);

/* The limiters that pass the filter, sorted. NULL if memory ran out. */
const struct watched **top_listed(const struct top *top, size_t *count);

/* What the screen shows. */
enum view {
	LIST,
	DETAIL,
	HELP,
};

/* The view, and where keys go. */
struct screen {
	enum view view, before; /* before: under the help */
	bool filtering;         /* the filter is being typed */
};

/* Handle a key. False: the program is to end. */
bool top_press(struct top *top, struct screen *screen, int key);

/* Choose the first limiter listed if the chosen one is no longer listed. */
void top_choose_again(struct top *top);

void top_draw_list(const struct top *top);
void top_draw_detail(struct top *top); /* clamps its offset to the lines there are */

#endif
