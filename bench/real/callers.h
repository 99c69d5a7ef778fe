/*
 * callers.h - a scenario whose calls come from several callers: threads of one process, with a
 * limiter of their own, or processes that share one. The service is the same: a process with a
 * thread for each worker, to which a call goes through a socket, and an answer back.
 *
 * Call number n of the timetable is brought by caller n modulo their number. A caller is one
 * thread, which acquires, sends, and releases as answers come.
 */
#ifndef CALLERS_H
#define CALLERS_H

#include "run.h"

#define CALLERS_MAX 64

/*
 * As real_run(). To be called in a process that has no other threads: it forks. 0, or a negative
 * errno: a limiter cannot be made, or a caller has failed.
 */
int callers_run(const struct run_setup *setup, unsigned count, bool processes,
		struct run_result *result);

#endif
