/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks of waiters. They are kept with the process's handle, one for each slot of the queue,
 * because a pointer is valid in one process only.
 *
 * In a shared limiter the word of a slot may hold anything: a process that can write to the block
 * can mark a slot as this process's, and granted. So a callback has a word of its own, which no
 * other process can reach, and that word decides. A callback is set for one use of the slot, known
 * by its stamp. It runs at most once, and it ends with the waiter, whatever the block contains.
 *
 * use  bits  0..1   its state: below; the whole word is 0: the callback is free
 *      bits  2..30  the stamp
 *
 * word  written by                       order    pairs with
 * ----  -------------------------------  -------  -----------------------------------------
 * use   set: CAS from 0 to SETTING       acquire  run, end: the use before is over
 * use   set: store SET                   release  run: granted and arg
 * use   run: CAS from SET to RUNNING     acquire  set
 * use   run: CAS from RUNNING to 0       release  end: what the callback did; set
 * use   end: CAS from SET to 0, or from  release  set: what the callback did before it ended its
 *       RUNNING in the callback itself            waiter
 */
#ifndef WEIR_LIB_CALLBACK_H
#define WEIR_LIB_CALLBACK_H

#include <sched.h>
#include <stdbool.h>

#include <weir/wait.h>

#include "lib/base/layout.h"
#include "lib/base/notify.h"

enum { CALLBACK_SETTING = 1, CALLBACK_SET, CALLBACK_RUNNING };

struct callback {
	_Atomic uint32_t use;
	weir_granted_fn *granted;
	void *arg;
};

static inline void callback_init(struct callback *c)
{
	atomic_init(&c->use, 0);
}

/* Set the callback for that use of the slot. False: the slot's previous waiter has not ended. */
static inline bool callback_set(struct callback *c, uint32_t stamp, weir_granted_fn *granted,
				void *arg)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong_explicit(&c->use, &none, stamp << 2 | CALLBACK_SETTING,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	c->granted = granted;
	c->arg = arg;
	atomic_store_explicit(&c->use, stamp << 2 | CALLBACK_SET, memory_order_release);
	return true;
}

/* Run it, if it is set for that use and has been neither run nor ended. */
static inline void callback_run(struct callback *c, uint32_t stamp)
{
	uint32_t set = stamp << 2 | CALLBACK_SET, running = stamp << 2 | CALLBACK_RUNNING;

	if (!atomic_compare_exchange_strong_explicit(&c->use, &set, running, memory_order_acquire,
						     memory_order_relaxed))
		return;
	notify_run(c, stamp, c->granted, c->arg);
	/* It may have ended its waiter, and another waiter may use this callback by now. */
	(void)atomic_compare_exchange_strong_explicit(&c->use, &running, 0, memory_order_release,
						      memory_order_relaxed);
}

/*
 * End the callback: it will not run for that use any more. If another thread is running it, a
 * patient caller waits until it returns. False: it is running, and the caller is not patient.
 */
static inline bool callback_end(struct callback *c, uint32_t stamp, bool patient)
{
	uint32_t use = atomic_load_explicit(&c->use, memory_order_acquire);

	while (use >> 2 == stamp) {
		if ((use & 3) == CALLBACK_SET || notify_here(c, stamp)) {
			if (atomic_compare_exchange_strong_explicit(
				    &c->use, &use, 0, memory_order_release, memory_order_acquire))
				return true;
			continue;
		}
		if (!patient)
			return false;
		sched_yield();
		use = atomic_load_explicit(&c->use, memory_order_acquire);
	}
	return true;
}

#endif
