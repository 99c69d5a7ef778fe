/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output.h - write files completely, or print a message.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The width of a column that also contains text. */
static inline int output_wide(int width, const char *text)
{
	int length = (int)strlen(text);

	return length > width ? length : width;
}

/* Open a file for writing; "-" is standard output. NULL, after a message, if that fails. */
FILE *output_open(const char *path);

/*
 * Close a file. False, after a message, if not all of it was written. NULL is valid; standard
 * output stays open.
 */
bool output_close(FILE *file, const char *path);

#endif
