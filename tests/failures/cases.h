/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of attempts, each of which is made to fail at its first allocation, at its second, and so
 * on until it succeeds untouched; then likewise at each system call, with each of its errors.
 *
 * After each failure the result is a documented one; another attempt succeeds, and what it made
 * works; and when everything has been ended, nothing is left that was not there before.
 */
#ifndef WEIR_TESTS_FAILURES_CASES_H
#define WEIR_TESTS_FAILURES_CASES_H

#include <errno.h>

#include "../stress/check.h"
#include "faults.h"

/* For these kinds of faults the documented result is another one than the negative errno. */
struct instead {
	unsigned kinds; /* FAULT_BITs; 0: the list ends */
	int result;     /* 0: the function copes without it */
};

struct failure_case {
	const char *functions; /* the public ones that are tested, separated by spaces */
	const char *what;      /* which case of them; may be NULL */
	void (*begin)(void);   /* make what the attempt needs; may be NULL */
	int (*attempt)(void);  /* what is tested, and nothing else: 0, or a negative errno */
	void (*failed)(void);  /* nothing is half made; may be NULL */
	void (*use)(void);     /* it works, after success; may be NULL */
	void (*end)(void);     /* undo begin and a successful attempt; may be NULL */
	/*
	 * Other documented results. One without allocations and system calls has quiet set: then the
	 * test fails if there are any.
	 */
	struct instead instead[6];
	bool quiet;
};

/* Of cases that take long: let single calls fail, and not also all that follow. */
void cases_only_single(void);

/*
 * Run the cases, or only list their functions: main()'s arguments are "--list", or words of which
 * one is in the name of a case. Returns main()'s result.
 */
int cases_run(const struct failure_case *cases, size_t count, int argc, char **argv);

#endif
