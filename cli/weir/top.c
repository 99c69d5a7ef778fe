/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.c - weir top: the shared limiters of this machine, on a terminal.
 */
#include "top.h"

#include <stdlib.h>
#include <string.h>

#include "bars.h"
#include "command.h"
#include "repeat.h"

/* What is seen around the rows. */

const char *top_span(const struct top *top, char *text, size_t size)
{
	const double seconds = PAST * (double)top->live.interval / (double)WEIR_S;

	if (seconds < 60)
		snprintf(text, size, "%.3gs", seconds);
	else
		snprintf(text, size, "%.3gm", seconds / 60);
	return text;
}

static void title(void *arg, char *text, size_t size)
{
	const struct top *top = arg;
	const bool filtered = top->live.typed[0] != '\0' && top->live.view == LIST;
	const unsigned left_out = top->limiters.left_out.of_others + top->limiters.left_out.open;
	char others[32] = "";

	if (left_out > 0)
		snprintf(others, sizeof(others), ", %u left out (h)", left_out);
	snprintf(text, size, "%zu shared limiter%s%s%s%s%s", top->limiters.count,
		 top->limiters.count == 1 ? "" : "s", others, filtered ? ", with \"" : "",
		 filtered ? top->live.typed : "", filtered ? "\"" : "");
}

static const char *empty(void *arg)
{
	const struct top *top = arg;

	return top->limiters.count > 0 ? "No name contains that: press / to change the filter"
				       : "There are no shared limiters";
}

static const char *const help[] = {
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

/* Reading. */

static void note(void *arg, const char *name, const char *why)
{
	struct top *top = arg;
	char shown[2][SHOWN_ROOM];

	snprintf(top->live.why, sizeof(top->live.why), "%s: %s",
		 name_shown(name, shown[0], sizeof(shown[0])),
		 name_shown(why, shown[1], sizeof(shown[1])));
}

static void look(void *arg)
{
	struct top *top = arg;

	top->live.why[0] = '\0';
	limiters_look(&top->limiters, note, top);
}

const struct watched *top_named(const struct top *top, const char *name)
{
	for (size_t i = 0; i < top->limiters.count; i++)
		if (strcmp(top->limiters.at[i].name, name) == 0)
			return &top->limiters.at[i];
	return NULL;
}

/* Keys. */

static bool is_there(void *arg)
{
	const struct top *top = arg;

	return top_named(top, top->live.chosen) != NULL;
}

static void press(void *arg, int key)
{
	struct top *top = arg;

	switch (key) {
	case 's':
		top->sort = (top->sort + 1) % SORTS;
		break;
	case 'S':
		top->sort = (top->sort + SORTS - 1) % SORTS;
		break;
	case 'r':
		top->ascending = !top->ascending;
		break;
	case 'p':
		top->partitions = !top->partitions;
		break;
	case '/':
		top->live.typing = true;
		break;
	default:
		break;
	}
}

static const struct live_screen top_screen = {
	.command = "weir top",
	.instead = "weir stat",
	.keys = {"q quit  enter details  s sort  p parts  / filter  space pause  h help",
		 "q back  up, down scroll  space pause  h help"},
	.prompt = "Names with: ",
	.help = help,
	.help_count = sizeof(help) / sizeof(help[0]),
	.read = look,
	.title = title,
	.names = top_names,
	.draw_header = top_draw_header,
	.draw_row = top_draw_row,
	.empty = empty,
	.open = is_there,
	.draw_detail = top_draw_detail,
	.press = press,
};

/* Options. */

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
		top->live.interval = repeat_seconds(arg, state);
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
	if (top->live.why[0] != '\0') {
		fprintf(stderr, "weir top: %s\n", top->live.why);
		return false;
	}
	if (top->limiters.choice.count == 1) {
		snprintf(top->live.chosen, sizeof(top->live.chosen), "%s",
			 top->limiters.at[0].name);
		top->live.view = DETAIL;
	}
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
	struct wanted wanted = {.top = {.live = {.interval = WEIR_S}}};
	struct top *top = &wanted.top;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	top->live.unicode = !wanted.ascii && bars_unicode();
	if (begin(top))
		live_run(&top->live, &top_screen, top, 0);
	limiters_free(&top->limiters);
	return live_end(&top->live);
}
