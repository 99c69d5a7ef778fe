/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate: one word that decides every admission.
 *
 *   bits  0..23  permits in flight, plus ZERO
 *   bits 24..46  the limit
 *   bit  47      flips when the word is touched, a modification that changes nothing else
 *   bits 48..63  waiters: announced, and not yet served or gone
 *
 * In flight is counted from ZERO, the middle of its field, so that a permit given back by mistake,
 * which no call held, does not borrow from the limit beside it. Such a permit is added back at
 * once. Until then the number in flight is below zero, and no call is admitted.
 *
 * The numbers share one word so that each decision uses the values of one moment. An admission is a
 * compare-and-swap, so it cannot succeed once a lower limit is in the word, nor together with
 * another admission for the last permit. A call that asks for more than the limit takes all of it,
 * and the same compare-and-swap decides how much that is: at least one, as a limit of zero admits
 * no call. A limit that falls below what is in flight revokes nothing: no call is admitted until
 * enough others have ended.
 *
 * word   written by                      order    pairs with
 * -----  ------------------------------  -------  ---------------------------------------
 * word   reserve: CAS, in flight + cost  acq_rel  give back: what the last holder of a
 *                                                 permit wrote is visible to the next; and
 *                                                 read_acquire: what came before it
 * word   give back: in flight - cost     release  reserve
 * word   give back of nothing: in        relaxed  nothing: it mends the line above
 *        flight + cost
 * word   announce: waiters +1            acq_rel  touch; and read_acquire: a waiter that is
 *                                                 seen here is seen in its slot, which is
 *                                                 TAKEN (lib/wait/recovery.c). Its data is
 *                                                 ordered by the queue's own words
 * word   retract: waiters -1             relaxed  nothing: a number
 * word   set limit: CAS                  release  announce, and reserve: why a limit is 0, in
 *                                                 resume (lib/admission/admission.h). Else a
 *                                                 limit is only a number
 * word   touch: bit 47 flips             acq_rel  announce: see lib/admission/permit_cache.h
 * lent   lib/admission/permit_cache.h
 *
 * All writes are read-modify-writes, so they continue the release sequence that a give back began,
 * and reserve still pairs with it. A refused call has read the word with acquire, so what it reads
 * next to confirm the refusal is as it was then, or later.
 *
 * That every waiter is served rests on all of these being modifications of one word, and so in one
 * order; lib/wait/slots.h has the argument.
 */
#ifndef WEIR_LIB_GATE_H
#define WEIR_LIB_GATE_H

#include <stdbool.h>

#include "lib/base/layout.h"

#define GATE_LIMIT_SHIFT   24
#define GATE_WAITERS_SHIFT 48
#define GATE_WAITERS_MAX   0xffffu
#define GATE_WAITER        (UINT64_C(1) << GATE_WAITERS_SHIFT)

#define GATE_FIELD ((UINT32_C(1) << GATE_LIMIT_SHIFT) - 1)
#define ZERO       (UINT32_C(1) << (GATE_LIMIT_SHIFT - 1))

_Static_assert(WEIR_LIMIT_MAX == ZERO - 1,
	       "the number in flight fills the upper half of its field");

/* The limit needs one bit less than the number in flight. */
#define GATE_LIMIT_FIELD (ZERO - 1)
#define GATE_TOUCH       ((uint64_t)ZERO << GATE_LIMIT_SHIFT)

struct gate {
	_Alignas(LINE) _Atomic uint64_t word;
	_Atomic uint32_t lent; /* part of what is in flight; lib/admission/permit_cache.h */
};

/* Permits in flight; if that is below zero, a number above every limit. */
static inline uint32_t gate_taken(uint64_t word)
{
	return ((uint32_t)word & GATE_FIELD) - ZERO;
}

static inline uint32_t gate_inflight(uint64_t word)
{
	uint32_t taken = gate_taken(word);

	return LIKELY(taken <= WEIR_LIMIT_MAX) ? taken : 0;
}

static inline uint32_t gate_limit(uint64_t word)
{
	return (uint32_t)(word >> GATE_LIMIT_SHIFT) & GATE_LIMIT_FIELD;
}

/* Permits that a call takes if it asks for want: at most the whole limit, and at least one. */
static inline uint32_t gate_cost(uint64_t word, uint32_t want)
{
	uint32_t limit;

	if (LIKELY(want == 1))
		return 1;
	limit = gate_limit(word);
	if (LIKELY(want < limit))
		return want;
	return limit > 0 ? limit : 1;
}

static inline uint32_t gate_waiters(uint64_t word)
{
	return (uint32_t)(word >> GATE_WAITERS_SHIFT);
}

static inline void gate_init(struct gate *g, uint32_t limit)
{
	atomic_init(&g->word, (uint64_t)limit << GATE_LIMIT_SHIFT | ZERO);
	atomic_init(&g->lent, 0);
}

static inline uint64_t gate_read(const struct gate *g)
{
	return atomic_load_explicit(&g->word, memory_order_relaxed);
}

/* The same with acquire, ordered before all later reads. */
static inline uint64_t gate_read_acquire(const struct gate *g)
{
	return atomic_load_explicit(&g->word, memory_order_acquire);
}

/*
 * Take want permits for a call, or the whole limit if that is less, if leave permits then remain
 * free. Returns the number taken and sets *inflight to the number in flight with them; 0: refused.
 * Without overtake, the call is refused while any call waits.
 */
static inline uint32_t gate_reserve(struct gate *g, uint32_t want, uint32_t leave, bool overtake,
				    uint32_t *inflight)
{
	uint64_t word = gate_read_acquire(g);
	uint32_t cost;

	do {
		cost = gate_cost(word, want);
		if ((uint64_t)gate_taken(word) + cost + leave > gate_limit(word))
			return 0;
		if (!overtake && gate_waiters(word) != 0)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&g->word, &word, word + cost, memory_order_acq_rel, memory_order_acquire));
	*inflight = gate_inflight(word) + cost;
	return cost;
}

/*
 * Prefetch the word's cache line for writing while the clock is being read: where threads on
 * several CPUs share the line, that hides most of the transfer. Not for reserve(), which may end in
 * a refusal, and a refusal must not take the line away from others.
 */
static inline void gate_expect(struct gate *g)
{
	__builtin_prefetch(&g->word, 1);
}

/* Give permits back without a check. Returns the word before; see gate_held(). */
static inline uint64_t gate_subtract(struct gate *g, uint32_t cost)
{
	return atomic_fetch_sub_explicit(&g->word, cost, memory_order_release);
}

/* Whether at least cost permits were in flight in the word before. */
static inline bool gate_held(uint64_t before, uint32_t cost)
{
	uint32_t taken = gate_taken(before);

	return LIKELY(taken >= cost && taken <= WEIR_LIMIT_MAX);
}

/*
 * Undo gate_subtract() of permits that were not held. Returns the word before: if it shows waiters,
 * drain the queue, as a call may have found no room meanwhile.
 */
static inline uint64_t gate_mend(struct gate *g, uint32_t cost)
{
	return atomic_fetch_add_explicit(&g->word, cost, memory_order_relaxed);
}

/*
 * Give permits back if that many are in flight beside those that are lent. lent is read after the
 * word and may have grown meanwhile, so a result of false may be wrong. It is read with acquire,
 * because the caller reads the mode next: if lent included a permit that was lent in a later mode
 * than the caller saw before, the caller now sees that mode.
 */
static inline bool gate_subtract_beside(struct gate *g, uint32_t cost, uint64_t *before)
{
	*before = gate_read_acquire(g);
	do {
		uint32_t lent = atomic_load_explicit(&g->lent, memory_order_acquire);

		if (!gate_held(*before, cost) || gate_taken(*before) - cost < lent)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&g->word, before, *before - cost, memory_order_release, memory_order_acquire));
	return true;
}

/*
 * Give back lent permits. Returns the word before. Fewer may be in flight, if a copy of a token was
 * released at the very moment at which the first permit was lent.
 */
static inline uint64_t gate_subtract_lent(struct gate *g, uint32_t lent)
{
	uint64_t word = gate_read(g);
	uint32_t taken;

	atomic_fetch_sub_explicit(&g->lent, lent, memory_order_relaxed);
	do {
		taken = gate_taken(word);
	} while (!atomic_compare_exchange_weak_explicit(
		&g->word, &word, word - (lent < taken ? lent : taken), memory_order_release,
		memory_order_relaxed));
	return word;
}

/* Modify the word without changing what it means. Returns the word before. */
static inline uint64_t gate_touch(struct gate *g)
{
	return atomic_fetch_xor_explicit(&g->word, GATE_TOUCH, memory_order_acq_rel);
}

/* Whether any permits are lent. */
static inline bool gate_lends(const struct gate *g)
{
	return atomic_load_explicit(&g->lent, memory_order_relaxed) != 0;
}

static inline void gate_announce(struct gate *g, uint32_t waiters)
{
	atomic_fetch_add_explicit(&g->word, waiters * GATE_WAITER, memory_order_acq_rel);
}

static inline void gate_retract(struct gate *g, uint32_t waiters)
{
	atomic_fetch_sub_explicit(&g->word, waiters * GATE_WAITER, memory_order_relaxed);
}

/*
 * Set the limit. False, and nothing is done, if more than most permits are in flight. After raising
 * the limit, drain the queue if any call waits.
 */
static inline bool gate_set_limit(struct gate *g, uint32_t limit, uint32_t most)
{
	const uint64_t mask = (uint64_t)GATE_LIMIT_FIELD << GATE_LIMIT_SHIFT;
	uint64_t word = gate_read(g);

	do {
		if (gate_inflight(word) > most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&g->word, &word, (word & ~mask) | (uint64_t)limit << GATE_LIMIT_SHIFT,
		memory_order_release, memory_order_relaxed));
	return true;
}

#endif
