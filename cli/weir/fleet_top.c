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
#include "live.h"
#include "name.h"
#include "page.h"
#include "repeat.h"

/* Reading. */

static void note(struct watch *top, const char *name, int error)
{
	char why[400];

	fleet_why(top->store, error, why, sizeof(why));
	snprintf(top->why, sizeof(top->why), "%.100s%s%s", name, name[0] != '\0' ? ": " : "", why);
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
	int r = fleet_read(top->store, top->chosen, &now);

	if (r != 0) {
		note(top, top->chosen, r);
		fleet_forget(&now);
		return;
	}
	fleet_forget(&top->detail);
	top->detail = now;
	watch_remember_members(top, &now.at[0]);
}

static void look(struct watch *top)
{
	top->why[0] = '\0';
	if (top->asked == NULL)
		read_limits(top);
	if (top->chosen[0] != '\0' && (top->asked != NULL || top->view == DETAIL))
		read_detail(top);
}

/* Keys. */

static void move_choice(struct watch *top, int by)
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

static void show_detail(struct watch *top)
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
static bool press_in_list(struct watch *top, int key)
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

static bool press_in_detail(struct watch *top, int key)
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

static bool press(struct watch *top, int key)
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

static void run(struct watch *top, const struct live *live)
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
		watch_draw(top);
		if (!live_wait(live, next))
			return;
		while ((key = getch()) != ERR)
			if (!press(top, key))
				return;
	}
}

struct wanted {
	struct watch top;
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
	struct wanted wanted = {.top = {.interval = WEIR_S}};
	struct watch *top = &wanted.top;
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
