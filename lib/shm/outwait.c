/* Waiting for a thread whose process may be stopped or dead. */

#include "lib/process/outwait.h"

#include <sched.h>

#include "lib/shm/reap.h"

/* Asking the kernel about a process takes as long as this number of looks. */
#define LOOKS 32

/* Looks before giving up, however long each took: other threads may need the processor. */
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
