/*
 * Leases: which processes share a limiter, and what each of them holds.
 *
 * A process has a lease, and with it a number: its place, from 1. The lease says who the process
 * is, so that anybody can see whether it still lives, and counts the permits that its tokens hold,
 * of each partition: what goes back when it dies. One more addition for each half of a pair, on
 * a line that is this process's own.
 *
 *   identity   bits  0..20  when the process began, in ticks since the machine did: the lowest bits
 *              bits 21..40  its pid namespace: the lowest bits of its number
 *              bits 41..62  its pid there
 *              0: nobody has the lease
 *
 *   held       bits  0..23  permits
 *              bits 24..47  calls that have them
 *              bits 48..63  changes: whoever reads the word twice knows that nothing was in between
 *
 *   detached   the same of those permits that come on top of the limit, without the calls
 *
 * word        written by                         order    pairs with
 * ----------  ---------------------------------  -------  -------------------------------
 * identity    join: CAS from 0                   acquire  leave: all counts are zero
 * identity    leave, for oneself or a dead: 0    release  join
 * generation  join: +1                           relaxed  nothing: a number
 * held        admit: add, after the gate's +     release  the auditor (lib/shm/reap.c): who sees it
 *                                                         sees it in the gate
 * held        release: CAS, before the gate's -  relaxed  the auditor, through the gate's word
 * held        bury: exchange 0                   acq_rel  each other
 * detached    detach: add, before room's         relaxed  the auditor, through room's word
 * detached    end detached: CAS, after room's;   release  the auditor: who sees it sees it in
 *             bury: store 0, after room's                 room
 * delayed     delay: +1; end: CAS -1; bury       relaxed  nothing: a number
 *
 * Death comes between two instructions. Of a call that is admitted, first the gate has the
 * permit, then the lease; of one that ends, the lease loses it first. So if the process dies in
 * between, a permit is in flight that nobody holds: never the other way round, which would admit
 * one too many for good. lib/shm/reap.c finds such permits.
 *
 * What is detached is counted by the lease first, then in room (lib/admission/admission.h), which raises the
 * limit by it; at its end, room loses it first. So if the process dies in between, the limit is
 * raised by less than what is detached, and never by what nobody has: whoever buries the process
 * takes off all that its lease says. lib/shm/reap.c finds what is missing then.
 *
 * All that a dead process did can be seen by who sees that it is dead: the kernel is in between.
 * So what counts for its last instructions is their order in the program alone.
 */
#ifndef WEIR_LIB_LEASE_H
#define WEIR_LIB_LEASE_H

#include <stdbool.h>

#include "lib/base/park.h"

#include "lib/base/layout.h"

#define LEASES_MAX 8192

/* The number of whoever reaps without a lease of his own: one at a time (lib/shm/reap.c). */
#define REAPER (LEASES_MAX + 1)

#define ONE_CALL   (UINT64_C(1) << 24)
#define ONE_CHANGE (UINT64_C(1) << 48)
#define HELD_FIELD ((UINT32_C(1) << 24) - 1)

struct lease {
	_Alignas(LINE) _Atomic uint64_t identity;
	_Atomic uint64_t detached;
	_Atomic uint32_t generation;
	struct park bell; /* rung when a waiter of the process is promised a permit */
};

/* Of one process and one partition. */
struct holding {
	_Atomic uint64_t held;
	_Atomic uint32_t delayed; /* refusals (weir_delay_begin()) */
};

struct audit; /* lib/shm/reap.c */

/* With its arrays, which lie elsewhere. */
struct leasing {
	struct lease *leases;     /* NULL: the limiter is one's own */
	struct holding *holdings; /* stride for each lease */
	struct holding *mine;     /* NULL: there is no lease */
	struct audit *audit;
	uint64_t self;   /* this process's identity */
	uint32_t count;  /* leases */
	uint32_t stride; /* holdings, of whole lines */
	uint32_t number; /* of the lease; PRIVATE: there is none */
	uint32_t mark;   /* of this use of the lease, in each of its tokens; 0: there is none */
	uint32_t flags;  /* the algorithm's, though it may not be known here */
	char limit[16];  /* its name */
	size_t own_size; /* bytes of the handle's pages */
	size_t block_size;
	void *mapped; /* the block, if it was mapped by us; and so many bytes */
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

/* False: so much is not held. */
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

/* Copies of a token may have taken it meanwhile. */
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

/* Holdings for each lease, with so many partitions. */
uint32_t lease_stride(uint32_t parts);

/* This process's identity. */
uint64_t lease_identify(void);

/* Whose an identity is. */
int32_t lease_pid(uint64_t identity);

enum fate {
	ALIVE, /* or it cannot be told */
	DEAD,
	FOREIGN, /* of another pid namespace: it cannot be told from here */
};

/* What has become of the process, as seen from the one that is self. */
enum fate lease_fate(uint64_t identity, uint64_t self);

/* Take a free lease, and set number, mark and mine. False: there is none. */
bool lease_join(struct leasing *l);

/* The holdings of lease number, which is from 1. */
static inline struct holding *lease_holdings(const struct leasing *l, uint32_t number)
{
	return &l->holdings[(size_t)(number - 1) * l->stride];
}

/* This process's; NULL: it has none. */
static inline struct lease *lease_own(const struct leasing *l)
{
	return l->mine != NULL ? &l->leases[l->number - 1] : NULL;
}

/*
 * Wake the thread that waits for promises to that process, if its number is one of that many
 * leases.
 */
void lease_ring(struct lease *leases, uint32_t count, uint32_t number);

#endif
