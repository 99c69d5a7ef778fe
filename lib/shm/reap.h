/*
 * What dead processes leave in a shared limiter, and its coming back.
 *
 * word      written by                     order    pairs with
 * --------  -----------------------------  -------  --------------------------------------
 * reaper    lock: CAS from 0, or from a     acq_rel  each other: the audit's fields pass from
 *           dead one                                 reaper to reaper
 * reaper    unlock: store 0, or the dead   release  lock
 *           one that was found
 * counters  the reaper: add                relaxed  nothing: numbers
 *
 * One process reaps at a time, and leaves its identity in the word; if it dies, the next one goes
 * on. The word is never taken from a reaper that lives, even if it is stopped: others find out that
 * there is one, and leave. The kernel is asked which processes are dead before the word is taken,
 * so that a reaper has it only for as long as burials take, and seldom while it can be held up.
 * Each step of a burial is one that can be done again: what is owned is inherited by a
 * compare-and-swap, what is held is taken by an exchange, and the lease is free when all is done.
 *
 * The audit. Permits that were on their way when their process died are in flight, and nobody
 * holds them. Their number is what is in flight less what is held, by leases and by slots whose
 * waiters have yet to come, of an instant at which nobody was on the way. There is no such
 * instant to be had for certain; but a look is exact if nothing changed around it, and then it
 * shows those that are lost and those on the way, never fewer. So of all looks, for AUDIT_MIN at
 * least, the lowest counts: to be on the way takes some nanoseconds. An audit follows a death,
 * and again another that has found something.
 *
 * Permits of a thread that is stopped all the while are mistaken for lost ones. Once it goes on,
 * less will be in flight than is held: no exact look can show that otherwise, and it is put right
 * at once.
 *
 * The same is done with what is detached, the other way round: leases have it first, and the room
 * may lack what a process that died was about to add. The lowest that is missing is added; and if
 * there is ever more than the leases have, it is taken off at once.
 */
#ifndef WEIR_LIB_REAP_H
#define WEIR_LIB_REAP_H

#include <weir/shm.h>

#include "lib/limiter/limiter.h"

enum due {
	DUE_NONE,
	DUE_AUDIT, /* there was a death, or something was found: an audit is to begin */
	DUE_BEGUN, /* the same, but for what came after its beginning */
};

struct audit {
	_Alignas(LINE) _Atomic uint64_t reaper; /* an identity; 0: nobody */
	_Atomic uint64_t deaths, reaped, found, overdrawn;

	/* The reaper's. */
	_Alignas(LINE) weir_time since; /* when the audit began; 0: none is going on */
	uint32_t looks;                 /* exact ones */
	uint32_t gave;                  /* 1: back, what may have been somebody's: look for that */
	uint32_t due;                   /* of enum due */
	uint32_t recount;               /* 1: the queue's announcements may be wrong */
	uint32_t
		lost[WEIR_PARTITIONS_MAX + 2]; /* in each look so far: of the gate, of partitions */
	uint32_t uncounted; /* in each look so far: detached, and the limit not raised by it */
};

void audit_init(struct audit *audit);

/* Reap all dead processes, and the one of that number, if it is not 0. -EAGAIN: another reaps. */
int reap(struct weir_limiter *l, weir_time now, uint32_t number, struct weir_shm_reaped *reaped);

/*
 * If the process of that number is dead, finish what others may wait for. All else is left to a
 * reaping, and no callbacks run. False: it lives, or nothing is known of it, or another is reaping.
 */
bool reap_stand_in(struct weir_limiter *l, uint32_t number, weir_time now);

/* Give back all that the handle's own lease has, and the lease. */
void reap_own(struct weir_limiter *l, weir_time now);

#endif
