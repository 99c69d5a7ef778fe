/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a thread whose process may be stopped or dead. */

#include "lib/process/owner_wait.h"

#include <sched.h>

#include "lib/shm/reap.h"

/* Looks between two checks of the owner's process: asking the kernel takes as long as this many. */
#define LOOKS 32

/* Looks before giving up, however long each took: other threads may need the CPU. */
#define LOOKS_MIN 16

bool owner_wait_longer(struct weir_limiter *l, struct owner_wait *w, uint32_t owner)
{
	weir_time now;
	bool over;

	if (l->leasing.leases == NULL) {
		sched_yield();
		return true;
	}
	now = clock_monotonic();
	w->until = w->until != 0 ? w->until : now + OWNER_WAIT_MAX;
	over = now >= w->until && w->looks >= LOOKS_MIN;
	if ((++w->looks % LOOKS == 0 || over) && reap_stand_in(l, owner, now))
		return true;
	if (over)
		return false;
	sched_yield();
	return true;
}
