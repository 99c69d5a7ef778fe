/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery of what dead processes leave in a shared limiter.
 *
 * word      written by                     order    pairs with
 * --------  -----------------------------  -------  --------------------------------------
 * reaper    lock: CAS from 0, or from a    acq_rel  each other: the audit's fields pass from
 *           dead one                                 reaper to reaper
 * reaper    unlock: store 0, or the dead   release  lock
 *           one that was found
 * counters  the reaper: add                relaxed  nothing: numbers
 *
 * One process reaps at a time, and stores its identity in the word; if it dies, the next one
 * continues its work. The word is never taken from a living reaper, even if it is stopped: others
 * see that there is one, and return. The kernel is asked which processes are dead before the word
 * is taken. So a reaper holds the word only while it recovers dead processes, and is rarely stopped
 * while it does. Each step of a recovery can be repeated: ownership is inherited by a
 * compare-and-swap, permits are taken by an exchange, and the lease is freed when all is done.
 *
 * The audit. Permits that were on their way when their process died are in flight, and no process
 * holds them. Their number is what is in flight less what is held by leases and by slots whose
 * waiters have not collected their permits, at an instant at which no permit is on its way. No such
 * instant can be found with certainty. But a measurement is exact if nothing changed while it was
 * made. It then shows lost permits and those on their way, never fewer. So the lowest of all
 * measurements counts, over at least AUDIT_MIN: a permit is on its way for some nanoseconds only.
 * An audit follows each death, and each audit that has found something.
 *
 * If a thread is stopped during the whole audit, its permits are mistaken for lost ones. Once it
 * continues, less is in flight than is held. An exact measurement shows this only in that case, and
 * it is corrected at once.
 *
 * Detached permits are audited likewise, the other way round: leases count them first, and the room
 * may lack what a process that died was about to add. The lowest deficit is added. If the room ever
 * has more than the leases, the excess is subtracted at once.
 */
#ifndef WEIR_LIB_REAP_H
#define WEIR_LIB_REAP_H

#include <weir/shm.h>

#include "lib/limiter/limiter.h"

enum due {
	DUE_NONE,
	DUE_AUDIT, /* a process died, or something was found: an audit must begin */
	DUE_BEGUN, /* an audit is going on, and nothing has happened since it began */
};

struct audit {
	_Alignas(LINE) _Atomic uint64_t reaper; /* an identity; 0: none */
	_Atomic uint64_t deaths, reaped, found, overdrawn;

	/* Private to the reaper. */
	_Alignas(LINE) weir_time since; /* when the audit began; 0: none is going on */
	uint32_t looks;                 /* exact measurements in this audit */
	uint32_t returned; /* 1: a stopped thread may own what was returned: watch for it */
	uint32_t due;      /* an enum due */
	uint32_t recount;  /* 1: the queue's announcements may be wrong */
	uint32_t lost[WEIR_PARTITIONS_MAX + 2]; /* lowest so far: of the gate, of partitions */
	uint32_t uncounted; /* lowest so far: detached permits that do not raise the limit */
};

void audit_init(struct audit *audit);

/*
 * Reap all dead processes, and also process number, if it is not 0. Returns 0, or -EAGAIN: another
 * thread or process is reaping.
 */
int reap(struct weir_limiter *l, weir_time now, uint32_t number, struct weir_shm_reaped *reaped);

/*
 * If process number is dead, finish the work that other processes may be waiting for. All else is
 * left to a reaping, and no callbacks run. False: it is alive, or unknown, or another is reaping.
 */
bool reap_stand_in(struct weir_limiter *l, uint32_t number, weir_time now);

/* Return everything that the handle's own lease has, and then the lease itself. */
void reap_own(struct weir_limiter *l, weir_time now);

#endif
