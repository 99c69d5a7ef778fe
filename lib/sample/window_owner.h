/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of the window: the one thread that closes it now, and may change what was learned. The
 * word due has the time at which the window may be closed, or the owner's process; the word closing
 * names the owning thread in its own process.
 *
 * word     written by                          order    pairs with
 * -------  ----------------------------------  -------  --------------------------
 * due      claim, hold: CAS, busy bit set      acquire  open, let go: the owner's
 *                                                       plain fields, and the limit's
 *                                                       state, pass from owner to
 *                                                       owner
 * due      open, extend, let go: busy bit      release  claim, hold, recover
 *          cleared
 * due      recover: CAS of the owner           acquire  open, let go
 * closing  close, hold: store, CAS from 0      acquire  open: what this process's owner
 *          where the limiter is shared                  of the window left in its scratch
 * closing  open, extend, let go: store 0       release  claim, hold, recover
 *
 * Why no thread waits: the window is owned through a bit in its deadline. A thread that finds the
 * window due sets the bit or, if it is set already, leaves: the owner, or the next sample after it,
 * sees the same words. A thread that needs what was learned, and not a window, has to try again
 * (sampler_hold()). Its caller decides how often, and what to do if the owner is stopped or dead
 * (lib/process/owner_wait.h). The owner runs callbacks, and a callback may need what was learned; a
 * thread that waited for itself would wait for ever. Hence the word closing, which names the owning
 * thread. It is private to the process, because it names one of its threads.
 *
 * Why two threads of one process never own the window, whatever the block contains. In a shared
 * limiter, another process may store anything in due, and so give the window to a thread while it
 * has an owner. What the owner works on (the pool, the copy of the limit's state, the observer) is
 * private to the process, out of reach of others. So the owner must also take closing, which is
 * private as well. A thread that finds closing taken leaves due to the thread that has it.
 */
#ifndef WEIR_LIB_WINDOW_OWNER_H
#define WEIR_LIB_WINDOW_OWNER_H

#include <pthread.h>

#include "lib/sample/sampling.h"

/* The word due: in the upper 63 bits a time or the window's owner; bit 0 says which. */
#define DUE_BUSY    UINT64_C(1)
#define DUE_AT_ONCE UINT64_C(0)

/* Times are compared by difference, because a clock may start anywhere and wrap. */
static inline bool is_due(uint64_t due, weir_time now)
{
	return due == DUE_AT_ONCE || ((due & DUE_BUSY) == 0 && (int64_t)((now << 1) - due) > 0);
}

/* Whether the window is due and has no owner. Inline, because every sample checks it. */
static inline bool sampler_due(const struct sampling *s, weir_time now)
{
	return is_due(atomic_load_explicit(&s->sampler->due, memory_order_relaxed), now);
}

/* This thread, as the value of closing. */
static inline uintptr_t window_thread(void)
{
	return (uintptr_t)pthread_self();
}

static inline void window_set_closing(const struct sampling *s, uintptr_t thread)
{
	atomic_store_explicit(s->closing, thread, memory_order_release);
}

/* Called after due gave the window to this thread. False: another thread of the process owns it. */
static inline bool window_is_ours(const struct sampling *s)
{
	uintptr_t none = 0;

	return LIKELY(s->owner == PRIVATE) ||
	       atomic_compare_exchange_strong_explicit(s->closing, &none, window_thread(),
						       memory_order_acquire, memory_order_relaxed);
}

/* The word due while that process owns the window. */
static inline uint64_t window_busy(uint32_t owner)
{
	return (uint64_t)owner << 1 | DUE_BUSY;
}

/* Own the window, if it is due and no other thread owns it. */
static inline bool window_claim(const struct sampling *s, weir_time now)
{
	uint64_t due = atomic_load_explicit(&s->sampler->due, memory_order_relaxed);

	/* Acquire: what the previous owner wrote. */
	return is_due(due, now) &&
	       atomic_compare_exchange_strong_explicit(&s->sampler->due, &due,
						       window_busy(s->owner), memory_order_acquire,
						       memory_order_relaxed) &&
	       window_is_ours(s);
}

/* End the ownership: the window is due at that time, shifted as in the word. */
void window_let_go(const struct sampling *s, uint64_t due);

/* End the ownership with the beginning of the next window, whose length has been set. */
void sampler_open(const struct sampling *s, weir_time now);

/*
 * Own the window for a moment, to read or replace what was learned. The window is not closed, and
 * its deadline stays. A thread that owns it already, in a callback, goes on owning it. Pass *due to
 * sampler_let_go(). False: another thread owns it, of process *owner.
 */
bool sampler_hold(const struct sampling *s, uint64_t *due, uint32_t *owner);
void sampler_let_go(const struct sampling *s, uint64_t due);

/* Take over a dead process's window. True: call sampler_open() then. False: it owned none. */
bool sampler_recover(const struct sampling *s, uint32_t dead);

#endif
