/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict.h - the result of a trace and its reason, printed as one line.
 *
 * Functions that take a verdict return true and leave it unchanged, or set it and
 * return false, so that the first reason is printed.
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
	size_t row;  /* the first that differs; SIZE_MAX: none, or the state after the last row */
	char text[400];
};

bool verdict_fail(struct verdict *verdict, size_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool verdict_skip(struct verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Add a remark to a trace that passed. */
void verdict_note(struct verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Fail if the value of a row differs from that of weir. */
bool verdict_match(struct verdict *verdict, size_t line, size_t row, const char *column,
		   int64_t expected, int64_t got);

/* Print the result of a file. A file that passed is printed only if `all` is true. */
void verdict_print(const struct verdict *verdict, const char *path, bool all);

#endif
