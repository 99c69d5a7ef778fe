/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name.h - names of shared limiters: those on the command line, or those that exist, and how names
 * are printed.
 */
#ifndef NAME_H
#define NAME_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of a name with its slash and its terminating zero. */
#define NAME_ROOM 257

/* Bytes of a printed name: four for each byte that is not printable. */
#define SHOWN_ROOM (4 * NAME_ROOM)

/* The most --user options. */
#define USERS_MAX 16

/*
 * The limiters that a command works on: those named on the command line, or else all that belong to
 * trusted users: the effective user, root, and those given by --user.
 */
struct choice {
	char *const *asked; /* the caller's */
	size_t count;       /* 0: all */
	uint32_t users[USERS_MAX];
	size_t user_count;
};

#define CHOICE_OPTIONS                                                                             \
	{                                                                                          \
		"user", 'u', "USER", 0,                                                            \
			"Without names, those of this user as well; may be repeated", 0            \
	}

/* Parse these options and the names. ARGP_ERR_UNKNOWN for any other option. */
error_t choice_option(struct choice *choice, int key, char *arg, struct argp_state *state);

/* A limiter, and the user that must own it: WEIR_SHM_ANY_USER if it was named explicitly. */
struct name {
	char text[NAME_ROOM];
	uint32_t owner;
};

/* Limiters that exist and are not shown. */
struct left_out {
	unsigned of_others; /* owned by users that are not trusted */
	unsigned open;      /* writable by every user */
	uint32_t users[4];  /* some of their owners */
	size_t user_count;
};

struct names {
	struct name *at;
	size_t count;
	struct left_out left_out;
};

/*
 * The names on the command line, each with a leading slash; without any, all that exist, sorted.
 * 0, or a negative errno and a sentence. Call names_free() after a failure, too.
 */
int names_find(struct names *names, const struct choice *choice, char *why, size_t why_size);
void names_free(struct names *names);

/* Print one line about it on standard error, if anything is left out. */
void left_out_print(const struct left_out *left_out);

/*
 * A name as text that is safe to print. A byte that is invalid in the locale, and a character that
 * is not printable or changes how others are displayed, becomes \xNN. So a name that another user
 * chose cannot control the terminal.
 */
const char *name_shown(const char *name, char *shown, size_t size);

/* Print metrics text, which is UTF-8, with the same bytes escaped as \\\\xNN. */
void labels_print(FILE *out, const char *text, size_t size);

/* Print one line on standard error: the name, and why. */
void name_complain(const char *name, const char *why);

#endif
