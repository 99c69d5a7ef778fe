/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record: a line of text, "A17 twenty degrees", which begins with its type, a letter, and its
 * number. Both together identify it. The type sets its cost at the database.
 */
#ifndef INGEST_RECORD_H
#define INGEST_RECORD_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a line, including the final 0. */
#define RECORD_MAX 256

enum { RECORD_TYPES = 2 };

struct record_type {
	char letter;
	unsigned cost; /* request units, as the database counts them */
	const char *stream;
};

extern const struct record_type record_types[RECORD_TYPES];

/* A line within a text. Not terminated by a 0. */
struct record_line {
	const char *text;
	size_t length;
	size_t id_length;
	const struct record_type *type;
};

/* The next line of a text that ends with a 0. 1; 0: none left; -1: it is not a record. */
int record_next(const char **text, struct record_line *line);

/* Whether all lines of a text are records. */
bool records_are_valid(const char *text);

#endif
