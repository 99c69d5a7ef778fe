/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_top_draw.c - the screen of weir fleet top.
 */
#include "fleet_top.h"

#include <inttypes.h>
#include <string.h>

#include "bars.h"
#include "live.h"
#include "page.h"

static double share_in(const struct point *point)
{
	return (double)point->inflight;
}

static void draw_bars(const struct watch *top, struct page *page, const struct lines *lines,
		      const char *name, double highest)
{
	const struct line *line = line_named(lines, name);
	const int left = page_left(page) - 2;

	page_text(page, "  ");
	if (line != NULL && left > 0)
		page_bars(page, &line->past, share_in, highest, left < PAST ? left : PAST,
			  top->unicode);
	page_end(page);
}

static const char *number(uint64_t value, char *text, size_t size)
{
	return bars_number((double)value, text, size);
}

static void draw_limit_line(const struct watch *top, const struct fleet_reading *r,
			    struct page *page)
{
	const struct weir_fleet_limit *l = &r->limit;
	char text[3][16];

	page_line(page, strcmp(r->name, top->chosen) == 0 ? CHOSEN : PLAIN);
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

static const char *span(const struct watch *top, char *text, size_t size)
{
	return bars_duration(PAST * (double)top->interval, text, size);
}

static void draw_list(const struct watch *top)
{
	const unsigned rows = LINES > 4 ? (unsigned)LINES - 3 : 1;
	struct page page = {.row = 0};
	unsigned chosen = 0;
	char text[16];

	page_line(&page, HEADER);
	page_text(&page, "%-20s %8s %8s %8s %7s  GRANTED, %s", "NAME", "CAPACITY", "GRANTED",
		  "WANTED", "MEMBERS", span(top, text, sizeof(text)));
	page_end(&page);
	for (unsigned i = 0; i < top->limits.count; i++)
		if (strcmp(top->limits.at[i].name, top->chosen) == 0)
			chosen = i;
	/* Scroll so that the chosen limit is visible; the header stays. */
	for (unsigned i = chosen >= rows ? chosen - rows + 1 : 0; i < top->limits.count; i++)
		draw_limit_line(top, &top->limits.at[i], &page);
	if (top->limits.count == 0) {
		page_line(&page, PLAIN);
		page_text(&page, "The store has no limits");
		page_end(&page);
	}
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

/* The header stays; the members scroll. */
static void draw_detail(struct watch *top)
{
	struct page page = {.row = 0};
	const struct fleet_reading *r;

	if (top->detail.count == 0)
		return;
	r = &top->detail.at[0];
	draw_sum(top, r, &page);
	if (top->offset >= r->member_count)
		top->offset = r->member_count > 0 ? (unsigned)r->member_count - 1 : 0;
	for (size_t i = top->offset; i < r->member_count; i++)
		draw_member(top, r, i, &page);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"",
		"In the list",
		"  up, down, k, j     choose a limit",
		"  enter              its members",
		"  space              pause or continue",
		"  q                  quit",
		"",
		"CAPACITY is what throttling leaves of it. GRANTED is the part of the shared",
		"capacity, SHARE includes reserved units. Bars show shares; bold where more was",
		"wanted than there was.",
		"",
		"With members, up and down scroll, and q goes back to the list.",
	};

	live_help(lines, sizeof(lines) / sizeof(lines[0]));
}

void watch_draw(struct watch *top)
{
	static const char *const keys[] = {
		[LIST] = "q quit  enter members  space pause  h help",
		[DETAIL] = "q back  up, down scroll  space pause  h help",
		[HELP] = "any key: back",
	};
	char count[64];

	erase();
	snprintf(count, sizeof(count), "%zu limit%s", top->limits.count,
		 top->limits.count == 1 ? "" : "s");
	if (top->view == LIST)
		draw_list(top);
	else if (top->view == DETAIL)
		draw_detail(top);
	else
		draw_help();
	live_title("weir fleet top", top->view == DETAIL ? top->chosen : count, top->paused);
	live_keys(top->why[0] != '\0' && top->view != HELP ? top->why : keys[top->view]);
	refresh();
}
