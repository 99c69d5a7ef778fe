/*
 * Admission: the gate, and in front of it the partitions that share its limit.
 *
 * word        written by                        order    pairs with
 * ----------  --------------------------------  -------  --------------------------------
 * own         as the gate's word (lib/admission/gate.h): permits and waiters of one partition,
 *             and its cap in place of the limit
 * guarantee   retune: store                     relaxed  nothing: a number
 * peak        raise: CAS; roll: exchange        relaxed  nothing: a number
 * before      roll: store                       relaxed  nothing: a number
 * since       roll: CAS; who wins it rolls      relaxed  nothing: a time
 * learned     the window's owner (also to load  relaxed  retune: the errand orders it
 *             a memory), limit_set: store
 * burst       the window's owner: store         relaxed  as learned
 * ceiling     limit_cap: store                  relaxed  as learned
 * detached    detach: add, after the lease's    release  the auditor (lib/shm/reap.c): who sees it
 *                                                        sees it in the lease
 * detached    end detached: CAS, before the      relaxed  the auditor, through the lease's word
 *             lease's; retune reads it as learned
 * extra_in    reserve, before it: add           relaxed  a snapshot reads out, the gate, and in:
 *                                                        the gate's word carries it
 * extra_out   give back, after it, or after a   release  a snapshot: what had gone from the
 *             reserve that failed: add                   gate by then
 * share, cap  partitions_set: store             relaxed  as learned
 * max, delay
 * delayed     delay: CAS, +1; end: -1           relaxed  nothing: a number
 * setting     partitions_set: CAS from 0        acquire  each other: the settings pass from
 * setting     partitions_set: store 0           release  one to the next
 * retuning    the errand's word (lib/base/combiner.h)
 *
 * A call takes its permits from its partition's own word first, which tells
 * whether it stays within the guarantee, and then from the gate; it gives them back in the same
 * order. The gate alone decides what is in flight, so the limit holds whatever
 * partitions do. Where the gate refuses, the partition gets its permits back: for
 * an instant another call of that partition found it fuller than it was. That can
 * cost the other its guarantee, but only while the gate is full, when it would have been
 * refused as well.
 *
 * A call that asks for more permits than there are takes all: the gate's limit as the call finds
 * it, bounded by the partition's cap at the swap of the partition's word, and then by the gate's
 * limit at the swap of the gate's word. Permits that the partition gave beyond those of the gate go
 * back to it, so both hold the same number, which is the one in the token: at least one.
 *
 * What a partition has lately used of its guarantee, or has been refused of it, is its level:
 * the peak of this interval or of the one before. Room up to the level is kept from all who
 * are above their guarantee; the rest of the guarantee they may borrow. So a
 * partition finds the room that it is used to, and gets more by being refused once for each
 * permit more. Peaks are rolled on by those to whom the room that is kept would be of
 * use; who raises a peak at that very moment may raise the old one, and raises the
 * new one the next time.
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
	_Atomic uint64_t since; /* when the interval began; 0: there was none */

	/* As configured; the doubles as their bits. */
	_Atomic uint32_t max;
	_Atomic uint64_t share, cap;
	_Atomic uint64_t reject_delay;
};

typedef char part_name[WEIR_PARTITION_NAME_MAX + 1];

struct room {
	_Alignas(LINE) _Atomic uint32_t learned; /* the limit without the burst */
	_Atomic uint32_t burst;                  /* permits above it that are open */
	_Atomic uint32_t ceiling;                /* all together is no more than that */
	_Atomic uint32_t detached;               /* permits that it is raised by */
	_Atomic uint64_t retuning;
	_Atomic uint32_t setting; /* whose process is at partitions_set(), + 1; 0: nobody's */
	_Atomic uint32_t delayed; /* refusals, of all partitions */
	_Atomic uint64_t extra_in, extra_out;
};

/* With its arrays, which lie elsewhere; and what never changes. */
struct admission {
	struct gate *gate;
	struct room *room;
	struct part *parts;
	const part_name *names;
	uint32_t count; /* 0: there are no partitions */
	uint32_t owner; /* this process's number (lib/base/layout.h) */
	uint32_t limit_max;
	uint32_t delayed_max;
	weir_dur hold;
	struct permit_cache cache;
};

struct admission_config {
	const struct weir_partition *partitions; /* complete, partition 0 first */
	uint32_t count;
	uint32_t delayed_max;
	weir_dur hold;
};

/* Who asks. */
struct request {
	uint32_t cost;
	uint16_t part;
	uint8_t rank; /* of its priority (lib/admission/shed.h): above 0, it leaves so many margins */
	bool overtake; /* may pass those who wait */
};

/* What was taken. wake: who waits could go on, so drain the queue, whether it was or not. */
struct permit {
	uint32_t inflight;
	uint32_t cost;
	uint32_t
		home; /* of a permit that is lent (lib/admission/permit_cache.h): 1 and up; 0: the gate's own */
	bool wake;
};

enum decision {
	ADMITTED,
	REFUSED,
	REFUSED_RESERVED, /* there is room, but it is kept for others: see whether that lapses */
	REFUSED_DEFICIT,  /* within its guarantee: see that room is kept for it */
};

void admission_init(const struct admission *a, const struct admission_config *config,
		    uint32_t limit, uint32_t burst);

enum decision admission_reserve_part(const struct admission *a, const struct request *request,
				     struct permit *permit);

/*
 * Permits, of so many, that a call of that cost and rank leaves to others: as many roots of
 * them as its rank, but where nobody else is, room for itself.
 */
uint32_t admission_margin(uint32_t permits, uint32_t cost, uint32_t rank);

/* Within its bounds, whatever others may have stored. */
static inline uint32_t admission_limit(const struct admission *a)
{
	const uint32_t learned = atomic_load_explicit(&a->room->learned, memory_order_relaxed);

	return learned < a->limit_max ? learned : a->limit_max;
}

static inline uint32_t admission_detached(const struct admission *a)
{
	return atomic_load_explicit(&a->room->detached, memory_order_relaxed);
}

/* No more of a limit than may be from outside. */
static inline uint32_t admission_capped(const struct admission *a, uint32_t limit)
{
	const uint32_t ceiling = atomic_load_explicit(&a->room->ceiling, memory_order_relaxed);

	return limit < ceiling ? limit : ceiling;
}

/* The limit as it is raised by what is detached. */
static inline uint32_t admission_raised(const struct admission *a)
{
	const uint32_t limit = admission_limit(a), detached = admission_detached(a);
	const uint32_t most = a->limit_max > limit ? a->limit_max - limit : 0;

	return admission_capped(a, limit + (detached < most ? detached : most));
}

/* Permits that are in flight come on top of the limit, or do so no more. Afterwards, retune. */
void admission_detach(const struct admission *a, uint32_t cost);
void admission_end_detached(const struct admission *a, uint32_t cost);

/*
 * Try the gate once more, with all idle permits called back: as gate_reserve(). *wake: drain the
 * queue.
 */
uint32_t admission_take_again(const struct admission *a, uint32_t want, uint32_t leave,
			      bool overtake, uint32_t *inflight, bool *wake);

/* Of the gate; with what the mode of credits was before. */
static inline bool admission_take_gate(const struct admission *a, uint32_t mode, uint32_t want,
				       uint32_t leave, bool overtake, struct permit *permit)
{
	uint32_t inflight = 0, cost = gate_reserve(a->gate, want, leave, overtake, &inflight);
	bool wake = false;

	/*
	 * A call with a permit is in flight; so compilers need not keep in mind that its cost is 1.
	 */
	if (UNLIKELY(inflight == 0) && UNLIKELY(!cache_stayed_shut(&a->cache, mode)))
		cost = admission_take_again(a, want, leave, overtake, &inflight, &wake);
	if (UNLIKELY(inflight > 0 && cache_is(mode, CACHE_OPEN)))
		inflight = cache_inflight(&a->cache, 0, &wake);
	permit->inflight = inflight;
	permit->cost = cost;
	permit->wake = wake;
	return inflight > 0;
}

/* The gate's part of it, for a call that leaves so many permits to others. */
static inline bool admission_take(const struct admission *a, uint32_t want, uint32_t leave,
				  bool overtake, struct permit *permit)
{
	const uint32_t mode = cache_mode(&a->cache);
	uint32_t vain;

	if (LIKELY(want == 1))
		return admission_take_gate(a, mode, 1, leave, overtake, permit);
	atomic_fetch_add_explicit(&a->room->extra_in, want - 1, memory_order_relaxed);
	vain = admission_take_gate(a, mode, want, leave, overtake, permit) ? want - permit->cost
									   : want - 1;
	if (vain > 0)
		atomic_fetch_add_explicit(&a->room->extra_out, vain, memory_order_release);
	return permit->cost > 0;
}

/* One permit, where there are neither partitions nor priorities. */
static inline bool admission_reserve_one(const struct admission *a, bool overtake,
					 struct permit *permit)
{
	const uint32_t mode = cache_mode(&a->cache);
	uint32_t inflight, home; /* not in a structure that is copied at once: loads would wait */
	bool wake;

	*permit = (struct permit){.cost = 1};
	if (!cache_is(mode, CACHE_OPEN) || overtake ||
	    !cache_reserve(&a->cache, &inflight, &home, &wake)) {
		const bool admitted = admission_take_gate(a, mode, 1, 0, overtake, permit);

		permit->cost = 1;
		return admitted;
	}
	permit->inflight = inflight;
	permit->home = home;
	permit->wake = wake;
	return true;
}

static inline enum decision admission_reserve(const struct admission *a,
					      const struct request *request, struct permit *permit)
{
	uint64_t word;
	uint32_t leave;

	if (a->count > 0)
		return admission_reserve_part(a, request, permit);
	if (LIKELY(request->cost == 1 && request->rank == 0))
		return admission_reserve_one(a, request->overtake, permit) ? ADMITTED : REFUSED;
	word = gate_read(a->gate);
	*permit = (struct permit){.cost = 0};
	leave = admission_margin(gate_limit(word), gate_cost(word, request->cost), request->rank);
	return admission_take(a, request->cost, leave, request->overtake, permit) ? ADMITTED
										  : REFUSED;
}

/*
 * False: they were not held. *wake: drain the queue. What a copy has taken is mended in its
 * partition first: as long as the gate is below zero, nobody whom that concerns gets past it, so
 * none can be in the partition's word without his permits.
 */
static inline bool admission_give_back(const struct admission *a, uint16_t part, uint32_t cost,
				       bool *wake)
{
	struct gate *partition = a->count > 0 ? &a->parts[part].own : NULL;
	uint64_t own = partition != NULL ? gate_subtract(partition, cost) : 0, all = 0;
	bool held = partition == NULL || gate_held(own, cost);

	if (LIKELY(held) && UNLIKELY(gate_lends(a->gate))) {
		held = cache_give_back_beside(&a->cache, cost, wake);
	} else if (LIKELY(held)) {
		all = gate_subtract(a->gate, cost);
		held = gate_held(all, cost);
		if (UNLIKELY(!held && partition != NULL))
			own = gate_mend(partition, cost);
		if (UNLIKELY(!held))
			all = gate_mend(a->gate, cost);
		*wake = gate_waiters(all) != 0 || gate_waiters(own) != 0;
	} else {
		own = gate_mend(partition, cost);
		*wake = gate_waiters(own) != 0;
	}
	if (UNLIKELY(held && cost != 1))
		atomic_fetch_add_explicit(&a->room->extra_out, cost - 1, memory_order_release);
	return held;
}

/* Whether the call would stay within its partition's guarantee. */
bool admission_entitled(const struct admission *a, const struct request *request);

/*
 * Raise the level for a call that was refused within its partition's guarantee. True if
 * less is kept, for the past, in turn: drain the queue.
 */
bool admission_raise_level(const struct admission *a, const struct request *request, weir_time now);

/* Permits that are kept for a partition beside those it has. */
uint32_t admission_reserved_for(const struct part *part);

/* Whether any are kept for anybody. */
bool admission_has_reserved(const struct admission *a);

/* Let go of what has been kept for an interval and not been used. True if there was any. */
bool admission_lapse(const struct admission *a, weir_time now);

/*
 * Set the gate's limit, and all guarantees and caps, to what is learned and configured. If another
 * thread is doing that, it is asked to do it again. Afterwards, drain the queue if a call waits.
 */
void admission_retune(const struct admission *a);

/* Whether it has been done. If not, a thread of process *owner is doing it. */
bool admission_is_tuned(const struct admission *a, uint32_t *owner);

/*
 * The same beside a process that is doing it and does not go on. The values that the other process
 * is about to store may be old, and are in force for an instant when it goes on; then it finds that
 * it has been asked to do it again. Only where a limiter is shared: its permits are not lent.
 */
void admission_retune_beside(const struct admission *a);

/* Go on with what a dead process was at. */
void admission_recover(const struct admission *a, uint32_t dead);

/* Those who wait, in all partitions. */
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
