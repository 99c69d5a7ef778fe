/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that stop another process after single instructions. */
#ifndef WEIR_TESTS_SHM_TRACED_H
#define WEIR_TESTS_SHM_TRACED_H

#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../stress/check.h"

/* Exits with 77 where tracing is forbidden, or a debugger is attached already. */
static inline void need_ptrace(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0);
	CHECK(waitpid(child, &status, 0) == child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	puts("ptrace() is not to be had: skipped");
	exit(77);
}

#endif
