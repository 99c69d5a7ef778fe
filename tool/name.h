/*
 * name.h - names of shared limiters: those that were asked for or those there are, and how they are
 * shown.
 */
#ifndef NAME_H
#define NAME_H

#include <stddef.h>

/* Bytes of a name, its slash and its zero byte. */
#define NAME_ROOM 257

/* Bytes of a text that shows one: four for a byte that cannot be shown. */
#define SHOWN_ROOM (4 * NAME_ROOM)

struct names {
	char (*at)[NAME_ROOM];
	size_t count;
};

/*
 * The names that were asked for, a slash in front; without any all there are, by their order. 0, or
 * a negative errno and a sentence. Free with names_free(), after a failure too.
 */
int names_find(struct names *names, char *const *asked, size_t count, char *why, size_t why_size);
void names_free(struct names *names);

/*
 * Text that is safe to print. What is no character of the locale's, or has no shape, becomes \xNN,
 * so no name of somebody else's can command a terminal.
 */
const char *name_shown(const char *name, char *shown, size_t size);

/* One line on standard error: whose, and why. */
void name_complain(const char *name, const char *why);

#endif
