/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The permit cache: permits that stay with a CPU while the limit is far away, so that calls on
 * different CPUs share no cache line.
 *
 * Far from the limit the exact number in flight does not matter. A call then takes its permit from
 * the gate once and registers it with the stripe of its CPU (lib/sample/sampling.h). Its release
 * leaves the permit there, idle, and the next call on that CPU takes it up again: the permit is
 * lent to the stripe. The gate goes on counting all permits:
 *
 *   in flight, in the gate's word = held from the gate itself + lent
 *   lent                          = the sum, over the stripes, of idle + out
 *
 * So no more than the limit is in flight, however many permits are idle. Idle permits only take
 * room from other calls, and before any call is refused or has to wait they are called back. A
 * permit belongs to one stripe from its registration until it is back in the gate. Its token holds
 * the number of the stripe, and its release goes there, whichever CPU it runs on. So a stripe knows
 * how many of its permits are out, and the release of a token's copy is detected if none is.
 *
 * mode is a number that only grows; mode % 4 is
 *
 *   0  shut     no stripe has idle permits; all calls go through the gate
 *   1  open     releases leave permits with the stripes
 *   2  closing  idle permits are called back: every thread that comes by sweeps all stripes
 *
 * A stripe's word:
 *
 *   bits  0..15  idle: lent, and held by no call
 *   bits 16..31  out: lent, and held
 *   bits 32..63  mark: the mode in which the stripe was last opened or swept
 *
 * word     written by                          order    pairs with
 * -------  ----------------------------------  -------  -----------------------------------
 * mode     open: CAS                           release  reserve: quota, and that the limit was
 *                                                       far; announce, through the gate's word
 * mode     close: CAS to closing               acq_rel  enter: a stripe swept for this closing
 *                                                       is seen after it
 * mode     close: CAS to shut                  release  reserve: all stripes are swept, and
 *                                                       the gate has what was idle
 * quota    open: store                         relaxed  nothing: a number
 * far      the window's owner: store           relaxed  nothing: a hint
 * cached   enter: CAS, out + 1, mark           release  sweep: that the gate has it
 * cached   take: CAS, idle - 1, out + 1        acquire  put: as the gate's reserve
 * cached   put: CAS, out - 1, maybe idle + 1   release  take, sweep
 * cached   sweep: CAS, mark                    acq_rel  put: what holders wrote goes on, by the
 *                                                       gate's word
 * cached   sweep: -idle, when the gate has     release  held: if it misses them here, it sees that
 *          them                                         they have left the gate
 * lent     enter: +1, after the stripe and in  release  give back beside: mode. Late, a copy is
 *          a mode that it has acquired                   not detected
 * lent     sweep, put: -n, before the gate     relaxed  give back beside, through the gate's
 *                                                       word: what has left that is not lent.
 *                                                       Until the gate follows, a copy is not
 *                                                       detected
 *
 * Why no idle permit is overlooked. A call about to be refused reads mode, the gate, and mode
 * again. If mode was shut and is the same, nothing was idle when the gate was full. Otherwise the
 * call closes the cache: it moves mode on from open, and marks every stripe with the new mode. A
 * release that leaves a permit with a stripe, or a call that opens a stripe, is a compare-and-swap
 * of the stripe's word; it acts only on a stripe with the mark of the open mode, or replaces an
 * older mark by it. So it either comes before the sweep, which finds the permit, or it fails and
 * goes to the gate. Permits that a sweep has found are in flight until it has given them back, like
 * the permit of a call whose release has begun. Until then they stay visible in the stripe (idle,
 * in one that is not open), and belong to the thread that swept it.
 *
 * Why no waiter is forgotten. A thread that opens the cache sets mode, and then touches the gate's
 * word: it flips a bit that has no other meaning, so that the touch is a modification whatever the
 * compiler does. A waiter announces itself on that word, and reads mode when it finds no room. One
 * of the two modifications is first. If it is the announcement, the opening thread sees it, and
 * closes again. If not, the announcement acquires what the touch released, so the waiter sees that
 * the cache is open, and closes it. From then on releases go to the gate, and the argument in
 * lib/wait/slots.h applies. A call that takes up an idle permit while another is about to wait came
 * before that one. A thread that sweeps checks for waiters in the word to which it gives permits
 * back.
 *
 * Why no valid release is mistaken for a copy's. A release of permits from the gate itself gives
 * them back if that many are in flight beside lent, and otherwise reads mode again. It reads mode,
 * the gate, lent, and mode, each with acquire, so in this order. lent falls before the gate does,
 * so permits that have left the gate are in neither. lent may have grown after the gate was read,
 * by permits that were lent since. Each was added to lent, with release, by a call that had seen an
 * open mode. So if mode was shut at first and is the same, what was read includes none of them, and
 * the release is that of a copy.
 *
 * Why what is reserved for others stays free. A call that must leave permits free takes up an idle
 * one only if they are free beside all that the gate counts, idle ones included. Taking one up
 * changes nothing of that number. If it finds too few, it goes on as a call about to be refused.
 *
 * Why a lower limit holds at once. It is put into force if twice what is in flight, idle permits
 * included, is within it, and otherwise after closing. The same combiner serializes this with
 * opening (lib/admission/admission.c), so the cache is not opened in between.
 */
#ifndef WEIR_LIB_PERMIT_CACHE_H
#define WEIR_LIB_PERMIT_CACHE_H

#include <stdbool.h>

#include "lib/admission/gate.h"
#include "lib/sample/sampling.h"

#define CACHE_IDLE       UINT64_C(1)
#define CACHE_OUT        (UINT64_C(1) << 16)
#define CACHE_MARK_SHIFT 32

enum { CACHE_SHUT, CACHE_OPEN, CACHE_CLOSING, CACHE_PHASES = 4 };

/* Private to the process: a shared limiter lends no permits, so there it never changes. */
struct cache_mode {
	_Alignas(LINE) _Atomic uint32_t mode;
	_Atomic uint32_t quota; /* permits that a stripe may have */
	_Atomic uint32_t far;   /* 1: recent windows stayed far from the limit */
	uint32_t windows;       /* the window's owner's: how many in a row were far */
};

/* The cache with the gate and the stripes that it uses. */
struct permit_cache {
	struct cache_mode *shared;
	struct gate *gate;
	const struct sampling *sampling;
	uint32_t count; /* number of stripes; 0: permits are never lent */
};

/*
 * The permits that a call took, and what came of permits that were given back. Both can make room
 * for calls that wait, and the same atomic operation that makes the room shows whether any do.
 * Draining belongs to the queue, a layer above, so drain goes up as a result, and is never passed
 * down: the function that ends an operation of the limiter drains if it is set.
 */
struct permit {
	uint32_t inflight; /* with them; 0: refused */
	uint32_t cost;     /* how many */
	uint32_t home;     /* stripe of a lent permit, from 1; 0: none */
	bool drain;        /* drain the queue, whether the call was admitted or not */
};

struct returned {
	bool held;  /* false: no call held them, and nothing was given back */
	bool drain; /* drain the queue; also if they were not held */
};

/* Bounds of the number of permits held by calls, while other threads change it. */
struct held {
	uint32_t least, most;
};

static inline uint32_t cache_idle(uint64_t word)
{
	return (uint32_t)word & 0xffffu;
}

static inline uint32_t cache_out(uint64_t word)
{
	return (uint32_t)word >> 16;
}

static inline uint32_t cache_mark(uint64_t word)
{
	return (uint32_t)(word >> CACHE_MARK_SHIFT);
}

static inline bool cache_is(uint32_t mode, uint32_t phase)
{
	return mode % CACHE_PHASES == phase;
}

static inline uint32_t cache_mode(const struct permit_cache *c)
{
	return atomic_load_explicit(&c->shared->mode, memory_order_acquire);
}

/* Whether nothing is idle, nor was since mode before was read, so that a refusal is justified. */
static inline bool cache_stayed_shut(const struct permit_cache *c, uint32_t before)
{
	return LIKELY(cache_is(before, CACHE_SHUT)) && LIKELY(cache_mode(c) == before);
}

void cache_init(const struct permit_cache *c);

/* Call back all idle permits. True: drain the queue. */
bool cache_close(const struct permit_cache *c);

/*
 * Reserve one permit for a new call while the cache is open, if leave permits of the gate remain
 * free. inflight 0: there is no room. overtake is as for gate_reserve().
 */
struct permit cache_reserve(const struct permit_cache *c, uint32_t leave, bool overtake);

/*
 * Complete permits that were just reserved: fill in the number in flight, without those that are
 * known to be idle. Near the limit, all idle permits are called back first.
 */
struct permit cache_count(const struct permit_cache *c, struct permit permit, uint32_t idle);

/*
 * The number in flight that a call just admitted is shown, without all that is idle in any stripe;
 * cache_reserve() knows of its own stripe alone.
 */
uint32_t cache_exact(const struct permit_cache *c, uint32_t inflight);

/* Give back a permit of a stripe. */
struct returned cache_give_back(const struct permit_cache *c, uint32_t home);

/* The same for permits of the gate itself while others are lent. */
struct returned cache_give_back_beside(const struct permit_cache *c, uint32_t cost);

/* Note whether a window that was closed stayed far from the limit. */
void cache_note_window(const struct permit_cache *c, uint32_t inflight_max, uint32_t limit);

/* Whether the cache is shut and the last window stayed far: a retune then tries to open it. */
static inline bool cache_may_open(const struct permit_cache *c)
{
	return UNLIKELY(atomic_load_explicit(&c->shared->far, memory_order_relaxed) != 0) &&
	       cache_is(cache_mode(c), CACHE_SHUT);
}

/* Put a limit into force, and open or close the cache accordingly. One thread at a time. */
void cache_set_limit(const struct permit_cache *c, uint32_t limit);

/* Bounds of the number of permits that calls hold. */
struct held cache_held(const struct permit_cache *c);

#endif
