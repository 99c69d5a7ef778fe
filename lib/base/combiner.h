/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A combiner (as in flat combining): work that many threads may request, that one thread at a time
 * does for all of them, and that no thread waits for.
 *
 *   bits  0..31  0: no run; 1: a run; 2 or 3: a run, and another one is requested
 *   bits 32..63  number of the process that runs it (lib/base/layout.h)
 *
 * word     written by         order    pairs with
 * -------  -----------------  -------  ------------------------------------------
 * pending  begin: CAS         acq_rel  each other: what a run wrote, and what was
 * pending  done: CAS          acq_rel  done before each request, is visible to the next run
 * pending  over: exchange 0   acq_rel  the same
 * pending  recover: CAS       acq_rel  the same, except for the dead owner's unfinished run
 * pending  pending: load      acquire  done, over: what a run wrote
 *
 * The thread that raises pending from zero does the work, and does it again as long as another run
 * was requested meanwhile. All other threads leave at once. Requests are not counted: however many
 * there are during a run, one more run serves them. But each of them modifies the word, as every
 * one after the first flips 2 and 3. So each request is a modification of pending that precedes the
 * owner's next one, and what was done before a request is visible to a run that begins after it.
 *
 * The owner's process may die during a run. Then the process that detects this takes over the work,
 * with all requests, and first repairs what the dead process left unfinished.
 */
#ifndef WEIR_LIB_COMBINER_H
#define WEIR_LIB_COMBINER_H

#include <sched.h>
#include <stdbool.h>

#include "lib/base/layout.h"

#define COMBINER_OWNER_SHIFT 32

#define COMBINER_AGAIN 2 /* requested during a run; flipped with 3 by each further request */

static inline uint32_t combiner_requests(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t combiner_owner(uint64_t word)
{
	return (uint32_t)(word >> COMBINER_OWNER_SHIFT);
}

/* The word during a run of that owner, with no further request. */
static inline uint64_t combiner_run(uint32_t owner)
{
	return (uint64_t)owner << COMBINER_OWNER_SHIFT | 1;
}

/* The word after a request by that owner. */
static inline uint64_t combiner_request(uint64_t word, uint32_t owner)
{
	if (combiner_requests(word) == 0)
		return combiner_run(owner);
	return combiner_requests(word) < COMBINER_AGAIN ? word + 1 : word ^ 1;
}

/* Request a run. True: the caller must do the work, until combiner_done() or combiner_over(). */
static inline bool combiner_begin(_Atomic uint64_t *pending, uint32_t owner)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(pending, &word, combiner_request(word, owner),
						      memory_order_acq_rel, memory_order_relaxed))
		;
	return combiner_requests(word) == 0;
}

/* End a run. False: another one was requested meanwhile, so do the work again. */
static inline bool combiner_done(_Atomic uint64_t *pending)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);
	bool again;

	do {
		again = combiner_requests(word) >= COMBINER_AGAIN;
	} while (!atomic_compare_exchange_weak_explicit(
		pending, &word, again ? combiner_run(combiner_owner(word)) : 0,
		memory_order_acq_rel, memory_order_relaxed));
	return !again;
}

/*
 * Runs in a row after which another thread may take over, and runs after which this thread leaves
 * even if more are requested. Arbitrary: far more than concurrent requests cause.
 */
#define COMBINER_TURN   1024
#define COMBINER_ROUNDS (1024 * COMBINER_TURN)

/*
 * End a run. True: the caller may leave. rounds counts its runs in a row. Other threads may go on
 * requesting, and a faulty process that shares the word may store that one has; neither may keep a
 * thread here for ever. So every COMBINER_TURN runs the word is free for a moment. A thread that
 * makes a request in that moment takes over, and sees what was done before; if none does, the
 * caller makes the request itself. Threads that request often enough to cause every single run do
 * not miss a thousand such moments in a row.
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

/* Whether a run is going on, and its process. If none is, what the last run wrote is visible. */
static inline bool combiner_pending(const _Atomic uint64_t *pending, uint32_t *owner)
{
	const uint64_t word = atomic_load_explicit(pending, memory_order_acquire);

	*owner = combiner_owner(word);
	return combiner_requests(word) != 0;
}

/* Take over the run of a dead process. True: as for combiner_begin(). False: it had none. */
static inline bool combiner_recover(_Atomic uint64_t *pending, uint32_t dead, uint32_t owner)
{
	uint64_t word = atomic_load_explicit(pending, memory_order_relaxed);

	do {
		if (combiner_requests(word) == 0 || combiner_owner(word) != dead)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		pending, &word, combiner_run(owner), memory_order_acq_rel, memory_order_relaxed));
	return true;
}

#endif
