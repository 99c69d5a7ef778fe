/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.h - what the files of weir top share.
 */
#ifndef TOP_H
#define TOP_H

#include "live.h"

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
	struct live live;
	struct limiters limiters;

	/* Of the list. */
	enum sort sort;
	bool ascending;  /* reversed */
	bool partitions; /* shown */
};

/* The time that the bars span: "1m", "30s". */
const char *top_span(const struct top *top, char *text, size_t size);

/* NULL if there is none of that name. */
const struct watched *top_named(const struct top *top, const char *name);

/* The names of the limiters that pass the filter, sorted. */
const char **top_names(void *arg, size_t *count);

void top_draw_header(void *arg, struct page *page);
void top_draw_row(void *arg, const char *name, struct page *page);
void top_draw_detail(void *arg, struct page *page);

#endif
