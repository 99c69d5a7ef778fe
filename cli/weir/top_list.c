/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top_list.c - the list: a line for each limiter and, on request, for each of its partitions.
 */
#include "top.h"

#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "bars.h"

/* Columns to the left of the bars, and of the name. */
#define NUMBERS_WIDTH 53
#define NAME_MIN      13
#define BARS_MIN      12

static double used(const struct point *point)
{
	return point->limit > 0 ? (double)point->inflight / (double)point->limit : 0;
}

static double key_of(const struct watched *w, enum sort sort)
{
	switch (sort) {
	case SORT_LIMIT:
		return w->now.s.limit;
	case SORT_INFLIGHT:
		return w->now.s.inflight;
	case SORT_WAITING:
		return w->now.s.waiting;
	case SORT_RTT:
		return w->now.s.last.window.rtt;
	case SORT_ADMITTED:
		return w->rates.admitted;
	case SORT_REJECTED:
		return w->rates.rejected;
	case SORT_DROPPED:
		return w->rates.dropped;
	case SORT_NAME:
	case SORTS:
		break;
	}
	return 0;
}

/* Figures in descending order, names in ascending order; ties by name. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct watched *x = *(const struct watched *const *)a;
	const struct watched *y = *(const struct watched *const *)b;
	const struct top *top = arg;
	const double by = key_of(y, top->sort) - key_of(x, top->sort);
	int order = by > 0 ? 1 : by < 0 ? -1 : strcmp(x->name, y->name);

	return top->ascending ? -order : order;
}

const char **top_names(void *arg, size_t *count)
{
	const struct top *top = arg;
	const struct watched **listed = calloc(top->limiters.count + 1,
					       sizeof(const struct watched *));
	const char **names = calloc(top->limiters.count + 1, sizeof(*names));

	*count = 0;
	for (size_t i = 0; listed != NULL && names != NULL && i < top->limiters.count; i++)
		if (strstr(top->limiters.at[i].name, top->live.typed) != NULL)
			listed[(*count)++] = &top->limiters.at[i];
	if (*count > 0)
		qsort_r(listed, *count, sizeof(const struct watched *), compare, arg);
	for (size_t i = 0; i < *count; i++)
		names[i] = listed[i]->name;
	free(listed);
	return names;
}

/* The name's width is what the other columns and the bars leave. */
static int name_width(const struct page *page)
{
	int width = page_left(page) - NUMBERS_WIDTH - PAST - 1;
	const int room = page_left(page) - NUMBERS_WIDTH - BARS_MIN - 1;

	if (width < NAME_MIN)
		width = room < NAME_MIN + 2 ? room : NAME_MIN + 2;
	return width < NAME_MIN ? NAME_MIN : width;
}

void top_draw_header(void *arg, struct page *page)
{
	const struct top *top = arg;
	static const struct {
		const char *title;
		int width;
	} columns[] = {
		[SORT_LIMIT] = {"LIMIT", 7},      [SORT_INFLIGHT] = {"INFL", 6},
		[SORT_WAITING] = {"WAIT", 6},     [SORT_RTT] = {"RTT", 8},
		[SORT_ADMITTED] = {"ADMIT/S", 9}, [SORT_REJECTED] = {"REJ/S", 8},
		[SORT_DROPPED] = {"DROP/S", 8},
	};
	char span[16];

	page_line(page, HEADER);
	page_text(page, "%-*s", name_width(page), top->sort == SORT_NAME ? "NAME*" : "NAME");
	for (enum sort i = SORT_LIMIT; i < SORTS; i++) {
		char title[16];

		snprintf(title, sizeof(title), "%s%s", columns[i].title, top->sort == i ? "*" : "");
		page_text(page, "%*s", columns[i].width, title);
	}
	page_text(page, "  USED, %s", top_span(top, span, sizeof(span)));
	page_end(page);
}

static void draw_rates(struct page *page, const struct rates *rates)
{
	char text[3][16];

	page_text(page, " %8s %7s %7s", bars_number(rates->admitted, text[0], sizeof(text[0])),
		  bars_number(rates->rejected, text[1], sizeof(text[1])),
		  bars_number(rates->dropped, text[2], sizeof(text[2])));
}

static void draw_one(const struct top *top, const struct watched *w, struct page *page)
{
	const struct weir_snapshot *s = &w->now.s;
	char text[4][16];
	int width;

	page_line(page, live_style(&top->live, w->name));
	width = name_width(page);
	page_shown(page, w->name, width);
	page_text(page, " %6s %5s %5s %7s", bars_number(s->limit, text[0], sizeof(text[0])),
		  bars_number(s->inflight, text[1], sizeof(text[1])),
		  bars_number(s->waiting, text[2], sizeof(text[2])),
		  bars_duration(s->last.window.rtt, text[3], sizeof(text[3])));
	draw_rates(page, &w->rates);
	page_text(page, "  ");
	live_bars(&top->live, page, &w->past, used, 1);
	page_end(page);
}

static void draw_part(const struct top *top, const struct watched *w, size_t index,
		      struct page *page)
{
	const struct part_reading *part = &w->now.parts[index];
	const struct rates rates = reading_part_rates(watched_before(w), &w->now, part);
	char text[3][16];
	int width;

	page_line(page, PLAIN);
	width = name_width(page);
	page_text(page, "  ");
	page_shown(page, part->name, width - 2);
	page_text(page, " %6s %5s %5s %7s",
		  bars_number(reading_part_most(&w->now, part), text[0], sizeof(text[0])),
		  bars_number(part->s.inflight, text[1], sizeof(text[1])),
		  bars_number(part->s.waiting, text[2], sizeof(text[2])), "");
	draw_rates(page, &rates);
	page_text(page, "  ");
	if (w->part_past != NULL)
		live_bars(&top->live, page, &w->part_past[index], used, 1);
	page_end(page);
}

void top_draw_row(void *arg, const char *name, struct page *page)
{
	const struct top *top = arg;
	const struct watched *w = top_named(top, name);

	if (w == NULL)
		return;
	draw_one(top, w, page);
	for (size_t i = 0; top->partitions && i < w->now.part_count; i++)
		draw_part(top, w, i, page);
}
