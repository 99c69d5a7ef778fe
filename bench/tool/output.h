/*
 * output.h - files that are written: all of it, or a message.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* "-" is standard output. NULL, after a message: it cannot be. */
FILE *output_open(const char *path);

/* False, after a message: not all of it was written. NULL is closed well. */
bool output_close(FILE *file, const char *path);

#endif
