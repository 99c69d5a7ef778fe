/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top_detail.c - one limiter: its configuration, figures, history, partitions and processes.
 */
#include "top.h"

#include <inttypes.h>
#include <ncurses.h>
#include <string.h>

#include "bars.h"

static double limit_of(const struct point *p)
{
	return (double)p->limit;
}

static double inflight_of(const struct point *p)
{
	return (double)p->inflight;
}

static double waiting_of(const struct point *p)
{
	return (double)p->waiting;
}

static double rtt_of(const struct point *p)
{
	return p->rtt;
}

static double admitted_of(const struct point *p)
{
	return p->rates.admitted;
}

static double rejected_of(const struct point *p)
{
	return p->rates.rejected;
}

static double dropped_of(const struct point *p)
{
	return p->rates.dropped;
}

static double used(const struct point *p)
{
	return p->limit > 0 ? (double)p->inflight / (double)p->limit : 0;
}

static double highest(const struct past *past, double (*of)(const struct point *))
{
	const struct point *point;
	double most = 0;

	for (unsigned i = 0; (point = past_point(past, i)) != NULL; i++)
		most = of(point) > most ? of(point) : most;
	return most;
}

/* Print text on as many lines as it needs, broken after commas where possible. */
static void draw_algorithm(const char *text, struct page *page)
{
	while (*text != '\0') {
		int left, length;

		page_line(page, PLAIN);
		left = page_left(page);
		length = (int)strnlen(text, (size_t)left);
		while (text[length] != '\0' && length > left / 2 && text[length - 1] != ',')
			length--;
		page_text(page, "%.*s", length, text);
		page_end(page);
		text += length;
	}
}

static void draw_making(const struct watched *w, struct page *page)
{
	static const char *const orders[] = {
		[WEIR_FIFO] = "oldest first",
		[WEIR_LIFO] = "newest first",
		[WEIR_ADAPTIVE] = "oldest first, newest while it stands",
	};
	const struct weir_shm_info *i = &w->now.info;
	char window[2][16], shown[4 * sizeof(w->now.algorithm)];

	draw_algorithm(name_shown(w->now.algorithm, shown, sizeof(shown)), page);
	page_line(page, PLAIN);
	page_text(page, "limit from %" PRIu32 " to %" PRIu32 ", windows of %s to %s", i->limit_min,
		  i->limit_max, bars_duration((double)i->window_min, window[0], sizeof(window[0])),
		  bars_duration((double)i->window_max, window[1], sizeof(window[1])));
	if (i->burst > 0)
		page_text(page, ", %" PRIu32 " more in bursts", i->burst);
	page_text(page, "%s%s", i->shed ? ", sheds by priority" : "",
		  w->now.s.shadow ? ", SHADOW MODE" : "");
	page_end(page);
	page_line(page, PLAIN);
	if (i->queue > 0 && i->order <= WEIR_ADAPTIVE)
		page_text(page, "queue of %" PRIu32 ", %s", i->queue, orders[i->order]);
	else
		page_text(page, "no queue");
	page_text(page,
		  "; %" PRIu32 " of %" PRIu32 " processes, %" PRIu64 " reaped with %" PRIu64
		  " permits",
		  i->attached, i->members, i->deaths, i->reaped + i->found);
	page_end(page);
}

static void draw_chart(const struct top *top, const struct watched *w, struct page *page,
		       const char *title, double (*of)(const struct point *), bool duration)
{
	const struct point *now = past_point(&w->past, 0);
	/* Calls in flight are drawn on the scale of the limit. */
	const double most = highest(&w->past, of == inflight_of ? limit_of : of);
	char text[2][16];

	page_line(page, PLAIN);
	page_text(page, "%-10s", title);
	if (duration)
		page_text(page, "%9s %9s  ", bars_duration(of(now), text[0], sizeof(text[0])),
			  bars_duration(highest(&w->past, of), text[1], sizeof(text[1])));
	else
		page_text(page, "%9s %9s  ", bars_number(of(now), text[0], sizeof(text[0])),
			  bars_number(highest(&w->past, of), text[1], sizeof(text[1])));
	live_bars(&top->live, page, &w->past, of, most);
	page_end(page);
}

static void draw_charts(const struct top *top, const struct watched *w, struct page *page)
{
	char span[16];

	page_line(page, HEADER);
	page_text(page, "%-10s%9s %9s  LAST %s", "", "NOW", "HIGHEST",
		  top_span(top, span, sizeof(span)));
	page_end(page);
	draw_chart(top, w, page, "limit", limit_of, false);
	draw_chart(top, w, page, "in flight", inflight_of, false);
	draw_chart(top, w, page, "waiting", waiting_of, false);
	draw_chart(top, w, page, "rtt", rtt_of, true);
	draw_chart(top, w, page, "admit/s", admitted_of, false);
	draw_chart(top, w, page, "reject/s", rejected_of, false);
	draw_chart(top, w, page, "drop/s", dropped_of, false);
}

/* The algorithm's own figures. */
static void draw_numbers(const struct watched *w, struct page *page)
{
	const struct weir_report *last = &w->now.s.last;

	if (last->count == 0 || last->names == NULL)
		return;
	page_line(page, PLAIN);
	for (uint32_t i = 0; i < last->count; i++)
		page_text(page, "%s%s %.4g", i > 0 ? ", " : "", last->names[i], last->numbers[i]);
	page_end(page);
}

static void draw_part(const struct top *top, const struct watched *w, size_t index,
		      struct page *page)
{
	const struct part_reading *part = &w->now.parts[index];
	const struct rates rates = reading_part_rates(watched_before(w), &w->now, part);
	char text[6][16];

	page_line(page, PLAIN);
	page_shown(page, part->name, 14);
	page_text(page, " %5.3g %5s %5s %5s %5s %8s %7s", part->s.share,
		  bars_number(part->s.guarantee, text[0], sizeof(text[0])),
		  bars_number(reading_part_most(&w->now, part), text[1], sizeof(text[1])),
		  bars_number(part->s.inflight, text[2], sizeof(text[2])),
		  bars_number(part->s.waiting, text[3], sizeof(text[3])),
		  bars_number(rates.admitted, text[4], sizeof(text[4])),
		  bars_number(rates.rejected, text[5], sizeof(text[5])));
	page_text(page, "  ");
	if (w->part_past != NULL)
		live_bars(&top->live, page, &w->part_past[index], used, 1);
	page_end(page);
}

static void draw_parts(const struct top *top, const struct watched *w, struct page *page)
{
	if (w->now.part_count == 0)
		return;
	page_line(page, HEADER);
	page_text(page, "%-14s %5s %5s %5s %5s %5s %8s %7s  USED", "PARTITION", "SHARE", "GUAR",
		  "CAP", "INFL", "WAIT", "ADMIT/S", "REJ/S");
	page_end(page);
	for (size_t i = 0; i < w->now.part_count; i++)
		draw_part(top, w, i, page);
}

static void draw_members(const struct watched *w, struct page *page)
{
	static const char *const lives[] = {
		[WEIR_SHM_ALIVE] = "",
		[WEIR_SHM_DEAD] = "dead, not yet reaped",
		[WEIR_SHM_FOREIGN] = "of another pid namespace",
	};

	page_line(page, HEADER);
	page_text(page, "%7s %8s %8s %8s %8s", "PROCESS", "PID", "CALLS", "PERMITS", "DETACHED");
	page_end(page);
	for (size_t i = 0; i < w->now.member_count; i++) {
		const struct weir_shm_member *m = &w->now.members[i];

		page_line(page, m->life == WEIR_SHM_DEAD ? ALARM : PLAIN);
		page_text(page,
			  "%7" PRIu32 " %8" PRId32 " %8" PRIu32 " %8" PRIu32 " %8" PRIu32 "  %s",
			  m->number, m->pid, m->calls, m->permits, m->detached, lives[m->life]);
		page_end(page);
	}
}

void top_draw_detail(void *arg, struct page *page)
{
	const struct top *top = arg;
	const struct watched *w = top_named(top, top->live.chosen);

	if (w == NULL) {
		page_line(page, PLAIN);
		page_text(page, "The limiter was removed");
		page_end(page);
		return;
	}
	draw_making(w, page);
	draw_charts(top, w, page);
	draw_numbers(w, page);
	draw_parts(top, w, page);
	draw_members(w, page);
}
