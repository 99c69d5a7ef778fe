/*
 * An errand: work that many threads may ask for and one at a time does, with
 * nobody waiting for it.
 *
 *   bits  0..31  0: no run is going on; 1: one is; 2 or 3: and another was asked for
 *   bits 32..63  whose process is at it (lib/base/layout.h)
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ------------------------------------------
 * pending  begin: CAS         acq_rel  each other: what a run leaves behind, and what
 * pending  done: CAS          acq_rel  was done before each asking, passes on to the next run
 * pending  over: exchange 0   acq_rel  the same
 * pending  inherit: CAS       acq_rel  the same, but for what its dead owner had in hand
 * pending  pending: load      acquire  end: what has been done
 *
 * The thread that raises pending from zero does the errand, and runs it again as long as another
 * run was asked for meanwhile; all others leave at once. Requests are not counted: however many
 * there are during a run, one more run answers them. But each of them changes the word, as every
 * one after the first flips 2 and 3. So each is a modification of pending, which comes before the
 * owner's next one, and what was done before a request is seen by a run that begins after it. The
 * owner's process may die in the middle. Then the process that finds that out inherits the errand,
 * with all that was asked, and first repairs what the dead one left unfinished.
 */
#ifndef WEIR_LIB_COMBINER_H
#define WEIR_LIB_COMBINER_H

#include <sched.h>
#include <stdbool.h>

#include "lib/base/layout.h"

#define COMBINER_OWNER_SHIFT 32

#define COMBINER_AGAIN 2 /* asked for while a run is going on; ^ 1 with each further request */

static inline uint32_t combiner_asked(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t combiner_owner(uint64_t word)
{
	return (uint32_t)(word >> COMBINER_OWNER_SHIFT);
}

/* The word while that owner's run goes on, and no other was asked for. */
static inline uint64_t combiner_run(uint32_t owner)
{
	return (uint64_t)owner << COMBINER_OWNER_SHIFT | 1;
}

static inline uint64_t combiner_ask(uint64_t word, uint32_t owner)
{
	if (combiner_asked(word) == 0)
		return combiner_run(owner);
	return combiner_asked(word) < COMBINER_AGAIN ? word + 1 : word ^ 1;
}

/* Ask for it. True: the caller has to do it, until combiner_done(). */
static inline bool combiner_begin(_Atomic uint64_t *pending, uint32_t owner)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(pending, &word, combiner_ask(word, owner),
						      memory_order_acq_rel, memory_order_relaxed))
		;
	return combiner_asked(word) == 0;
}

/* A run is over. False: others have asked meanwhile, so do it again. */
static inline bool combiner_done(_Atomic uint64_t *pending)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);
	bool again;

	do {
		again = combiner_asked(word) >= COMBINER_AGAIN;
	} while (!atomic_compare_exchange_weak_explicit(
		pending, &word, again ? combiner_run(combiner_owner(word)) : 0,
		memory_order_acq_rel, memory_order_relaxed));
	return !again;
}

/*
 * Rounds after which another thread may go on with an errand, and after which it is left, whether
 * it was asked for or not.
 */
#define COMBINER_TURN   1024
#define COMBINER_ROUNDS (1024 * COMBINER_TURN)

/*
 * Whether the caller, which has done that many rounds, may leave. Other threads may go on asking,
 * and a process that shares the word may store in it that one has: neither keeps a thread at the
 * errand for ever. After some rounds the errand is free for an instant. A thread that asks then
 * does it, and sees what was done before; if none does, the caller asks again itself. Threads that
 * ask often enough to cause a round each time do not miss such an instant a thousand times.
 */
static inline bool combiner_over(_Atomic uint64_t *pending, uint32_t owner, uint32_t *rounds)
{
	if (combiner_done(pending))
		return true;
	if (LIKELY(++*rounds % COMBINER_TURN != 0))
		return false;
	(void)atomic_exchange_explicit(pending, 0, memory_order_acq_rel);
	if (*rounds >= COMBINER_ROUNDS)
		return true;
	sched_yield();
	return !combiner_begin(pending, owner);
}

/* Whether a thread is doing it, and its process. Acquire: what was done, if none is. */
static inline bool combiner_pending(const _Atomic uint64_t *pending, uint32_t *owner)
{
	const uint64_t word = atomic_load_explicit(pending, memory_order_acquire);

	*owner = combiner_owner(word);
	return combiner_asked(word) != 0;
}

/* If it is that owner's, who is dead, it is the caller's from now on: as combiner_begin(). */
static inline bool combiner_recover(_Atomic uint64_t *pending, uint32_t dead, uint32_t owner)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);

	do {
		if (combiner_asked(word) == 0 || combiner_owner(word) != dead)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		pending, &word, combiner_run(owner), memory_order_acq_rel, memory_order_relaxed));
	return true;
}

#endif
