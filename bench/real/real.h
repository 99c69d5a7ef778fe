/*
 * real.h - a scenario with real threads, on a real clock, through the functions that everybody
 * calls: weir_try_acquire() and weir_release().
 *
 * One thread brings the calls, at the times and with the work that the simulator draws from the
 * same seed. It also ends phases, and calls whose caller waits no longer. Each worker of a
 * station is another thread (staff.h).
 */
#ifndef REAL_H
#define REAL_H

#include "run.h"

/* NULL if the scenario can be run so, or else a sentence. */
const char *real_unsupported(const struct scenario *scenario);

/* The most threads that a station ever needs. */
unsigned real_members(const struct scenario *scenario, unsigned station);

/*
 * As run(), which takes as long as the scenario does. Of the setup it reads scenario, limiter, seed
 * and limits. Of the result, slices, settled, hash and the area in flight stay zero; above is 1 if
 * more was ever in flight than the highest limit there was. lateness: of every wake-up that had a
 * time. 0, or a negative errno if the limiter cannot be made.
 */
int real_run(const struct run_setup *setup, struct run_result *result, struct tally *lateness);

#endif
