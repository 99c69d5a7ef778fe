/*
 * output.h - files that are written: all of it, or a message.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The width of a column that this is in, too. */
static inline int output_wide(int width, const char *text)
{
	int length = (int)strlen(text);

	return length > width ? length : width;
}

/* "-" is standard output. NULL, after a message: it cannot be. */
FILE *output_open(const char *path);

/*
 * False, after a message: not all of it was written. NULL is closed well; standard output stays
 * open.
 */
bool output_close(FILE *file, const char *path);

#endif
