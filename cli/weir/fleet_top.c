/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_top.c - weir fleet top: the limits of a store, or one limit with its members, on a
 * terminal.
 */
#include "fleet_top.h"

#include <stdlib.h>
#include <string.h>

#include "bars.h"
#include "command.h"
#include "repeat.h"

/* Reading. */

static void note(struct watch *top, const char *name, int error)
{
	char why[400];

	fleet_why(top->store, error, why, sizeof(why));
	snprintf(top->live.why, sizeof(top->live.why), "%.100s%s%s", name,
		 name[0] != '\0' ? ": " : "", why);
}

static void read_limits(struct watch *top)
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
	watch_remember_limits(top);
}

static void read_detail(struct watch *top)
{
	struct fleet_readings now = {.count = 0};
	int r = fleet_read(top->store, top->live.chosen, &now);

	if (r != 0) {
		note(top, top->live.chosen, r);
		fleet_forget(&now);
		return;
	}
	fleet_forget(&top->detail);
	top->detail = now;
	watch_remember_members(top, &now.at[0]);
}

static void look(void *arg)
{
	struct watch *top = arg;

	top->live.why[0] = '\0';
	if (top->asked == NULL)
		read_limits(top);
	if (top->live.chosen[0] != '\0' && (top->asked != NULL || top->live.view == DETAIL))
		read_detail(top);
}

/* Rows. */

static const char **names_of(void *arg, size_t *count)
{
	const struct watch *top = arg;
	const char **names = calloc(top->limits.count + 1, sizeof(*names));

	*count = names != NULL ? top->limits.count : 0;
	for (size_t i = 0; i < *count; i++)
		names[i] = top->limits.at[i].name;
	return names;
}

static void title(void *arg, char *text, size_t size)
{
	const struct watch *top = arg;

	snprintf(text, size, "%zu limit%s", top->limits.count, top->limits.count == 1 ? "" : "s");
}

static const char *empty(void *arg)
{
	(void)arg;
	return "The store has no limits";
}

static bool open_detail(void *arg)
{
	struct watch *top = arg;

	if (top->live.chosen[0] == '\0')
		return false;
	fleet_forget(&top->detail);
	lines_clear(&top->member_lines);
	look(top);
	return true;
}

static const char *const help[] = {
	"",
	"In the list",
	"  up, down, k, j     choose a limit",
	"  page up, page down ten at a time; home, end: first, last",
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

static const struct live_screen fleet_screen = {
	.command = "weir fleet top",
	.instead = "weir fleet show",
	.keys = {"q quit  enter members  space pause  h help",
		 "q back  up, down scroll  space pause  h help"},
	.help = help,
	.help_count = sizeof(help) / sizeof(help[0]),
	.scroll_to_last = true,
	.read = look,
	.title = title,
	.names = names_of,
	.draw_header = watch_draw_header,
	.draw_row = watch_draw_row,
	.empty = empty,
	.open = open_detail,
	.draw_top = watch_draw_sum,
	.draw_detail = watch_draw_members,
};

/* Options. */

struct wanted {
	struct watch top;
	bool ascii;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'i':
		wanted->top.live.interval = repeat_seconds(arg, state);
		return 0;
	case 'b':
		wanted->ascii = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wanted->top.asked != NULL)
			argp_error(state, "Only one limit can be named");
		wanted->top.asked = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* If the first reading fails, the program ends. */
static bool begin(struct watch *top)
{
	if (top->asked != NULL) {
		snprintf(top->live.chosen, sizeof(top->live.chosen), "%.*s", WEIR_SHARE_NAME_MAX,
			 top->asked);
		top->live.view = DETAIL;
		top->live.one_only = true;
	}
	look(top);
	if (top->live.why[0] == '\0')
		return true;
	name_complain("", top->live.why);
	return false;
}

int fleet_top(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"interval", 'i', "SECONDS", 0, "Read every SECONDS, 0.1 to 3600 (1)", 0},
		{"ascii", 'b', NULL, 0, "Draw bars in ASCII", 0},
		{0},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[LIMIT]",
		.doc = "Watch the limits of a store, or one limit with the shares of its members.\v"
		       "Press h for help on keys.",
		.children = children,
	};
	struct wanted wanted = {.top = {.live = {.interval = WEIR_S}}};
	struct watch *top = &wanted.top;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	top->live.unicode = !wanted.ascii && bars_unicode();
	top->store = fleet_store();
	if (top->store == NULL)
		return EXIT_FAILURE;
	if (begin(top))
		live_run(&top->live, &fleet_screen, top, weir_now() + top->live.interval);
	fleet_forget(&top->limits);
	fleet_forget(&top->detail);
	lines_clear(&top->limit_lines);
	lines_clear(&top->member_lines);
	weir_store_close(top->store);
	return live_end(&top->live);
}
