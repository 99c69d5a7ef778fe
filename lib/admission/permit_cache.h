/*
 * Credits: permits that stay with a processor while the limit is far away, so that calls on
 * different processors share no cache line.
 *
 * Far from the limit the exact number in flight decides nothing. There a call takes its permit from
 * the gate once and registers it with the stripe of its CPU (lib/sample/sampler.h); its release
 * leaves the permit there, idle, and the next call on that CPU takes it up again. The gate goes on
 * counting all of them:
 *
 *   in flight, in the gate's word = held of the gate itself + lent
 *   lent                          = the sum, over the stripes, of idle + out
 *
 * So in flight is never above the limit, however many permits are idle; they are only in the way
 * of others, and nobody is refused, or waits, before they are back. A permit belongs to one
 * stripe from its registration until it is back; its token says to which, and its release goes
 * there, on whatever CPU it runs. A stripe therefore knows how many of its permits are out, and
 * a copy of a token that was released is known for one where none is.
 *
 * mode, a number that only grows: of each four, by what is left,
 *
 *   0  shut     no stripe has idle permits, all goes through the gate
 *   1  open     releases leave permits with the stripes
 *   2  closing  the permits are called back: each stripe is swept, by everybody who comes by
 *
 * A stripe's word:
 *
 *   bits  0..15  idle: lent, and held by no call
 *   bits 16..31  out: lent, and held
 *   bits 32..63  mark: the mode in which the stripe was opened, or swept
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
 * credits  enter: CAS, out + 1, mark           release  sweep: that the gate has it
 * credits  take: CAS, idle - 1, out + 1        acquire  put: as the gate's reserve
 * credits  put: CAS, out - 1, maybe idle + 1   release  take, sweep
 * credits  sweep: CAS, mark                    acq_rel  put: what holders wrote goes on, by the
 *                                                       gate's word
 * credits  sweep: -idle, when the gate has     release  held: who misses them here sees that
 *          them                                         they have left the gate
 * lent     enter: +1, after the stripe and in   release  give back beside: mode. Late, a copy is
 *          a mode that it has acquired                   not noticed
 * lent     sweep, put: -n, before the gate     relaxed  give back beside, through the gate's
 *                                                       word: what has left that is not lent
 *
 * Why no idle permit is overlooked. Who would be refused looks at mode, at the gate, and at
 * mode again. If it was shut and is the same, nothing was idle when the gate was full. Else he
 * closes: he moves mode on from open, and marks every stripe with the new mode. A release
 * that leaves a permit with a stripe, or a call that opens one, is a compare-and-swap of the same
 * word, and does so in a stripe with the mark of the open mode only, or puts that mark where
 * there is an older one. So it comes before the sweep, which finds the permit, or fails and
 * goes to the gate. Permits that a sweep has found are in flight until it has given them
 * back, like that of a call whose release has begun; they stay visible in the stripe (idle, in
 * one that is not open) until then, and belong to who swept it.
 *
 * Why no waiter is forgotten. A thread that opens sets mode, and then touches the gate's word: it
 * flips a bit that has no other meaning, so that the touch is a modification whatever a compiler
 * makes of it. A waiter announces itself on that word, and looks at mode when it finds no room. One
 * of the two modifications is first. If it is the announcement, the thread that opens sees it, and
 * closes again; if not, the announcement acquires what the touch released, so the waiter sees that
 * it is open, and closes. From then on releases go to the gate, and lib/wait/slots.h has the rest.
 * A call that takes up an idle permit while another is about to wait came before that one. A thread
 * that sweeps looks for waiters in the word to which it gives back.
 *
 * Why no permit is mistaken for that of a copy. A release of permits of the gate's own gives them
 * back if that many are in flight beside lent, and otherwise looks at mode again. It reads mode,
 * the gate, lent, and mode, each with acquire, so in this order. lent falls before the gate does,
 * so permits that have left the gate are in neither. It may have grown after the gate was read, by
 * permits that were lent since. Each was added to lent, with release, by a call that had seen an
 * open mode; so if mode was shut at first and is the same, what was read includes none of them, and
 * the release is that of a copy.
 *
 * Why a lower limit holds at once. It is put in force where twice what is in flight, idle
 * permits included, is within it, else after closing; and both that and opening are one errand
 * (lib/admission/admission.c), so it is not opened between.
 */
#ifndef WEIR_LIB_PERMIT_CACHE_H
#define WEIR_LIB_PERMIT_CACHE_H

#include <stdbool.h>

#include "lib/admission/gate.h"
#include "lib/sample/sampler.h"

#define CACHE_IDLE       UINT64_C(1)
#define CACHE_OUT        (UINT64_C(1) << 16)
#define CACHE_MARK_SHIFT 32

enum { CACHE_SHUT, CACHE_OPEN, CACHE_CLOSING, CACHE_PHASES = 4 };

/* The process's own: nothing is lent where a limiter is shared, so there it never changes. */
struct cache_mode {
	_Alignas(LINE) _Atomic uint32_t mode;
	_Atomic uint32_t quota; /* permits that a stripe may have */
	_Atomic uint32_t far;   /* 1: the last window did not come near the limit */
};

/* With the gate, and the stripes, which lie elsewhere in the same memory. */
struct permit_cache {
	struct cache_mode *shared;
	struct gate *gate;
	const struct sampling *sampling;
	uint32_t count; /* of the stripes; 0: no permit is ever lent */
};

/* Calls that hold a permit, or permits: at least, and at most, while others come and go. */
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

/* Nothing is idle, nor was it when the mode was read before: a refusal between the two stands. */
static inline bool cache_stayed_shut(const struct permit_cache *c, uint32_t before)
{
	return LIKELY(cache_is(before, CACHE_SHUT)) && LIKELY(cache_mode(c) == before);
}

void cache_init(const struct permit_cache *c);

/* Call all that is idle back. True: drain the queue. */
bool cache_close(const struct permit_cache *c);

/*
 * Reserve one permit for a newcomer while credits are open, and say how many are in flight and to
 * which stripe the permit belongs, from 1 (0: to none). *wake: drain the queue.
 */
bool cache_reserve(const struct permit_cache *c, uint32_t *inflight, uint32_t *home, bool *wake);

/*
 * How many are in flight with a permit that was just reserved, but for so many that are known to be
 * idle. Near the limit, all are called back first. *wake: drain the queue.
 */
uint32_t cache_inflight(const struct permit_cache *c, uint32_t idle, bool *wake);

/* Give back a permit that belongs to a stripe. False: it was not held. *wake: drain the queue. */
bool cache_give_back(const struct permit_cache *c, uint32_t home, bool *wake);

/* Give back permits of the gate's own beside some that are lent. As above. */
bool cache_give_back_beside(const struct permit_cache *c, uint32_t cost, bool *wake);

/* A window is over. True: it is time to open. */
bool cache_far(const struct permit_cache *c, uint32_t inflight_max, uint32_t limit);

/* Put a limit in force, and open or close as it fits. One thread at a time. */
void cache_set_limit(const struct permit_cache *c, uint32_t limit);

struct held cache_held(const struct permit_cache *c);

#endif
