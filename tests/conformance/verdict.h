/*
 * verdict.h - how a trace fared, and why: one line for whoever reads the output.
 *
 * Functions that take a verdict answer true and leave it alone, or set it and
 * answer false, so that the first reason is the one that is printed.
 */
#ifndef CONFORM_VERDICT_H
#define CONFORM_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verdict_kind {
	VERDICT_PASSED,
	VERDICT_FAILED,
	VERDICT_SKIPPED,
};

struct verdict {
	enum verdict_kind kind;
	size_t line; /* of the file; 0: the file as a whole */
	size_t row;  /* the first that differs; SIZE_MAX: none, or the state after the last */
	char text[400];
};

bool verdict_fail(struct verdict *verdict, size_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool verdict_skip(struct verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What is worth knowing of a trace that passed. */
void verdict_note(struct verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Where a row says one thing and weir another. */
bool verdict_match(struct verdict *verdict, size_t line, size_t row, const char *column,
		   int64_t expected, int64_t got);

/* Print what there is to say of the file; of one that passed only if all is true. */
void verdict_print(const struct verdict *verdict, const char *path, bool all);

#endif
