/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - a recorded trace: a header of keys, then rows of text.
 *
 * traces/README.md describes the format. The file is checked while it is read, so
 * that a damaged file is not taken for a wrong limit.
 */
#ifndef CONFORM_TRACE_H
#define CONFORM_TRACE_H

#include "verdict.h"

struct trace_key {
	const char *name;
	const char *value;
};

struct trace {
	char *text; /* the file, cut into strings that the other fields point to */
	struct trace_key *keys;
	size_t key_count;
	const char *columns;
	size_t columns_line;
	char **rows;
	size_t row_count;
};

bool trace_read(struct trace *trace, const char *path, struct verdict *verdict);
void trace_free(struct trace *trace);

/* The value of the key whose name is prefix followed by name, or NULL. */
const char *trace_find(const struct trace *trace, const char *prefix, const char *name);

/* The line of that key; 0 if it does not exist. */
size_t trace_key_line(const struct trace *trace, const char *prefix, const char *name);

/* Like trace_find(), but a missing key, or one that is not a number, fails the trace. */
bool trace_text(const struct trace *trace, const char *prefix, const char *name, const char **value,
		struct verdict *verdict);
bool trace_int(const struct trace *trace, const char *name, int64_t *value,
	       struct verdict *verdict);

/* Check that the rows have exactly these columns. */
bool trace_has_columns(const struct trace *trace, const char *columns, struct verdict *verdict);

/* Cut a row into `count` fields, the first of which is its number. Call once for each row. */
bool trace_fields(const struct trace *trace, size_t row, char **fields, size_t count,
		  struct verdict *verdict);

/* The line of a row in the file. */
size_t trace_line(const struct trace *trace, size_t row);

/* Parse a whole number within the bounds, with nothing after it. */
bool text_to_int(const char *text, int64_t min, int64_t max, int64_t *value);
bool text_to_double(const char *text, double *value);

#endif
