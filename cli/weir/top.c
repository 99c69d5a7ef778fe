/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.c - weir top: the shared limiters of this machine, on a terminal.
 */
#include "top.h"

#include <stdlib.h>
#include <string.h>

#include "bars.h"
#include "command.h"
#include "live.h"
#include "repeat.h"

/* Drawing. */

const char *top_span(const struct top *top, char *text, size_t size)
{
	const double seconds = PAST * (double)top->interval / (double)WEIR_S;

	if (seconds < 60)
		snprintf(text, size, "%.3gs", seconds);
	else
		snprintf(text, size, "%.3gm", seconds / 60);
	return text;
}

const struct watched *top_chosen(const struct top *top)
{
	for (size_t i = 0; i < top->limiters.count; i++)
		if (strcmp(top->limiters.at[i].name, top->chosen) == 0)
			return &top->limiters.at[i];
	return NULL;
}

static void draw_title(const struct top *top, enum view view)
{
	const bool filtered = top->filter[0] != '\0' && view == LIST;
	const unsigned left_out = top->limiters.left_out.of_others + top->limiters.left_out.open;
	char count[64 + sizeof(top->filter)], others[32] = "";

	if (left_out > 0)
		snprintf(others, sizeof(others), ", %u left out (h)", left_out);
	snprintf(count, sizeof(count), "%zu shared limiter%s%s%s%s%s", top->limiters.count,
		 top->limiters.count == 1 ? "" : "s", others, filtered ? ", with \"" : "",
		 filtered ? top->filter : "", filtered ? "\"" : "");
	live_title("weir top", view == DETAIL ? top->chosen : count, top->paused);
}

static void draw_keys(const struct top *top, enum view view)
{
	static const char *const keys[] = {
		[LIST] = "q quit  enter details  s sort  p parts  / filter  space pause  h help",
		[DETAIL] = "q back  up, down scroll  space pause  h help",
		[HELP] = "any key: back",
	};

	live_keys(top->why[0] != '\0' && view != HELP ? top->why : keys[view]);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"",
		"In the list",
		"  up, down, k, j     choose a limiter",
		"  page up, page down ten at a time; home, end: first, last",
		"  enter              show its details",
		"  s, S               sort by the next or the previous column",
		"  r                  reverse the order",
		"  p                  show or hide partitions",
		"  /                  filter by a part of the name",
		"  space              pause or continue",
		"  q                  quit",
		"",
		"LIMIT is the limit; of a partition, its cap. INFL is permits in flight, WAIT is",
		"calls in the queue. RTT is that of the last window. Rejected includes calls that",
		"waited in vain, dropped includes timeouts. USED is permits in flight as a part of",
		"the limit; bold where calls were refused.",
		"",
		"In the details, up and down scroll, and q goes back to the list.",
		"",
		"Limiters of other users are left out: --user=USER includes them. Those that",
		"every user can write to are left out, too: name them on the command line.",
	};

	live_help(lines, sizeof(lines) / sizeof(lines[0]));
}

static void draw_filter(const struct top *top)
{
	char shown[SHOWN_ROOM], text[SHOWN_ROOM + 16];

	snprintf(text, sizeof(text), "Names with: %s_",
		 name_shown(top->filter, shown, sizeof(shown)));
	live_keys(text);
}

static void draw(struct top *top, const struct screen *screen)
{
	erase();
	if (screen->view == LIST)
		top_draw_list(top);
	else if (screen->view == DETAIL)
		top_draw_detail(top);
	else
		draw_help();
	draw_title(top, screen->view);
	if (screen->filtering)
		draw_filter(top);
	else
		draw_keys(top, screen->view);
	refresh();
}

/* Reading. */

static void note(void *arg, const char *name, const char *why)
{
	struct top *top = arg;
	char shown[2][SHOWN_ROOM];

	snprintf(top->why, sizeof(top->why), "%s: %s", name_shown(name, shown[0], sizeof(shown[0])),
		 name_shown(why, shown[1], sizeof(shown[1])));
}

static void look(struct top *top)
{
	top->why[0] = '\0';
	limiters_look(&top->limiters, note, top);
}

static void run(struct top *top, const struct live *live)
{
	weir_time next = weir_now();
	struct screen screen = {.view = top->chosen[0] != '\0' ? DETAIL : LIST};
	int key;

	for (;;) {
		if (weir_now() >= next) {
			if (!top->paused)
				look(top);
			next = weir_now() + top->interval;
		}
		if (screen.view == LIST)
			top_choose_again(top);
		draw(top, &screen);
		if (!live_wait(live, next))
			return;
		while ((key = getch()) != ERR)
			if (!top_press(top, &screen, key))
				return;
	}
}

struct wanted {
	struct top top;
	bool ascii;
};

static enum sort sort_named(const char *name, struct argp_state *state)
{
	static const char *const names[] = {
		[SORT_NAME] = "name",       [SORT_LIMIT] = "limit",  [SORT_INFLIGHT] = "inflight",
		[SORT_WAITING] = "waiting", [SORT_RTT] = "rtt",      [SORT_ADMITTED] = "admit",
		[SORT_REJECTED] = "reject", [SORT_DROPPED] = "drop",
	};

	for (enum sort i = 0; i < SORTS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	argp_error(state,
		   "%s is not a column: name, limit, inflight, waiting, rtt, admit, reject or "
		   "drop",
		   name);
	return SORT_NAME;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;
	struct top *top = &wanted->top;

	switch (key) {
	case 'i':
		top->interval = repeat_seconds(arg, state);
		return 0;
	case 's':
		top->sort = sort_named(arg, state);
		return 0;
	case 'p':
		top->partitions = true;
		return 0;
	case 'a':
		wanted->ascii = true;
		return 0;
	case 'u':
	case ARGP_KEY_ARG:
		return choice_option(&top->limiters.choice, key, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* If a single limiter was named, it must exist, and its details are shown. */
static bool begin(struct top *top)
{
	if (top->limiters.choice.count == 0)
		return true;
	look(top);
	if (top->why[0] != '\0') {
		fprintf(stderr, "weir top: %s\n", top->why);
		return false;
	}
	if (top->limiters.choice.count == 1)
		snprintf(top->chosen, sizeof(top->chosen), "%s", top->limiters.at[0].name);
	return true;
}

int command_top(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"interval", 'i', "SECONDS", 0, "Read every SECONDS, 0.1 to 3600 (1)", 0},
		{"sort", 's', "COLUMN", 0,
		 "Sort by name, limit, inflight, waiting, rtt, admit, reject or drop", 0},
		{"partitions", 'p', NULL, 0, "Show partitions", 0},
		{"ascii", 'a', NULL, 0, "Draw bars in ASCII", 0},
		CHOICE_OPTIONS,
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[NAME...]",
		.doc = "Watch the named shared limiters, or all that belong to you or root. For a "
		       "single name, show the details.\v"
		       "Press h for help on keys.",
	};
	struct wanted wanted = {.top = {.interval = WEIR_S}};
	struct live live = {.screen = NULL};

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	wanted.top.unicode = !wanted.ascii && bars_unicode();
	if (begin(&wanted.top) && live_begin(&live, "weir top", "weir stat")) {
		run(&wanted.top, &live);
		live_end(&live);
	}
	limiters_free(&wanted.top.limiters);
	return live.screen != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
