/*
 * top.h - what the views of weir top share.
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
	char why[256]; /* what could not be read, last; empty: nothing */

	/* Of the list. */
	enum sort sort;
	bool ascending;         /* against the order that a column has by itself */
	bool partitions;        /* show them */
	char filter[64];        /* in the name; empty: all */
	char chosen[NAME_ROOM]; /* the limiter under the cursor */

	/* Of the details. */
	unsigned offset; /* of the first line that is shown */

	bool paused;
};

/* How long the past of bars is: "1m", "30s". */
const char *top_span(const struct top *top, char *text, size_t size);

/* The one that is chosen; NULL: there is none. */
const struct watched *top_chosen(const struct top *top);

/* Those that are to be listed, in their order: as many as there may be. NULL: no memory. */
const struct watched **top_listed(const struct top *top, size_t *count);

/* What keys do. */
enum view {
	LIST,
	DETAIL,
	HELP,
};

/* What is on the screen, and where keys go. */
struct screen {
	enum view view, before; /* before: under the help */
	bool filtering;         /* the filter is being written */
};

/* Do what the key says. False: the program is to end. */
bool top_press(struct top *top, struct screen *screen, int key);

/* If the one chosen is gone, or not listed, the first one is. */
void top_choose_again(struct top *top);

void top_draw_list(const struct top *top);
void top_draw_detail(struct top *top); /* its offset is kept within what there is */

#endif
