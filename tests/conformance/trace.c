/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - read a trace. The whole file is kept in memory and cut into strings in place:
 * the largest has some thousand short lines.
 */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest file, in bytes: far above any trace, far below the memory of any machine. */
#define FILE_MAX ((size_t)64 << 20)

static bool slurp(FILE *file, char **text, size_t *size, struct verdict *verdict)
{
	size_t room = 1 << 16, used = 0, got;
	char *buffer = malloc(room), *larger;

	while (buffer && (got = fread(buffer + used, 1, room - used, file)) > 0) {
		used += got;
		if (used < room)
			continue;
		larger = room < FILE_MAX ? realloc(buffer, room *= 2) : NULL;
		if (!larger)
			free(buffer);
		buffer = larger;
	}
	if (!buffer)
		return verdict_fail(verdict, 0, "the file is too large");
	*text = buffer;
	*size = used;
	if (ferror(file))
		return verdict_fail(verdict, 0, "cannot read: %s", strerror(errno));
	return true;
}

static size_t count_lines(const char *text)
{
	size_t count = 1;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		count++;
	return count;
}

static bool load(struct trace *trace, const char *path, struct verdict *verdict)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;
	bool good;
	char last;

	if (!file)
		return verdict_fail(verdict, 0, "cannot open: %s", strerror(errno));
	good = slurp(file, &trace->text, &size, verdict);
	fclose(file);
	if (!good)
		return false;
	if (size == 0)
		return verdict_fail(verdict, 0, "the file is empty");
	if (memchr(trace->text, '\0', size))
		return verdict_fail(verdict, 0, "the file is not text");
	/* A truncated number would still be a valid number. */
	last = trace->text[size - 1];
	trace->text[size - 1] = '\0';
	if (last != '\n')
		return verdict_fail(verdict, count_lines(trace->text), "the last line is cut off");
	return true;
}

/* Terminate the first line of *rest and advance *rest to the next. */
static char *next_line(char **rest)
{
	char *line = *rest, *end;

	if (!line)
		return NULL;
	end = strchr(line, '\n');
	if (end)
		*end++ = '\0';
	*rest = end;
	return line;
}

static bool add_key(struct trace *trace, char *line, size_t number, struct verdict *verdict)
{
	char *name = line + strspn(line, "# "), *value = strchr(name, '=');

	if (!value)
		return verdict_fail(verdict, number, "header line without '='");
	*value++ = '\0';
	trace->keys[trace->key_count++] = (struct trace_key){.name = name, .value = value};
	return true;
}

static bool cut(struct trace *trace, struct verdict *verdict)
{
	char *rest = trace->text, *line;
	size_t number = 0;

	while ((line = next_line(&rest)) != NULL) {
		number++;
		if (trace->columns) {
			trace->rows[trace->row_count++] = line;
		} else if (line[0] != '#') {
			trace->columns = line;
			trace->columns_line = number;
		} else if (!add_key(trace, line, number, verdict)) {
			return false;
		}
	}
	if (!trace->columns)
		return verdict_fail(verdict, number, "the file ends within the header");
	return true;
}

static bool check_length(const struct trace *trace, struct verdict *verdict)
{
	int64_t rows = 0;

	if (!trace_int(trace, "rows", &rows, verdict))
		return false;
	if (rows < 1 || (uint64_t)rows != trace->row_count)
		return verdict_fail(verdict, trace_line(trace, trace->row_count),
				    "the header says %" PRId64 " rows, but there are %zu", rows,
				    trace->row_count);
	return true;
}

bool trace_read(struct trace *trace, const char *path, struct verdict *verdict)
{
	size_t lines;

	*trace = (struct trace){0};
	if (!load(trace, path, verdict))
		return false;
	lines = count_lines(trace->text);
	trace->keys = calloc(lines, sizeof(*trace->keys));
	trace->rows = calloc(lines, sizeof(*trace->rows));
	if (!trace->keys || !trace->rows)
		return verdict_fail(verdict, 0, "out of memory");
	return cut(trace, verdict) && check_length(trace, verdict);
}

void trace_free(struct trace *trace)
{
	free(trace->rows);
	free(trace->keys);
	free(trace->text);
}

static const struct trace_key *find_key(const struct trace *trace, const char *prefix,
					const char *name)
{
	size_t length = strlen(prefix), i;

	for (i = 0; i < trace->key_count; i++) {
		if (strncmp(trace->keys[i].name, prefix, length) == 0 &&
		    strcmp(trace->keys[i].name + length, name) == 0)
			return &trace->keys[i];
	}
	return NULL;
}

const char *trace_find(const struct trace *trace, const char *prefix, const char *name)
{
	const struct trace_key *key = find_key(trace, prefix, name);

	return key ? key->value : NULL;
}

size_t trace_key_line(const struct trace *trace, const char *prefix, const char *name)
{
	const struct trace_key *key = find_key(trace, prefix, name);

	/* The header has one key a line. */
	return key ? (size_t)(key - trace->keys) + 1 : 0;
}

bool trace_text(const struct trace *trace, const char *prefix, const char *name, const char **value,
		struct verdict *verdict)
{
	*value = trace_find(trace, prefix, name);
	if (*value)
		return true;
	return verdict_fail(verdict, trace->columns_line, "the header ends without the key %s%s",
			    prefix, name);
}

bool trace_int(const struct trace *trace, const char *name, int64_t *value, struct verdict *verdict)
{
	const char *text;

	if (!trace_text(trace, "", name, &text, verdict))
		return false;
	if (text_to_int(text, INT64_MIN, INT64_MAX, value))
		return true;
	return verdict_fail(verdict, trace_key_line(trace, "", name), "%s=%s is not a whole number",
			    name, text);
}

bool trace_has_columns(const struct trace *trace, const char *columns, struct verdict *verdict)
{
	if (strcmp(trace->columns, columns) == 0)
		return true;
	return verdict_fail(verdict, trace->columns_line, "the columns are not %s", columns);
}

size_t trace_line(const struct trace *trace, size_t row)
{
	return trace->columns_line + 1 + row;
}

bool trace_fields(const struct trace *trace, size_t row, char **fields, size_t count,
		  struct verdict *verdict)
{
	char *rest = trace->rows[row];
	size_t found = 0;
	int64_t number;

	while (rest && found < count)
		fields[found++] = strsep(&rest, ",");
	if (rest || found < count)
		return verdict_fail(verdict, trace_line(trace, row),
				    "the row has %s than %zu fields", rest ? "more" : "fewer",
				    count);
	if (!text_to_int(fields[0], 0, INT64_MAX, &number) || (uint64_t)number != row)
		return verdict_fail(verdict, trace_line(trace, row),
				    "the row's number is %s instead of %zu", fields[0], row);
	return true;
}

bool text_to_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
	char *end;

	if (text[strspn(text, "-0123456789")] != '\0' || text[0] == '\0')
		return false;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' && *value >= min && *value <= max;
}

bool text_to_double(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0';
}
