/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for the thread that owns something which one thread does at a time.
 *
 * In a shared limiter, the process of that thread may be stopped, or may have died. If it has died,
 * the waiting thread finishes its work (reap_stand_in()); so the implementation is in lib/shm,
 * which reaps. If it is stopped, or in another pid namespace, of which nothing is known, the wait
 * ends after OWNER_WAIT_MAX, and the caller decides what to do. A thread of the same process is
 * waited for as long as it takes, as for a mutex. No callbacks run meanwhile.
 */
#ifndef WEIR_LIB_OWNER_WAIT_H
#define WEIR_LIB_OWNER_WAIT_H

#include <stdbool.h>

#include <weir/limiter.h>

#define OWNER_WAIT_MAX (20 * WEIR_MS)

struct owner_wait {
	weir_time until; /* 0: the wait has not begun */
	uint32_t looks;
};

static inline struct owner_wait owner_wait_begin(void)
{
	return (struct owner_wait){.until = 0};
}

/* The owner is still at work: wait for a short time. False: the wait has lasted too long. */
bool owner_wait_longer(struct weir_limiter *l, struct owner_wait *w, uint32_t owner);

#endif
