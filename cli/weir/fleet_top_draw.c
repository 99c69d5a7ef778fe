/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_top_draw.c - the screen of weir fleet top: its rows.
 */
#include "fleet_top.h"

#include <inttypes.h>
#include <string.h>

#include "bars.h"

static double share_in(const struct point *point)
{
	return (double)point->inflight;
}

static void draw_bars(const struct watch *top, struct page *page, const struct lines *lines,
		      const char *name, double highest)
{
	const struct line *line = line_named(lines, name);

	page_text(page, "  ");
	if (line != NULL)
		live_bars(&top->live, page, &line->past, share_in, highest);
	page_end(page);
}

static const char *number(uint64_t value, char *text, size_t size)
{
	return bars_number((double)value, text, size);
}

static const char *span(const struct watch *top, char *text, size_t size)
{
	return bars_duration(PAST * (double)top->live.interval, text, size);
}

void watch_draw_header(void *arg, struct page *page)
{
	char text[16];

	page_line(page, HEADER);
	page_text(page, "%-20s %8s %8s %8s %7s  GRANTED, %s", "NAME", "CAPACITY", "GRANTED",
		  "WANTED", "MEMBERS", span(arg, text, sizeof(text)));
	page_end(page);
}

static void draw_limit(const struct watch *top, const struct fleet_reading *r, struct page *page)
{
	const struct weir_fleet_limit *l = &r->limit;
	char text[3][16];

	page_line(page, live_style(&top->live, r->name));
	page_shown(page, r->name, 20);
	if (l->version != 0)
		page_text(page, " %8s %8s %8s %7" PRIu32,
			  number(l->effective, text[0], sizeof(text[0])),
			  number(l->granted, text[1], sizeof(text[1])),
			  number(l->wanted, text[2], sizeof(text[2])), l->members);
	else
		page_text(page, " %8s %8s %8s %7" PRIu32, "-", "-", "-", r->workers);
	draw_bars(top, page, &top->limit_lines, r->name, (double)l->effective);
}

void watch_draw_row(void *arg, const char *name, struct page *page)
{
	const struct watch *top = arg;

	for (size_t i = 0; i < top->limits.count; i++)
		if (strcmp(top->limits.at[i].name, name) == 0)
			draw_limit(top, &top->limits.at[i], page);
}

static double highest_share(const struct fleet_reading *r)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < r->member_count; i++) {
		const uint64_t share = fleet_share(&r->members[i]);

		highest = share > highest ? share : highest;
	}
	return (double)highest;
}

static void draw_member(const struct watch *top, const struct fleet_reading *r, size_t index,
			struct page *page)
{
	const struct weir_fleet_member *m = &r->members[index];
	char text[2][16], name[20], label[LABEL_WIDTH + 1];

	page_line(page, PLAIN);
	page_text(page, "%-16s %-*s", member_name(m, name, sizeof(name)), LABEL_WIDTH,
		  fleet_label(m->label, label));
	if (m->fence == 0) {
		page_text(page, "  drained, not there");
		page_end(page);
		return;
	}
	page_text(page, " %8s %8s %6" PRIu32 " %5" PRId32,
		  number(m->wants, text[0], sizeof(text[0])),
		  number(fleet_share(m), text[1], sizeof(text[1])), m->weight, m->priority);
	if (m->drained != 0) {
		page_text(page, "  drained");
		page_end(page);
		return;
	}
	draw_bars(top, page, &top->member_lines, name, highest_share(r));
}

static void draw_sum(const struct watch *top, const struct fleet_reading *r, struct page *page)
{
	const struct weir_fleet_limit *l = &r->limit;
	char text[3][16];

	page_line(page, PLAIN);
	page_text(page, "capacity %" PRIu64 ", effective %" PRIu64 ", %s, lease %s", l->capacity,
		  l->effective, fleet_allotment(l->allotment),
		  bars_duration((double)l->lease, text[0], sizeof(text[0])));
	if (l->reserved > 0)
		page_text(page, ", %" PRIu64 " reserved for each of %" PRIu32, l->reserved,
			  l->members_max);
	page_end(page);
	page_line(page, HEADER);
	page_text(page, "%-16s %-*s %8s %8s %6s %5s  SHARE, %s", "MEMBER", LABEL_WIDTH, "LABEL",
		  "WANTS", "SHARE", "WEIGHT", "PRIO", span(top, text[0], sizeof(text[0])));
	page_end(page);
	page_line(page, BOLD);
	page_text(page, "%-16s %*s %8s %8s %12s", "all", LABEL_WIDTH, "",
		  number(l->wanted, text[1], sizeof(text[1])),
		  number(shares_of(r), text[2], sizeof(text[2])), "");
	draw_bars(top, page, &top->member_lines, "all", (double)l->effective);
}

void watch_draw_sum(void *arg, struct page *page)
{
	const struct watch *top = arg;

	if (top->detail.count > 0)
		draw_sum(top, &top->detail.at[0], page);
}

void watch_draw_members(void *arg, struct page *page)
{
	const struct watch *top = arg;

	for (size_t i = 0; top->detail.count > 0 && i < top->detail.at[0].member_count; i++)
		draw_member(top, &top->detail.at[0], i, page);
}
