/*
 * Waiting for the thread that is doing something which one thread does at a time.
 *
 * Where a limiter is shared, the process of that thread may be stopped, or may have died there. If
 * it has died, the thread that waits finishes its work (reap_stand_in()). If it is stopped, or in
 * another pid namespace, of which nothing is known, waiting ends after OUTWAIT_MAX, and the caller
 * decides what to do then. A thread of the same process is waited for as long as it takes, as for a
 * mutex. No callbacks run meanwhile.
 */
#ifndef WEIR_LIB_OUTWAIT_H
#define WEIR_LIB_OUTWAIT_H

#include <stdbool.h>

#include <weir/limiter.h>

#define OUTWAIT_MAX (20 * WEIR_MS)

struct outwait {
	weir_time until; /* 0: it has not begun */
	uint32_t looks;
};

static inline struct outwait outwait_begin(void)
{
	return (struct outwait){.until = 0};
}

/* A thread of that process is still at work: wait for an instant. False: it has lasted too long. */
bool outwait_longer(struct weir_limiter *l, struct outwait *w, uint32_t owner);

#endif
