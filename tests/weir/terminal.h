/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * terminal.h - a program on a terminal that is a model: what it writes becomes a screen.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

/* What has become of the program. */
enum fate {
	RUNNING,
	STOPPED,
	EXITED, /* with the number */
	KILLED, /* by the signal of that number */
};

struct terminal {
	VTerm *vt;
	VTermScreen *screen;
	int rows, columns;
	bool alternate, cursor; /* what the program has set */
	bool ascii;             /* it has written nothing else so far */

	int master;            /* of the pseudo-terminal */
	int news;              /* of its parent: a struct news each */
	pid_t parent, program; /* the parent is in between, as a shell is */
	struct termios before;
	enum fate fate;
	int number;
};

/* Start it; or end this program. */
void terminal_start(struct terminal *t, int columns, int rows, char *const *argv);
void terminal_end(struct terminal *t);

/* Take in what it writes and what becomes of it. False: for so long there is nothing. */
bool terminal_wait(struct terminal *t, int ms);

void terminal_resize(struct terminal *t, int columns, int rows);
void terminal_type(struct terminal *t, const char *bytes, size_t size);

/* Whether it is as the program found it. */
bool terminal_restored(const struct terminal *t);

/* A row as UTF-8, without the blanks at its end: size is that of text. */
void terminal_row(const struct terminal *t, int row, char *text, size_t size);

/* What is on the screen, as a picture in a file; false: it cannot be written. */
bool drawing_write(const struct terminal *t, const char *path);

/* UTF-8 of a character, ended by a zero byte; the number of bytes, 4 at most. */
size_t terminal_utf8(unsigned long c, char *text);

#endif
