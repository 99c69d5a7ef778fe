/*
 * fleet_top.c - weir fleet top: limits of a store, or one with its members, on a terminal.
 */
#include "fleet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bars.h"
#include "command.h"
#include "live.h"
#include "page.h"
#include "repeat.h"

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

struct top {
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

/* The past. */

static void lines_clear(struct lines *l)
{
	free(l->at);
	*l = (struct lines){.count = 0};
}

static struct line *line_named(const struct lines *l, const char *name)
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

static uint64_t shares_of(const struct fleet_reading *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->member_count; i++)
		if (r->members[i].fence != 0)
			sum += fleet_share(&r->limit, &r->members[i]);
	return sum;
}

static const char *member_name(const struct weir_fleet_member *member, char *text, size_t size)
{
	snprintf(text, size, "%016" PRIx64, member->id);
	return text;
}

static void remember_limits(struct top *top)
{
	for (size_t i = 0; i < top->limits.count; i++) {
		const struct weir_fleet_limit *l = &top->limits.at[i].limit;
		const struct point point = point_of(l->effective, l->granted, l->wanted);

		line_add(&top->limit_lines, top->limits.at[i].name, &point);
	}
	lines_forget_the_gone(&top->limit_lines);
}

static void remember_members(struct top *top, const struct fleet_reading *r)
{
	struct point point = point_of(r->limit.effective, shares_of(r), r->limit.wanted);
	char name[20];

	line_add(&top->member_lines, "all", &point);
	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_fleet_member *m = &r->members[i];

		if (m->fence == 0)
			continue;
		point = point_of(r->limit.effective, fleet_share(&r->limit, m), m->wants);
		line_add(&top->member_lines, member_name(m, name, sizeof(name)), &point);
	}
	lines_forget_the_gone(&top->member_lines);
}

/* What is read. */

static void note(struct top *top, const char *name, int error)
{
	char why[400];

	fleet_why(top->store, error, why, sizeof(why));
	snprintf(top->why, sizeof(top->why), "%.100s%s%s", name, name[0] != '\0' ? ": " : "", why);
}

static void read_limits(struct top *top)
{
	struct fleet_readings now = {.count = 0};
	int r = fleet_read_all(top->store, &now);

	if (r != 0) {
		note(top, "", r);
		fleet_forget(&now);
		return;
	}
	fleet_forget(&top->limits);
	top->limits = now;
	remember_limits(top);
}

static void read_detail(struct top *top)
{
	struct fleet_readings now = {.count = 0};
	int r = fleet_read(top->store, top->chosen, &now);

	if (r != 0) {
		note(top, top->chosen, r);
		fleet_forget(&now);
		return;
	}
	fleet_forget(&top->detail);
	top->detail = now;
	remember_members(top, &now.at[0]);
}

static void look(struct top *top)
{
	top->why[0] = '\0';
	if (top->asked == NULL)
		read_limits(top);
	if (top->chosen[0] != '\0' && (top->asked != NULL || top->view == DETAIL))
		read_detail(top);
}

/* What is shown. */

static double share_in(const struct point *point)
{
	return (double)point->inflight;
}

static void draw_bars(const struct top *top, struct page *page, const struct lines *lines,
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

static void draw_limit_line(const struct top *top, const struct fleet_reading *r, struct page *page)
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

static const char *span(const struct top *top, char *text, size_t size)
{
	return bars_duration(PAST * (double)top->interval, text, size);
}

static void draw_list(const struct top *top)
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
	/* The chosen one is seen, and the header stays. */
	for (unsigned i = chosen >= rows ? chosen - rows + 1 : 0; i < top->limits.count; i++)
		draw_limit_line(top, &top->limits.at[i], &page);
	if (top->limits.count == 0) {
		page_line(&page, PLAIN);
		page_text(&page, "There is no limit here");
		page_end(&page);
	}
}

static double highest_share(const struct fleet_reading *r)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < r->member_count; i++) {
		const uint64_t share = fleet_share(&r->limit, &r->members[i]);

		highest = share > highest ? share : highest;
	}
	return (double)highest;
}

static void draw_member(const struct top *top, const struct fleet_reading *r, size_t index,
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
		  number(fleet_share(&r->limit, m), text[1], sizeof(text[1])), m->weight,
		  m->priority);
	if (m->drained != 0) {
		page_text(page, "  drained");
		page_end(page);
		return;
	}
	draw_bars(top, page, &top->member_lines, name, highest_share(r));
}

static void draw_sum(const struct top *top, const struct fleet_reading *r, struct page *page)
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

/* Its head stays, members scroll. */
static void draw_detail(struct top *top)
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
		"  space              pause, and go on",
		"  q                  quit",
		"",
		"CAPACITY is what throttling leaves of it. GRANTED is of what is shared, SHARE has",
		"what is reserved on top. Bars are of shares; bold where more was wanted than there",
		"was.",
		"",
		"With members, up and down scroll, and q goes back.",
	};

	live_help(lines, sizeof(lines) / sizeof(lines[0]));
}

static void draw(struct top *top)
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

/* What keys do. */

static void move_choice(struct top *top, int by)
{
	int at = 0;

	for (size_t i = 0; i < top->limits.count; i++)
		if (strcmp(top->limits.at[i].name, top->chosen) == 0)
			at = (int)i;
	at += by;
	if (at >= (int)top->limits.count)
		at = (int)top->limits.count - 1;
	if (top->limits.count > 0)
		snprintf(top->chosen, sizeof(top->chosen), "%s",
			 top->limits.at[at > 0 ? at : 0].name);
}

static void show_detail(struct top *top)
{
	if (top->chosen[0] == '\0')
		return;
	top->view = DETAIL;
	top->offset = 0;
	fleet_forget(&top->detail);
	lines_clear(&top->member_lines);
	look(top);
}

/* False: the program is to end. */
static bool press_in_list(struct top *top, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		move_choice(top, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		move_choice(top, 1);
		return true;
	case '\r':
	case '\n':
	case KEY_ENTER:
		show_detail(top);
		return true;
	default:
		return key != 'q';
	}
}

static bool press_in_detail(struct top *top, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		top->offset -= top->offset > 0;
		return true;
	case KEY_DOWN:
	case 'j':
		top->offset++;
		return true;
	case 'q':
	case KEY_BACKSPACE:
	case KEY_LEFT:
		top->view = LIST;
		return top->asked == NULL;
	default:
		return true;
	}
}

static bool press(struct top *top, int key)
{
	if (key == KEY_RESIZE)
		return true;
	if (top->view == HELP) {
		top->view = top->before;
	} else if (key == ' ') {
		top->paused = !top->paused;
	} else if (key == 'h' || key == '?') {
		top->before = top->view;
		top->view = HELP;
	} else if (top->view == LIST) {
		return press_in_list(top, key);
	} else {
		return press_in_detail(top, key);
	}
	return true;
}

static void run(struct top *top, const struct live *live)
{
	weir_time next = weir_now() + top->interval;
	int key;

	for (;;) {
		if (weir_now() >= next) {
			if (!top->paused)
				look(top);
			next = weir_now() + top->interval;
		}
		if (top->view == LIST)
			move_choice(top, 0);
		draw(top);
		if (!live_wait(live, next))
			return;
		while ((key = getch()) != ERR)
			if (!press(top, key))
				return;
	}
}

struct wanted {
	struct top top;
	bool ascii;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'i':
		wanted->top.interval = repeat_seconds(arg, state);
		return 0;
	case 'b':
		wanted->ascii = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wanted->top.asked != NULL)
			argp_error(state, "It shows one limit, or all");
		wanted->top.asked = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What cannot be read at the beginning is no view. */
static bool begin(struct top *top)
{
	if (top->asked != NULL) {
		snprintf(top->chosen, sizeof(top->chosen), "%.*s", WEIR_SHARE_NAME_MAX, top->asked);
		top->view = DETAIL;
	}
	look(top);
	if (top->why[0] == '\0')
		return true;
	name_complain("", top->why);
	return false;
}

int fleet_top(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"interval", 'i', "SECONDS", 0, "Look so often: 0.1 to 3600 (1)", 0},
		{"ascii", 'b', NULL, 0, "Draw bars in ASCII, whatever the locale has", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[LIMIT]",
		.doc = "Watch the limits of a store; or one, with the shares of its members.\v"
		       "The key h shows what keys do.",
		.children = children,
	};
	struct wanted wanted = {.top = {.interval = WEIR_S}};
	struct top *top = &wanted.top;
	struct live live = {.screen = NULL};

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	top->unicode = !wanted.ascii && bars_unicode();
	top->store = fleet_store();
	if (top->store == NULL)
		return EXIT_FAILURE;
	if (begin(top) && live_begin(&live, "weir fleet top", "weir fleet show"))
		run(top, &live);
	fleet_forget(&top->limits);
	fleet_forget(&top->detail);
	lines_clear(&top->limit_lines);
	lines_clear(&top->member_lines);
	weir_store_close(top->store);
	if (live.screen == NULL)
		return EXIT_FAILURE;
	live_end(&live);
	return EXIT_SUCCESS;
}
