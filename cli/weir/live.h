/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - a screen that is redrawn periodically: the terminal, and signals.
 *
 * The program waits for a key, a signal or the next reading, and redraws in between. Signals are
 * blocked except in that wait, so no handler, ncurses' own included, runs while the screen is
 * drawn.
 */
#ifndef LIVE_H
#define LIVE_H

#include <ncurses.h>
#include <signal.h>
#include <stdbool.h>
#include <weir/base.h>

struct live {
	SCREEN *screen;
	sigset_t open;
};

/* False if the terminal cannot show it; a message, which suggests instead, has been printed. */
bool live_begin(struct live *live, const char *command, const char *instead);

/* Restore the terminal. If a signal ended the program, raise it again. */
void live_end(struct live *live);

/* Wait for a key or a signal, at most until next. False: the program is to end. */
bool live_wait(const struct live *live, weir_time next);

/* The first row: the command, and what it shows. The last row: the keys. */
void live_title(const char *command, const char *what, bool paused);
void live_keys(const char *text);

/* Help text, below the title. */
void live_help(const char *const *lines, size_t count);

#endif
