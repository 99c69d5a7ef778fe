/*
 * Waiting for the thread that is at something which one does at a time.
 *
 * Where a limiter is shared, that thread may be of a process that is stopped, or that has died
 * there. If it has died, the thread that waits finishes what it was at (reap_stand_in()). If it is
 * stopped, or of another pid namespace, of which nothing is known, waiting ends after OUTWAIT_MAX:
 * what then, is the caller's affair. Threads of one process are waited for as long as it takes, as
 * for a mutex. Nobody is called back meanwhile.
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

/* A thread of that process is still at it: wait for an instant. False: it has lasted too long. */
bool outwait_longer(struct weir_limiter *l, struct outwait *w, uint32_t owner);

#endif
