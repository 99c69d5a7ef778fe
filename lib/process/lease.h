/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: which processes share a limiter, and which permits each of them holds.
 *
 * A process takes a lease and gets its number, from 1. The lease identifies the process, so that
 * others can see whether it is still alive, and counts the permits that its tokens hold in each
 * partition. These are returned when it dies. This costs one more atomic operation for each
 * admission and each release, on a cache line that belongs to this process.
 *
 *   identity   bits  0..20  start time of the process, in clock ticks since boot: the low bits
 *              bits 21..40  its pid namespace: the low bits of the inode number
 *              bits 41..62  its pid in that namespace
 *              0: the lease is free
 *
 *   held       bits  0..23  permits
 *              bits 24..47  calls that hold them
 *              bits 48..63  number of changes: equal in two reads if there was none between
 *
 *   detached   the same word for permits that come on top of the limit, without calls
 *
 * word        written by                         order    pairs with
 * ----------  ---------------------------------  -------  -------------------------------
 * identity    join: CAS from 0                   acquire  leave: all counts are zero
 * identity    leave, for itself or a dead: 0      release  join
 * generation  join: +1                           relaxed  nothing: a number
 * held        admit: add, after the gate's +     release  the auditor (lib/shm/reap.c): if it sees
 *                                                         it here, it sees it in the gate
 * held        release: CAS, before the gate's -  relaxed  the auditor, through the gate's word
 * held        bury: exchange 0                   acq_rel  each other
 * detached    detach: add, before room's         relaxed  the auditor, through room's word
 * detached    end detached: CAS, after room's;   release  the auditor: if it sees it here, it
 *             bury: store 0, after room's                 sees it in room
 * delayed     delay: +1; end: CAS -1; bury       relaxed  nothing: a number
 *
 * A process may die between any two instructions. When a call is admitted, its permit is counted in
 * the gate first, then in the lease; when it ends, in the lease first. So if the process dies in
 * between, a permit is in flight that no lease holds, and never the other way round, which would
 * admit one call too many for good. lib/shm/reap.c finds such permits.
 *
 * Detached permits are counted in the lease first, then in struct room (lib/admission/admission.h),
 * which raises the limit by them; when they end, in room first. So if the process dies in between,
 * the limit is raised by less than what is detached, and never for permits that no process holds:
 * reaping subtracts all that the lease counts. lib/shm/reap.c then corrects the difference.
 *
 * A process that finds another one dead sees everything that it did, because the kernel is in
 * between. So for its last instructions only program order matters.
 */
#ifndef WEIR_LIB_LEASE_H
#define WEIR_LIB_LEASE_H

#include <stdbool.h>

#include "lib/base/park.h"

#include "lib/base/layout.h"

#define LEASES_MAX 8192 /* processes that can share a limiter */

/* The owner number of a process that reaps without a lease: one at a time (lib/shm/reap.c). */
#define REAPER (LEASES_MAX + 1)

#define ONE_CALL   (UINT64_C(1) << 24)
#define ONE_CHANGE (UINT64_C(1) << 48)
#define HELD_FIELD ((UINT32_C(1) << 24) - 1)

struct lease {
	_Alignas(LINE) _Atomic uint64_t identity;
	_Atomic uint64_t detached;
	_Atomic uint32_t generation;
	struct park bell; /* woken when a waiter of the process is PROMISED a permit */
};

/* What one process holds of one partition. */
struct holding {
	_Atomic uint64_t held;
	_Atomic uint32_t delayed; /* refusals being delayed (weir_delay_begin()) */
};

struct audit; /* lib/shm/reap.c */

/* A process's view of the leases of a limiter. */
struct leasing {
	struct lease *leases;     /* NULL: the limiter is not shared */
	struct holding *holdings; /* stride entries for each lease */
	struct holding *mine;     /* this process's; NULL: it has no lease */
	struct audit *audit;
	uint64_t self;   /* this process's identity */
	uint32_t count;  /* number of leases */
	uint32_t stride; /* holdings of one lease, rounded up to whole lines */
	uint32_t number; /* of this process's lease; PRIVATE: it has none */
	uint32_t mark;   /* identifies this use of the lease in its tokens; 0: it has none */
	uint32_t flags;  /* of the limit algorithm, which this process may not know */
	char limit[16];  /* name of the algorithm */
	size_t own_size; /* size of the handle's pages, in bytes */
	size_t block_size;
	void *mapped; /* the block, if this process mapped it, and its size in bytes */
	size_t mapped_size;
};

static inline uint32_t held_permits(uint64_t word)
{
	return (uint32_t)word & HELD_FIELD;
}

static inline uint32_t held_calls(uint64_t word)
{
	return (uint32_t)(word >> 24) & HELD_FIELD;
}

static inline void holding_add(struct holding *h, uint32_t cost)
{
	atomic_fetch_add_explicit(&h->held, ONE_CHANGE + ONE_CALL + cost, memory_order_release);
}

/* False: that many permits are not held. */
static inline bool holding_take(struct holding *h, uint32_t cost)
{
	uint64_t word = atomic_load_explicit(&h->held, memory_order_relaxed);

	do {
		if (UNLIKELY(held_calls(word) == 0 || held_permits(word) < cost))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&h->held, &word, word + ONE_CHANGE - ONE_CALL - cost, memory_order_relaxed,
		memory_order_relaxed));
	return true;
}

static inline uint32_t lease_detached(const struct lease *lease)
{
	return held_permits(atomic_load_explicit(&lease->detached, memory_order_relaxed));
}

static inline void lease_detach(struct lease *lease, uint32_t cost)
{
	atomic_fetch_add_explicit(&lease->detached, ONE_CHANGE + cost, memory_order_relaxed);
}

/* A copy of a token may have ended it before, so never subtract more than there is. */
static inline void lease_end_detached(struct lease *lease, uint32_t cost)
{
	uint64_t word = atomic_load_explicit(&lease->detached, memory_order_relaxed);
	uint32_t had;

	do {
		had = held_permits(word);
	} while (!atomic_compare_exchange_weak_explicit(
		&lease->detached, &word, word + ONE_CHANGE - (cost < had ? cost : had),
		memory_order_release, memory_order_relaxed));
}

/* Holdings of one lease with that many partitions, rounded up to whole lines. */
uint32_t lease_stride(uint32_t parts);

/* This process's identity. Returns 0, or a negative errno: /proc cannot be read for now. */
int lease_identify(uint64_t *identity);

/* The pid in an identity. */
int32_t lease_pid(uint64_t identity);

enum fate {
	ALIVE, /* or not known */
	DEAD,
	FOREIGN, /* in another pid namespace: not known here */
};

/* Whether the process is alive, as seen from the process self. */
enum fate lease_fate(uint64_t identity, uint64_t self);

/* Take a free lease, and set number, mark and mine. False: all are taken. */
bool lease_join(struct leasing *l);

/* The holdings of a lease; numbers are from 1. */
static inline struct holding *lease_holdings(const struct leasing *l, uint32_t number)
{
	return &l->holdings[(size_t)(number - 1) * l->stride];
}

/* This process's lease; NULL: it has none. */
static inline struct lease *lease_own(const struct leasing *l)
{
	return l->mine != NULL ? &l->leases[l->number - 1] : NULL;
}

/*
 * Wake the thread of that process that waits for PROMISED permits. count is the number of leases;
 * an invalid process number is ignored.
 */
void lease_ring(struct lease *leases, uint32_t count, uint32_t number);

#endif
