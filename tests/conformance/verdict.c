/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict.c - keep a reason as text and print it in the form file:line: reason,
 * which editors understand.
 */
#include "verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool verdict_fail(struct verdict *verdict, size_t line, const char *format, ...)
{
	va_list args;

	*verdict = (struct verdict){.kind = VERDICT_FAILED, .line = line, .row = SIZE_MAX};
	va_start(args, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	va_end(args);
	return false;
}

bool verdict_skip(struct verdict *verdict, const char *format, ...)
{
	va_list args;

	*verdict = (struct verdict){.kind = VERDICT_SKIPPED, .row = SIZE_MAX};
	va_start(args, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	va_end(args);
	return false;
}

void verdict_note(struct verdict *verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	va_end(args);
}

bool verdict_match(struct verdict *verdict, size_t line, size_t row, const char *column,
		   int64_t expected, int64_t got)
{
	if (expected == got)
		return true;
	verdict_fail(verdict, line, "row %zu: %s: expected %" PRId64 ", got %" PRId64, row, column,
		     expected, got);
	verdict->row = row;
	return false;
}

void verdict_print(const struct verdict *verdict, const char *path, bool all)
{
	switch (verdict->kind) {
	case VERDICT_PASSED:
		if (all)
			printf("%s: passed%s%s\n", path, verdict->text[0] ? "; " : "",
			       verdict->text);
		break;
	case VERDICT_FAILED:
		if (verdict->line != 0)
			printf("%s:%zu: %s\n", path, verdict->line, verdict->text);
		else
			printf("%s: %s\n", path, verdict->text);
		break;
	case VERDICT_SKIPPED:
		printf("%s: skipped: %s\n", path, verdict->text);
		break;
	}
}
