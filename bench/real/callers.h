/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callers.h - run a scenario with several callers: threads of one process around a private limiter,
 * or processes around a shared one. The service is the same in both cases: a process with a thread
 * for each worker, which gets calls and sends answers through sockets.
 *
 * Call number n of the timetable is made by caller n modulo the number of callers. A caller is one
 * thread, which acquires, sends, and releases as answers arrive.
 */
#ifndef CALLERS_H
#define CALLERS_H

#include "run.h"

#define CALLERS_MAX 64

/*
 * As real_run(). It forks, so the process must have no other threads. Returns 0, or a negative
 * errno if a limiter cannot be created or a caller has failed.
 */
int callers_run(const struct run_setup *setup, unsigned count, bool processes,
		struct run_result *result);

#endif
