/*
 * Waiting for a thread that does something which only one thread at a time may do.
 *
 * In a shared limiter, the process of that thread may have been stopped, or may have died. If it
 * has died, the waiting thread finishes its work (reap_stand_in()). If it is stopped, or in another
 * pid namespace, of which nothing is known, waiting ends after OUTWAIT_MAX, and the caller decides
 * what to do then. A thread of the same process is waited for without a time limit, as with a
 * mutex. No callbacks run meanwhile.
 */
#ifndef WEIR_LIB_OUTWAIT_H
#define WEIR_LIB_OUTWAIT_H

#include <stdbool.h>

#include <weir/limiter.h>

#define OUTWAIT_MAX (20 * WEIR_MS) /* long for a thread that runs, short for the caller */

struct outwait {
	weir_time until; /* deadline; 0: not set yet */
	uint32_t looks;  /* checks so far */
};

static inline struct outwait outwait_begin(void)
{
	return (struct outwait){.until = 0};
}

/* A thread of process owner is still at work: wait briefly. False: OUTWAIT_MAX has passed. */
bool outwait_longer(struct weir_limiter *l, struct outwait *w, uint32_t owner);

#endif
