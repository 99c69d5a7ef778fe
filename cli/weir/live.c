/* SPDX-License-Identifier: BSD-2-Clause */
#include "live.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ncurses has no name for it, since other keys' codes begin with it. */
#define KEY_ESCAPE 27

/* A screen while it is shown. */
struct shown {
	struct live *live;
	const struct live_screen *screen;
	void *arg;
};

/* Rows between the header of the list and the keys. */
static unsigned rows(void)
{
	return LINES > 4 ? (unsigned)LINES - 3 : 1;
}

/* Drawing. */

enum style live_style(const struct live *live, const char *name)
{
	return strcmp(name, live->chosen) == 0 ? CHOSEN : PLAIN;
}

void live_bars(const struct live *live, struct page *page, const struct past *past,
	       double (*of)(const struct point *point), double highest)
{
	const int left = page_left(page);

	page_bars(page, past, of, highest, left < PAST ? left : PAST, live->unicode);
}

/* The first row: the command, and what it shows. */
static void draw_title(const char *command, const char *what, bool paused)
{
	const time_t now = time(NULL);
	struct tm local;
	char clock[16] = "", shown[SHOWN_ROOM];

	if (localtime_r(&now, &local) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	attrset(A_BOLD);
	mvaddstr(0, 0, command);
	attrset(A_NORMAL);
	printw("  %.*s", COLS > 30 ? COLS - 30 : 0, name_shown(what, shown, sizeof(shown)));
	if (paused)
		mvaddstr(0, COLS > 20 ? COLS - 18 : 0, " paused");
	mvaddstr(0, COLS > 9 ? COLS - 9 : 0, " ");
	addstr(clock);
}

/* The last row: the keys, an error, or what is being typed. */
static void draw_last(const struct shown *s)
{
	const struct live *live = s->live;
	char text[SHOWN_ROOM + 16], shown[SHOWN_ROOM];

	if (live->typing)
		snprintf(text, sizeof(text), "%s%s_", s->screen->prompt,
			 name_shown(live->typed, shown, sizeof(shown)));
	else if (live->view == HELP)
		snprintf(text, sizeof(text), "any key: back");
	else
		snprintf(text, sizeof(text), "%s",
			 live->why[0] != '\0' ? live->why : s->screen->keys[live->view]);
	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ' | A_REVERSE, COLS);
	mvaddnstr(LINES - 1, 0, text, COLS);
	attrset(A_NORMAL);
}

static void draw_line(struct page *page, const char *text)
{
	page_line(page, PLAIN);
	page_text(page, "%s", text);
	page_end(page);
}

/* The lines above and including the chosen row's first, drawn on a page that is not shown. */
static unsigned lines_to_chosen(const struct shown *s, const char *const *names, size_t count)
{
	struct page page = {.hidden = true};

	for (size_t i = 0; i < count && live_style(s->live, names[i]) != CHOSEN; i++)
		s->screen->draw_row(s->arg, names[i], &page);
	return (unsigned)page.row + 1;
}

/* The header stays; the rows scroll so that the chosen one is visible. */
static void draw_list(const struct shown *s)
{
	size_t count = 0;
	const char **names = s->screen->names(s->arg, &count);
	struct page page = {.row = 0};
	unsigned lines;

	s->screen->draw_header(s->arg, &page);
	if (count == 0)
		draw_line(&page, s->screen->empty(s->arg));
	lines = lines_to_chosen(s, names, count);
	page.above = page.row;
	page.row -= lines > rows() ? (int)(lines - rows()) : 0;
	for (size_t i = 0; i < count; i++)
		s->screen->draw_row(s->arg, names[i], &page);
	free(names);
}

/* Scroll no further than there are lines. */
static void limit_offset(const struct shown *s, const struct page *page)
{
	struct page hidden = {.hidden = true};
	const int room = LINES - 2 - page->row;
	unsigned kept = 1, most;

	s->screen->draw_detail(s->arg, &hidden);
	if (!s->screen->scroll_to_last)
		kept = room > 0 ? (unsigned)room : 0;
	most = (unsigned)hidden.row > kept ? (unsigned)hidden.row - kept : 0;
	if (s->live->offset > most)
		s->live->offset = most;
}

static void draw_detail(const struct shown *s)
{
	struct page page = {.row = 0};

	if (s->screen->draw_top != NULL)
		s->screen->draw_top(s->arg, &page);
	limit_offset(s, &page);
	page.above = page.row;
	page.row -= (int)s->live->offset;
	s->screen->draw_detail(s->arg, &page);
}

static void draw_help(const struct live_screen *screen)
{
	struct page page = {.row = 0};

	for (size_t i = 0; i < screen->help_count; i++)
		draw_line(&page, screen->help[i]);
}

static void draw(const struct shown *s)
{
	const struct live *live = s->live;
	char title[256];

	erase();
	if (live->view == LIST)
		draw_list(s);
	else if (live->view == DETAIL)
		draw_detail(s);
	else
		draw_help(s->screen);
	s->screen->title(s->arg, title, sizeof(title));
	draw_title(s->screen->command, live->view == DETAIL ? live->chosen : title, live->paused);
	draw_last(s);
	refresh();
}

/* Keys. */

/* By 0: the first row is chosen if the chosen one is no longer listed. */
static void move_choice(const struct shown *s, long by)
{
	size_t count = 0;
	const char **names = s->screen->names(s->arg, &count);
	long at = 0;

	for (size_t i = 0; i < count; i++)
		if (live_style(s->live, names[i]) == CHOSEN)
			at = (long)i;
	at += by;
	if (at >= (long)count)
		at = (long)count - 1;
	if (count > 0)
		snprintf(s->live->chosen, sizeof(s->live->chosen), "%s", names[at > 0 ? at : 0]);
	free(names);
}

static void press_in_list(const struct shown *s, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		move_choice(s, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_choice(s, 1);
		break;
	case KEY_PPAGE:
		move_choice(s, -10);
		break;
	case KEY_NPAGE:
		move_choice(s, 10);
		break;
	case KEY_HOME:
		move_choice(s, INT32_MIN);
		break;
	case KEY_END:
		move_choice(s, INT32_MAX);
		break;
	case '\r':
	case '\n':
	case KEY_ENTER:
		s->live->offset = 0;
		s->live->view = DETAIL;
		if (!s->screen->open(s->arg))
			s->live->view = LIST;
		break;
	default:
		if (s->screen->press != NULL)
			s->screen->press(s->arg, key);
	}
}

static void press_in_detail(struct live *live, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		live->offset -= live->offset > 0;
		break;
	case KEY_DOWN:
	case 'j':
		live->offset++;
		break;
	case KEY_PPAGE:
		live->offset -= live->offset < rows() ? live->offset : rows();
		break;
	case KEY_NPAGE:
		live->offset += rows();
		break;
	case 'q':
	case KEY_ESCAPE:
	case KEY_BACKSPACE:
	case KEY_LEFT:
		live->view = LIST;
		break;
	default:
		break;
	}
}

/* Edit the text on the last row. It takes effect while it is typed. */
static void type(struct live *live, int key)
{
	const size_t length = strlen(live->typed);

	if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		live->typing = false;
	} else if (key == KEY_ESCAPE) {
		live->typed[0] = '\0';
		live->typing = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		live->typed[length > 0 ? length - 1 : 0] = '\0';
	} else if (key >= ' ' && key <= 255 && length + 1 < sizeof(live->typed)) {
		live->typed[length] = (char)key;
		live->typed[length + 1] = '\0';
	}
}

/* False: the program is to end. */
static bool press(const struct shown *s, int key)
{
	struct live *live = s->live;

	if (key == KEY_RESIZE)
		return true;
	if (live->typing) {
		type(live, key);
		move_choice(s, 0);
	} else if (live->view == HELP) {
		live->view = live->before;
	} else if (key == ' ') {
		live->paused = !live->paused;
	} else if (key == 'h' || key == '?') {
		live->before = live->view;
		live->view = HELP;
	} else if (live->view == DETAIL) {
		press_in_detail(live, key);
		return live->view == DETAIL || !live->one_only;
	} else if (key == 'q') {
		return false;
	} else {
		press_in_list(s, key);
	}
	return true;
}

static void run(const struct shown *s, weir_time next)
{
	struct live *live = s->live;
	int key;

	for (;;) {
		if (weir_now() >= next) {
			if (!live->paused)
				s->screen->read(s->arg);
			next = weir_now() + live->interval;
		}
		if (live->view == LIST)
			move_choice(s, 0);
		draw(s);
		if (!tty_wait(&live->tty, next))
			return;
		while ((key = getch()) != ERR)
			if (!press(s, key))
				return;
	}
}

void live_run(struct live *live, const struct live_screen *screen, void *arg, weir_time first)
{
	const struct shown s = {.live = live, .screen = screen, .arg = arg};

	if (tty_begin(&live->tty, screen->command, screen->instead))
		run(&s, first);
}

int live_end(struct live *live)
{
	if (live->tty.screen == NULL)
		return EXIT_FAILURE;
	tty_end(&live->tty);
	return EXIT_SUCCESS;
}
