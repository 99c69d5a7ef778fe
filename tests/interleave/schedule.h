/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a scene's threads, one at a time, and makes every choice that a run has: which thread takes
 * the next step, which value a load returns, which thread dies.
 *
 * A run is determined by its choices, so a list of them replays it. The list is explored depth
 * first: it is replayed up to its last choice with an alternative left, that one is taken, and what
 * follows takes the first choice each time, which is to go on with the same thread and to read the
 * newest value.
 *
 * Bounds make that finite (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007): on the
 * preemptions, stale reads and timeouts in one run. Two runs that lead to the same state need only
 * be followed once. A state is known by the history of each thread: what it did, in which order,
 * and which store each of its loads returned; all else follows from that.
 */
#ifndef WEIR_TESTS_INTERLEAVE_SCHEDULE_H
#define WEIR_TESTS_INTERLEAVE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/interleave/explore.h"

struct bounds {
	unsigned preemptions, stale, timeouts, deaths;
};

enum outcome { RUN_ENDED, RUN_KNOWN, RUN_FAILED, RUN_LEARNED };

/* Run the scene once, by the choices that are in the list, and first choices after them. */
enum outcome schedule_run(const struct scene *scene, const struct bounds *bounds);

/* Move on to the next list of choices. False: there is none left. */
bool schedule_next(void);

/* An empty list, and no state known. */
void schedule_reset(void);

/* From now on choices are random, from that seed: PCT, with that many changes of priority. */
void schedule_random(uint64_t seed, unsigned changes, unsigned length);

/* The list as text, and from text. While it is replayed no state counts as known. */
size_t schedule_print(char *text, size_t size);
bool schedule_parse(const char *text);

uint64_t schedule_states(void);
unsigned schedule_steps(void); /* of the last run */
const char *schedule_failure(void);

/* For memory.c, tsan.c and system.c: of the running thread. */

/* Whether threads run, and not setup or check. */
bool schedule_running(void);
unsigned schedule_self(void);
unsigned schedule_threads(void); /* so far */
unsigned schedule_cpu(void);
bool schedule_is_mortal(void);

/* Whether the address is on the running thread's stack, or of its thread-local variables. */
bool schedule_is_own(const volatile void *address);

/* Before each step that other threads can notice: others may run first. */
void schedule_point(const void *pc);

/* Before each plain store to memory that others might read: a mortal thread may die. */
void schedule_store(const void *pc);

/* One of count choices, from 0. */
unsigned schedule_choose(unsigned count);

/* Whether a stale read is still within the bounds, and that one was made. */
bool schedule_may_be_stale(void);
void schedule_was_stale(void);

/* The step made, as part of the thread's history. Returns a number that identifies it. */
uint64_t schedule_did(uint64_t what, uint64_t with);

/* The same load returned the same value again: the thread may be spinning. */
void schedule_read(const void *pc, uint64_t store);
void schedule_wrote(void);

/* Other threads shall run first, if any can. */
void schedule_yield(void);

/*
 * Sleep until schedule_wake() for that key, or the deadline (UINT64_MAX: none). False: it passed.
 */
bool schedule_sleep(const void *key, uint64_t deadline, const void *pc);
/* Wake one sleeper or all. */
void schedule_wake(const void *key, bool all);

/* Another thread; returns its number. */
unsigned schedule_spawn(void *(*run)(void *), void *arg);
bool schedule_ended(unsigned thread);

/* A word more is known to be shared: the run ends, and exploring begins again. */
_Noreturn void schedule_learned(void);

#endif
