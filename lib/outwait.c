/*
 * Waiting for a thread that may be of a process that is stopped or dead.
 */

#include "lib/outwait.h"

#include <sched.h>

#include "lib/reap.h"

/* To ask the kernel about a process takes as long as so many looks. */
#define LOOKS 32

/* Looks before it is given up, however long each took: the processor may be needed by others. */
#define LOOKS_MIN 16

bool outwait_longer(struct weir_limiter *l, struct outwait *w, uint32_t owner)
{
	weir_time now;
	bool over;

	if (l->leasing.leases == NULL) {
		sched_yield();
		return true;
	}
	now = clock_monotonic();
	w->until = w->until != 0 ? w->until : now + OUTWAIT_MAX;
	over = now >= w->until && w->looks >= LOOKS_MIN;
	if ((++w->looks % LOOKS == 0 || over) && reap_stand_in(l, owner, now))
		return true;
	if (over)
		return false;
	sched_yield();
	return true;
}
