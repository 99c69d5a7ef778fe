/*
 * live.h - a program that shows something on a terminal again and again: the terminal, and signals.
 *
 * All happens between two waits for a key, a signal or the next reading. Signals are blocked but in
 * that wait, so that no handler, ncurses' neither, meets a screen that is being drawn.
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

/* False: the terminal has no use for it, and that has been said. instead: for programs. */
bool live_begin(struct live *live, const char *command, const char *instead);

/* Leave the terminal as it was; and end as a signal said, if one did. */
void live_end(struct live *live);

/* Wait for a key or a signal, until that time. False: it is to end. */
bool live_wait(const struct live *live, weir_time next);

/* The first row: of the command, and what it shows; and the last one. */
void live_title(const char *command, const char *what, bool paused);
void live_keys(const char *text);

/* Lines of help, below the title. */
void live_help(const char *const *lines, size_t count);

#endif
