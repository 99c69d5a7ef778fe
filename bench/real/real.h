/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * real.h - run a scenario with real threads and a real clock, through weir_try_acquire() and
 * weir_release().
 *
 * One thread makes the calls, at the times and with the work that the simulator draws from the same
 * seed. It also ends phases, and calls whose caller gives up. Each worker of a station is another
 * thread (staff.h).
 */
#ifndef REAL_H
#define REAL_H

#include "run.h"

/* NULL if the scenario can be run with threads, else a sentence that says why not. */
const char *real_unsupported(const struct scenario *scenario);

/* The number of threads that a station needs at most. */
unsigned real_members(const struct scenario *scenario, unsigned station);

/*
 * As run(), in real time. It uses scenario, limiter, seed and limits of the setup. In the result,
 * slices, settled, hash and the inflight area stay zero; above is 1 if more calls were ever in
 * flight than the highest limit. lateness gets the delay of every timed wake-up. Returns 0, or a
 * negative errno if the limiter cannot be created.
 */
int real_run(const struct run_setup *setup, struct run_result *result, struct tally *lateness);

#endif
