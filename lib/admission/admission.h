/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission: the gate, and in front of it the partitions that share its limit.
 *
 * word        written by                        order    pairs with
 * ----------  --------------------------------  -------  --------------------------------
 * own         like the gate's word (lib/admission/gate.h): permits and waiters of one partition,
 *             and its cap in place of the limit
 * guarantee   retune: store                     relaxed  nothing: a number
 * peak        raise: CAS; roll: exchange        relaxed  nothing: a number
 * before      roll: store                       relaxed  nothing: a number
 * since       roll: CAS; the winner rolls       relaxed  nothing: a time
 * learned     the window's owner (also to load  relaxed  retune: its combiner orders it
 *             a saved state), limit_set: store
 * burst       the window's owner: store         relaxed  as learned
 * ceiling     limit_cap: store                  relaxed  as learned
 * resume      the window's owner: store         relaxed  as learned; and for a waiter, that the
 *                                                        gate's limit is 0 (lib/admission/gate.h)
 * resume      resume: CAS to 0                  relaxed  as learned
 * detached    detach: add, after the lease's    release  the auditor (lib/shm/reap.c): if it sees
 *                                                        it here, it sees it in the lease
 * detached    end detached: CAS, before the     relaxed  the auditor, through the lease's word
 *             lease's; retune reads it as learned
 * extra_in    reserve, before it: add           relaxed  a snapshot reads out, the gate, and in:
 *                                                        the gate's word carries it
 * extra_out   give back, after it, or after a   release  a snapshot: what had left the gate
 *             reserve that failed: add                   by then
 * share, cap  partitions_set: store             relaxed  as learned
 * max, delay
 * delayed     delay: CAS, +1; end: -1           relaxed  nothing: a number
 * setting     partitions_set: CAS from 0        acquire  each other: the settings pass from
 * setting     partitions_set: store 0           release  one to the next
 * retuning    the combiner's word (lib/base/combiner.h)
 *
 * A call takes its permits first from its partition's own word, which shows whether it stays within
 * the guarantee, and then from the gate; it gives them back in the same order. The gate alone
 * decides what is in flight, so the limit holds whatever partitions do. If the gate refuses, the
 * permits go back to the partition: for a moment another call of that partition found it fuller
 * than it was. That can cost the other call its guarantee, but only while the gate is full, when it
 * would have been refused anyway.
 *
 * A call that asks for more permits than the limit takes all of them: the gate's limit as the call
 * reads it, bounded by the partition's cap at the swap of the partition's word, and then by the
 * gate's limit at the swap of the gate's word. Permits that it took from the partition beyond those
 * of the gate go back to the partition, so both count the same number, at least one, which is also
 * the number in the token.
 *
 * The level of a partition is what it has lately used of its guarantee, or has been refused of it:
 * the peak of this interval or of the one before. Permits up to the level are reserved: no call
 * above its own partition's guarantee may take them. The rest of the guarantee others may borrow.
 * So a partition finds the room that it usually needs, and gets more by being refused once for each
 * additional permit (its deficit). A permit that a call has taken from its partition counts as used
 * there before the call has it from the gate. A call that borrows at that moment may take the room;
 * the other is then refused and reserves it again. Intervals are rolled by the calls that could use
 * what is reserved. A thread that raises a peak at that very moment may raise the old one, and
 * raises the new one the next time.
 *
 * While a pause lasts, the gate's limit is 0. No thread has the task to end it: the first call that
 * would be refused after it does, or a drain, which a waiter requests that has the watch
 * (lib/wait/grant.c). Whichever clears resume puts the limit into force again. If that process dies
 * on the way, the one that reaps it does.
 */
#ifndef WEIR_LIB_ADMISSION_H
#define WEIR_LIB_ADMISSION_H

#include <stdbool.h>

#include <weir/partition.h>

#include "lib/admission/permit_cache.h"

struct part {
	struct gate own;
	_Alignas(LINE) _Atomic uint32_t guarantee;
	_Atomic uint32_t peak, before;
	_Atomic uint32_t delayed;
	_Atomic uint64_t since; /* when the interval began; 0: none yet */

	/* As configured; doubles are stored as their bits. */
	_Atomic uint32_t max;
	_Atomic uint64_t share, cap;
	_Atomic uint64_t reject_delay;
};

typedef char part_name[WEIR_PARTITION_NAME_MAX + 1];

/* What determines the gate's limit, and totals that its word cannot hold. */
struct room {
	_Alignas(LINE) _Atomic uint32_t learned; /* the limit without the burst */
	_Atomic uint32_t burst;                  /* permits above it that are open now */
	_Atomic uint32_t ceiling;                /* weir_limit_cap(): bounds the sum */
	_Atomic uint32_t detached;               /* permits that raise the limit */
	_Atomic uint64_t retuning;               /* retune's combiner */
	_Atomic uint32_t setting;                /* 1 + the process in partitions_set(); 0: none */
	_Atomic uint32_t delayed;                /* refusals being delayed, of all partitions */
	_Atomic uint64_t extra_in, extra_out;    /* permits beyond one for each call */
	_Atomic uint64_t resume;                 /* when a pause ends; 0: there is none */
};

/* A process's view of an admission: pointers to its arrays, and constants. */
struct admission {
	struct gate *gate;
	struct room *room;
	struct part *parts;
	const part_name *names;
	uint32_t count; /* of partitions; 0: there are none */
	uint32_t owner; /* this process's number (lib/base/layout.h) */
	uint32_t limit_max;
	uint32_t delayed_max;
	weir_dur hold; /* weir_config.partition_hold */
	struct permit_cache cache;
};

struct admission_config {
	const struct weir_partition *partitions; /* complete, partition 0 first */
	uint32_t count;
	uint32_t delayed_max;
	weir_dur hold;
};

/* A call that asks for permits. */
struct request {
	uint32_t cost;
	uint16_t part;
	uint8_t rank;  /* of its priority (lib/admission/shed.h): margins that it leaves free */
	bool overtake; /* admitted even if calls wait */
	bool queued;   /* its permit goes through a slot of the queue, so it is not a lent one */
};

enum decision {
	ADMITTED,
	REFUSED,
	REFUSED_RESERVED, /* the free permits are reserved for others: see admission_lapse() */
	REFUSED_DEFICIT,  /* refused within its guarantee: call admission_raise_level() */
};

void admission_init(const struct admission *a, const struct admission_config *config,
		    uint32_t limit, uint32_t burst);

enum decision admission_reserve_part(const struct admission *a, const struct request *request,
				     struct permit *permit);

/*
 * Of that many permits, how many a call of that cost and rank must leave free: rank *
 * sqrt(permits), but no more than leaves room for the call itself.
 */
uint32_t admission_margin(uint32_t permits, uint32_t cost, uint32_t rank);

/* The learned limit, bounded even if another process has stored a wrong value. */
static inline uint32_t admission_limit(const struct admission *a)
{
	const uint32_t learned = atomic_load_explicit(&a->room->learned, memory_order_relaxed);

	return learned < a->limit_max ? learned : a->limit_max;
}

static inline uint32_t admission_detached(const struct admission *a)
{
	return atomic_load_explicit(&a->room->detached, memory_order_relaxed);
}

/* The limit, bounded by weir_limit_cap(). */
static inline uint32_t admission_capped(const struct admission *a, uint32_t limit)
{
	const uint32_t ceiling = atomic_load_explicit(&a->room->ceiling, memory_order_relaxed);

	return limit < ceiling ? limit : ceiling;
}

/* Whether the limit pauses: 0 is in force in its place. Also after the pause, until a call notices. */
static inline bool admission_paused(const struct admission *a)
{
	return atomic_load_explicit(&a->room->resume, memory_order_relaxed) != 0;
}

/* The limit, raised by detached permits. */
static inline uint32_t admission_raised(const struct admission *a)
{
	const uint32_t limit = admission_limit(a), detached = admission_detached(a);
	const uint32_t most = a->limit_max > limit ? a->limit_max - limit : 0;

	return admission_capped(a, limit + (detached < most ? detached : most));
}

/* Raise the limit by permits that are in flight, or end that. Afterwards, retune. */
void admission_detach(const struct admission *a, uint32_t cost);
void admission_end_detached(const struct admission *a, uint32_t cost);

/* Try the gate again after calling back all idle permits; as gate_reserve(). */
struct permit admission_take_again(const struct admission *a, uint32_t want, uint32_t leave,
				   bool overtake);

/* Take permits from the gate. mode is the permit cache's, read before. */
static inline bool admission_take_gate(const struct admission *a, uint32_t mode, uint32_t want,
				       uint32_t leave, bool overtake, struct permit *permit)
{
	uint32_t inflight = 0, cost = gate_reserve(a->gate, want, leave, overtake, &inflight);

	*permit = (struct permit){.inflight = inflight, .cost = cost};
	/*
	 * An admitted call is in flight. Testing inflight instead of cost lets the compiler treat a
	 * cost of 1 as a constant.
	 */
	if (LIKELY(inflight > 0) && LIKELY(!cache_is(mode, CACHE_OPEN)))
		return true;
	if (inflight == 0 && LIKELY(cache_stayed_shut(&a->cache, mode)))
		return false;
	if (inflight == 0)
		*permit = admission_take_again(a, want, leave, overtake);
	if (permit->inflight > 0 && cache_is(mode, CACHE_OPEN))
		*permit = cache_count(&a->cache, *permit, 0);
	return permit->inflight > 0;
}

/*
 * How a call takes permits: how many it leaves free, whether it is admitted even if calls wait, and
 * whether it may have one that is lent.
 */
struct terms {
	uint32_t leave;
	bool overtake, lend;
};

/* Take one permit, of the stripe if the cache is open. */
static inline bool admission_take_one(const struct admission *a, struct terms terms,
				      struct permit *permit)
{
	const uint32_t mode = cache_mode(&a->cache);
	bool admitted = false;

	if (cache_is(mode, CACHE_OPEN) && terms.lend) {
		*permit = cache_reserve(&a->cache, terms.leave, terms.overtake);
		admitted = permit->inflight > 0;
	}
	if (!admitted)
		admitted = admission_take_gate(a, mode, 1, terms.leave, terms.overtake, permit);
	permit->cost = admitted; /* nearly a constant, for compilers */
	return admitted;
}

/* Take permits. */
static inline bool admission_take(const struct admission *a, uint32_t want, struct terms terms,
				  struct permit *permit)
{
	const uint32_t mode = cache_mode(&a->cache);
	uint32_t vain;

	if (LIKELY(want == 1))
		return admission_take_one(a, terms, permit);
	atomic_fetch_add_explicit(&a->room->extra_in, want - 1, memory_order_relaxed);
	vain = admission_take_gate(a, mode, want, terms.leave, terms.overtake, permit)
		       ? want - permit->cost
		       : want - 1;
	if (vain > 0)
		atomic_fetch_add_explicit(&a->room->extra_out, vain, memory_order_release);
	return permit->cost > 0;
}

/* Reserve one permit, where there are neither partitions nor priorities. */
static inline bool admission_reserve_one(const struct admission *a, const struct request *request,
					 struct permit *permit)
{
	const struct terms terms = {.overtake = request->overtake, .lend = !request->queued};
	const bool admitted = admission_take_one(a, terms, permit);

	permit->cost = 1; /* a constant, for compilers */
	return admitted;
}

/* Decide on a call, and take its permits if it is admitted. */
static inline enum decision admission_reserve(const struct admission *a,
					      const struct request *request, struct permit *permit)
{
	struct terms terms = {.overtake = request->overtake, .lend = !request->queued};
	uint64_t word;

	if (a->count > 0)
		return admission_reserve_part(a, request, permit);
	if (LIKELY(request->cost == 1 && request->rank == 0))
		return admission_reserve_one(a, request, permit) ? ADMITTED : REFUSED;
	word = gate_read(a->gate);
	*permit = (struct permit){.cost = 0};
	terms.leave = admission_margin(gate_limit(word), gate_cost(word, request->cost),
				       request->rank);
	return admission_take(a, request->cost, terms, permit) ? ADMITTED : REFUSED;
}

/* Undo gate_subtract() of permits that a copy of a token gave back, if there is a partition. */
static inline bool admission_mend(struct gate *partition, uint32_t cost)
{
	return partition != NULL && gate_waiters(gate_mend(partition, cost)) != 0;
}

/*
 * Give the gate's own permits back. Those that a copy of a token gave back are restored in the
 * partition first: as long as the gate is below zero, no call that they concern gets past it, so
 * none can be counted in the partition without its permits.
 */
static inline struct returned admission_give_back_all(const struct admission *a,
						      struct gate *partition, uint32_t cost)
{
	const uint64_t before = gate_subtract(a->gate, cost);
	struct returned returned = {.held = gate_held(before, cost)};

	if (UNLIKELY(!returned.held)) {
		returned.drain = admission_mend(partition, cost);
		returned.drain |= gate_waiters(gate_mend(a->gate, cost)) != 0;
		return returned;
	}
	returned.drain = gate_waiters(before) != 0;
	return returned;
}

/* The same for permits that are lent (home is their stripe), and beside such. */
static inline struct returned admission_give_back_lent(const struct admission *a,
						       struct gate *partition, uint32_t cost,
						       uint32_t home)
{
	struct returned returned = home != 0 ? cache_give_back(&a->cache, home)
					     : cache_give_back_beside(&a->cache, cost);

	if (UNLIKELY(!returned.held))
		returned.drain |= admission_mend(partition, cost);
	return returned;
}

/* Give permits back. home is the stripe of a lent one, from 1; 0: none. */
static inline struct returned admission_give_back(const struct admission *a, uint16_t part,
						  uint32_t cost, uint32_t home)
{
	struct gate *partition = a->count > 0 ? &a->parts[part].own : NULL;
	struct returned returned = {.held = false};
	uint64_t own = 0;

	if (partition != NULL) {
		own = gate_subtract(partition, cost);
		if (UNLIKELY(!gate_held(own, cost))) {
			returned.drain = admission_mend(partition, cost);
			return returned;
		}
	}
	if (home != 0 || UNLIKELY(gate_lends(a->gate)))
		returned = admission_give_back_lent(a, partition, cost, home);
	else
		returned = admission_give_back_all(a, partition, cost);
	returned.drain |= gate_waiters(own) != 0;
	if (UNLIKELY(returned.held && cost != 1))
		atomic_fetch_add_explicit(&a->room->extra_out, cost - 1, memory_order_release);
	return returned;
}

/* Whether the call would stay within its partition's guarantee now. */
bool admission_entitled(const struct admission *a, const struct request *request);

/*
 * Raise the level after a call was refused within its partition's guarantee, so that permits for
 * its deficit are reserved. True if fewer permits are reserved now because an interval was rolled:
 * drain the queue.
 */
bool admission_raise_level(const struct admission *a, const struct request *request, weir_time now);

/* Permits reserved for a partition beside those it has in flight. */
uint32_t admission_reserved_for(const struct part *part);

/* Whether any permits are reserved. */
bool admission_has_reserved(const struct admission *a);

/*
 * Pause until that time, or no longer if it is 0 or past. True if that changes anything: retune.
 * Only the window's owner calls it.
 */
bool admission_pause(const struct admission *a, weir_time until, weir_time now);

/*
 * If a pause is over, put the limit into force again. True if this call did: drain the queue, unless
 * a drain calls it.
 */
bool admission_resume(const struct admission *a, weir_time now);

/* Whether the time alone may free permits: reserved ones, or after a pause. */
bool admission_awaits_time(const struct admission *a);

/* If so, when: drain then. */
weir_time admission_next_drain(const struct admission *a, weir_time now);

/* Drop reservations that have not been used for an interval. True if there were any. */
bool admission_lapse(const struct admission *a, weir_time now);

/*
 * Set the gate's limit, and all guarantees and caps, from what is learned and configured. If
 * another thread is doing that, it does it again. Afterwards, drain the queue if any call waits.
 */
void admission_retune(const struct admission *a);

/* Whether no retune is going on. False: a thread of process *owner is doing one. */
bool admission_is_tuned(const struct admission *a, uint32_t *owner);

/*
 * Retune although another process is doing it and does not proceed. That process may be about to
 * store old values, which are in force for a moment when it continues; it then finds that another
 * run was requested, and corrects them. Only for a shared limiter, which lends no permits.
 */
void admission_retune_beside(const struct admission *a);

/* Finish what a dead process left unfinished. */
void admission_recover(const struct admission *a, uint32_t dead);

/* Calls that wait, in all partitions. */
uint32_t admission_waiting(const struct admission *a);

static inline double double_of(const _Atomic uint64_t *bits)
{
	uint64_t word = atomic_load_explicit(bits, memory_order_relaxed);
	double value;

	_Static_assert(sizeof(value) == sizeof(word), "a double is one word");
	__builtin_memcpy(&value, &word, sizeof(value));
	return value;
}

static inline void set_double(_Atomic uint64_t *bits, double value)
{
	uint64_t word;

	__builtin_memcpy(&word, &value, sizeof(word));
	atomic_store_explicit(bits, word, memory_order_relaxed);
}

#endif
