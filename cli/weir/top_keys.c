/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top_keys.c - the keys of weir top.
 */
#include "top.h"

#include <ncurses.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ncurses has no name for it, since other keys' codes begin with it. */
#define KEY_ESCAPE 27

void top_choose_again(struct top *top)
{
	size_t count;
	const struct watched **listed = top_listed(top, &count);
	bool there = false;

	for (size_t i = 0; i < count; i++)
		there |= strcmp(listed[i]->name, top->chosen) == 0;
	if (!there && count > 0)
		snprintf(top->chosen, sizeof(top->chosen), "%s", listed[0]->name);
	free(listed);
}

static void move_choice(struct top *top, long by)
{
	size_t count;
	const struct watched **listed = top_listed(top, &count);
	long at = 0;

	for (size_t i = 0; i < count; i++)
		if (strcmp(listed[i]->name, top->chosen) == 0)
			at = (long)i;
	at += by;
	if (at >= (long)count)
		at = (long)count - 1;
	if (count > 0)
		snprintf(top->chosen, sizeof(top->chosen), "%s", listed[at > 0 ? at : 0]->name);
	free(listed);
}

static void press_in_list(struct top *top, int key, enum view *view)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		move_choice(top, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_choice(top, 1);
		break;
	case KEY_PPAGE:
		move_choice(top, -10);
		break;
	case KEY_NPAGE:
		move_choice(top, 10);
		break;
	case KEY_HOME:
		move_choice(top, INT32_MIN);
		break;
	case KEY_END:
		move_choice(top, INT32_MAX);
		break;
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
	case '\r':
	case '\n':
	case KEY_ENTER:
		top->offset = 0;
		*view = top_chosen(top) != NULL ? DETAIL : LIST;
		break;
	default:
		break;
	}
}

static void press_in_detail(struct top *top, int key, enum view *view)
{
	const unsigned page = LINES > 4 ? (unsigned)LINES - 3 : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		top->offset -= top->offset > 0;
		break;
	case KEY_DOWN:
	case 'j':
		top->offset++;
		break;
	case KEY_PPAGE:
		top->offset -= top->offset < page ? top->offset : page;
		break;
	case KEY_NPAGE:
		top->offset += page;
		break;
	case 'q':
	case KEY_ESCAPE:
	case KEY_BACKSPACE:
	case KEY_LEFT:
		*view = LIST;
		break;
	default:
		break;
	}
}

/* Edit the filter on the last row. It takes effect while it is typed. */
static void press_in_filter(struct top *top, int key, bool *filtering)
{
	const size_t length = strlen(top->filter);

	if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		*filtering = false;
	} else if (key == KEY_ESCAPE) {
		top->filter[0] = '\0';
		*filtering = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		top->filter[length > 0 ? length - 1 : 0] = '\0';
	} else if (key >= ' ' && key <= 255 && length + 1 < sizeof(top->filter)) {
		top->filter[length] = (char)key;
		top->filter[length + 1] = '\0';
	}
	top_choose_again(top);
}

/* Keys that mean the same in the list and in the details. False for any other key. */
static bool press_anywhere(struct top *top, struct screen *screen, int key)
{
	switch (key) {
	case ' ':
		top->paused = !top->paused;
		return true;
	case 'h':
	case '?':
		screen->before = screen->view;
		screen->view = HELP;
		return true;
	case KEY_RESIZE:
		return true;
	default:
		return false;
	}
}

bool top_press(struct top *top, struct screen *screen, int key)
{
	if (screen->filtering && key != KEY_RESIZE) {
		press_in_filter(top, key, &screen->filtering);
	} else if (screen->view == HELP && key != KEY_RESIZE) {
		screen->view = screen->before;
	} else if (press_anywhere(top, screen, key)) {
		return true;
	} else if (screen->view == DETAIL) {
		press_in_detail(top, key, &screen->view);
	} else if (key == '/') {
		screen->filtering = true;
	} else if (key == 'q') {
		return false;
	} else {
		press_in_list(top, key, &screen->view);
	}
	return true;
}
