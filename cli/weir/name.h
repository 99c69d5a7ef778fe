/*
 * name.h - names of shared limiters: those that were asked for or those there are, and how they are
 * shown.
 */
#ifndef NAME_H
#define NAME_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of a name, its slash and its zero byte. */
#define NAME_ROOM 257

/* Bytes of a text that shows one: four for a byte that cannot be shown. */
#define SHOWN_ROOM (4 * NAME_ROOM)

/* The most users that --user can name. */
#define USERS_MAX 16

/*
 * The limiters that a command works on: those that are named, or all that belong to trusted users,
 * which are the effective user, root and these.
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

/* Parse these options and names. ARGP_ERR_UNKNOWN: it is another one. */
error_t choice_option(struct choice *choice, int key, char *arg, struct argp_state *state);

/* One limiter, and the user it may belong to: WEIR_SHM_ANY_USER if it was named. */
struct name {
	char text[NAME_ROOM];
	uint32_t owner;
};

/* Limiters that are there and are not shown. */
struct left_out {
	unsigned of_others; /* that belong to users that are not trusted */
	unsigned open;      /* that every user can write to */
	uint32_t users[4];  /* some of the former */
	size_t user_count;
};

struct names {
	struct name *at;
	size_t count;
	struct left_out left_out;
};

/*
 * The names that were asked for, a slash in front; without any all there are, by their order. 0, or
 * a negative errno and a sentence. Free with names_free(), after a failure too.
 */
int names_find(struct names *names, const struct choice *choice, char *why, size_t why_size);
void names_free(struct names *names);

/* Print one line on standard error about what is left out; none if nothing is. */
void left_out_tell(const struct left_out *left_out);

/*
 * Text that is safe to print. A byte or character that is none of the locale, is not printable, or
 * changes how others are displayed becomes \xNN, so no name that another user has chosen can
 * control a terminal.
 */
const char *name_shown(const char *name, char *shown, size_t size);

/* The same for labels in a text for scrapers, which is UTF-8: printed, with \\\\xNN in it. */
void labels_print(FILE *out, const char *text, size_t size);

/* One line on standard error: whose, and why. */
void name_complain(const char *name, const char *why);

#endif
