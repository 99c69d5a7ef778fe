/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - a screen that is read and drawn periodically: a list, the details of one of its rows,
 * and help.
 *
 * The loop, the keys, scrolling, resizing and the terminal are here. A screen says what its rows
 * are.
 */
#ifndef LIVE_H
#define LIVE_H

#include "name.h"
#include "page.h"
#include "tty.h"

enum view {
	LIST,
	DETAIL,
	HELP,
};

/* What is shown, and how. A screen sets interval, unicode, view and chosen at the start. */
struct live {
	struct tty tty;
	weir_dur interval;
	bool unicode; /* bars */

	bool paused;
	bool one_only;          /* there is no list to go back to from the details */
	enum view view, before; /* before: under the help */
	char chosen[NAME_ROOM]; /* the row under the cursor, by its name */
	unsigned offset;        /* lines of the details that are scrolled away */
	char why[512];          /* what could not be read last; "" if nothing */
	bool typing;            /* keys go to typed */
	char typed[64];         /* after the prompt, on the last row */
};

/* What a screen shows. Each function gets what live_run() got. */
struct live_screen {
	const char *command;
	const char *instead;     /* the command for scripts */
	const char *keys[2];     /* the last row, in the list and in the details */
	const char *prompt;      /* before what is typed; NULL if nothing ever is */
	const char *const *help; /* its lines */
	size_t help_count;
	bool scroll_to_last; /* until only the last line of the details is left, not a screenful */

	/* Read again. A failure goes to why. */
	void (*read)(void *arg);

	/* The title of the list. */
	void (*title)(void *arg, char *text, size_t size);

	/* The names of the list's rows, in order; freed by the caller. NULL: out of memory. */
	const char **(*names)(void *arg, size_t *count);

	/* The list: its header, one row, which may have several lines, or why there is none. */
	void (*draw_header)(void *arg, struct page *page);
	void (*draw_row)(void *arg, const char *name, struct page *page);
	const char *(*empty)(void *arg);

	/* Prepare the details of the chosen row. False: there are none. */
	bool (*open)(void *arg);

	/* The details: lines that stay (NULL: none), and lines that scroll. */
	void (*draw_top)(void *arg, struct page *page);
	void (*draw_detail)(void *arg, struct page *page);

	/* A key of the list that only this screen has. May be NULL. */
	void (*press)(void *arg, int key);
};

/*
 * Show it until the user or a signal ends it; read for the first time at first. If the terminal
 * cannot show it, a message is printed.
 */
void live_run(struct live *live, const struct live_screen *screen, void *arg, weir_time first);

/*
 * Restore the terminal. If a signal ended the program, raise it again: call this last. Returns the
 * exit status: a failure if nothing could be shown.
 */
int live_end(struct live *live);

/* The style of a row of the list. */
enum style live_style(const struct live *live, const char *name);

/* Draw bars of of() in what is left of the line. */
void live_bars(const struct live *live, struct page *page, const struct past *past,
	       double (*of)(const struct point *point), double highest);

#endif
