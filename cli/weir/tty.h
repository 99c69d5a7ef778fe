/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tty.h - the terminal that a live screen is drawn on, and the signals that reach it.
 *
 * Signals are blocked except in the wait for a key, so no handler, ncurses' own included, runs
 * while the screen is drawn.
 */
#ifndef TTY_H
#define TTY_H

#include <ncurses.h>
#include <signal.h>
#include <stdbool.h>
#include <weir/base.h>

struct tty {
	SCREEN *screen;
	sigset_t open; /* the signal mask during the wait */
};

/* False if the terminal cannot show it; a message, which suggests instead, has been printed. */
bool tty_begin(struct tty *tty, const char *command, const char *instead);

/* Restore the terminal. If a signal ended the program, raise it again. */
void tty_end(struct tty *tty);

/* Wait for a key or a signal, at most until next. False: the program is to end. */
bool tty_wait(const struct tty *tty, weir_time next);

#endif
