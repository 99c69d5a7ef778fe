/*
 * Admission: the gate, and in front of it the partitions that share its limit.
 *
 * word        written by                        order    pairs with
 * ----------  --------------------------------  -------  --------------------------------
 * own         as the gate's word (lib/gate.h): permits and waiters of one partition,
 *             and its cap in place of the limit
 * guarantee   retune: store                     relaxed  nothing: a number
 * claim       claim, take up, lapse: CAS        release  lapse: claimed_at
 * claimed_at  claim: store                      relaxed  claim carries it
 * kept        claim, take up, lapse: add        relaxed  nothing: a number, the sum of all
 *                                                        claims but for those on their way
 * learned,    the window's owner, limit_set:    relaxed  retune: the errand orders them
 * burst       store
 * share, cap  partitions_set: store             relaxed  as learned
 * max, delay
 * delayed     delay: CAS, +1; end: -1           relaxed  nothing: a number
 * retuning    the errand's word (lib/errand.h)
 *
 * A call takes its permits from its partition's own word first, which tells
 * whether it stays within the guarantee, and then from the gate; it gives them back in the same
 * order. The gate alone decides what is in flight, so the limit holds whatever
 * partitions do. Where the gate refuses, the partition gets its permits back: for
 * an instant another call of that partition found it fuller than it was. That can
 * cost the other its claim to the guarantee, but only while the gate is full, when it would have been
 * refused as well.
 *
 * A guarantee is kept by claims. Who is refused within his guarantee leaves one:
 * so many permits, of those that come free next, are kept from all who are above theirs.
 * A claim is used up by the partition's next admissions, or lapses. Two claims and an
 * admission that cross may leave kept off for an instant, below zero even, never
 * for good: each change of a claim is followed by the same change of kept.
 */
#ifndef WEIR_LIB_ADMISSION_H
#define WEIR_LIB_ADMISSION_H

#include <stdbool.h>

#include <weir/partition.h>

#include "lib/gate.h"

struct part {
	struct gate own;
	_Alignas(LINE) _Atomic uint32_t guarantee;
	_Atomic uint32_t claim;
	_Atomic uint64_t claimed_at;
	_Atomic uint32_t delayed;

	/* As configured; the doubles as their bits. */
	_Atomic uint32_t max;
	_Atomic uint64_t share, cap;
	_Atomic uint64_t reject_delay;
	char name[WEIR_PARTITION_NAME_MAX + 1];
};

struct room {
	_Alignas(LINE) _Atomic int32_t kept;
	_Atomic uint32_t learned; /* the limit without the burst */
	_Atomic uint32_t burst;   /* permits above it that are open */
	_Atomic uint32_t retuning;
	_Atomic uint32_t setting; /* 1: partitions_set() is at it */
	_Atomic uint32_t delayed; /* refusals, of all partitions */
	uint32_t delayed_max;     /* never changes */
	weir_dur hold;            /* never changes */
};

/* With its arrays, which lie elsewhere in the same memory. */
struct admission {
	struct gate *gate;
	struct room *room;
	struct part *parts;
	uint32_t count; /* 0: there are no partitions */
};

struct admission_config {
	const struct weir_partition *partitions; /* complete, partition 0 first */
	uint32_t count;
	uint32_t delayed_max;
	weir_dur hold;
};

/* Who asks. */
struct demand {
	uint32_t cost;
	uint16_t part;
	bool low;      /* of a priority that is being shed: gets what others leave */
	bool overtake; /* may pass those who wait */
};

/* What was taken. wake: who waits could go on, so drain the queue. */
struct permit {
	uint32_t inflight;
	uint32_t cost;
	bool wake;
};

enum verdict {
	ADMITTED,
	REFUSED,
	REFUSED_KEPT, /* there is room, but it is kept for others: see whether that lapses */
	REFUSED_OWED, /* within its guarantee: leave a claim */
};

void admission_init(const struct admission *a, const struct admission_config *config,
		    uint32_t limit, uint32_t burst);

enum verdict admission_reserve_part(const struct admission *a, const struct demand *d,
				    struct permit *permit);

/* Permits that a call of low priority has to leave, of so many: their root, but not all. */
uint32_t admission_margin(uint32_t permits);

static inline uint32_t admission_limit(const struct admission *a)
{
	return atomic_load_explicit(&a->room->learned, memory_order_relaxed);
}

static inline enum verdict admission_reserve(const struct admission *a, const struct demand *d,
					     struct permit *permit)
{
	uint32_t limit, leave;

	if (a->count > 0)
		return admission_reserve_part(a, d, permit);
	permit->wake = false;
	permit->cost = d->cost;
	if (LIKELY(d->cost == 1 && !d->low))
		return gate_reserve(a->gate, 1, 0, d->overtake, &permit->inflight) ? ADMITTED
										   : REFUSED;
	limit = gate_limit(gate_read(a->gate));
	permit->cost = d->cost < limit ? d->cost : limit;
	leave = d->low ? admission_margin(limit) : 0;
	return gate_reserve(a->gate, permit->cost, leave, d->overtake, &permit->inflight) ? ADMITTED
											  : REFUSED;
}

/* False: they were not held. *wake: drain the queue. */
static inline bool admission_give_back(const struct admission *a, uint16_t part, uint32_t cost,
				       bool *wake)
{
	uint64_t before, own = 0;

	if (a->count > 0 && !gate_give_back(&a->parts[part].own, cost, &own))
		return false;
	if (!gate_give_back(a->gate, cost, &before))
		return false;
	*wake = gate_waiters(before) != 0 || gate_waiters(own) != 0;
	return true;
}

/* Whether the call would stay within its partition's guarantee. */
bool admission_entitled(const struct admission *a, const struct demand *d);

/* Keep room for a call that was refused within its guarantee. */
void admission_claim(const struct admission *a, const struct demand *d, weir_time now);

/* Drop claims that nobody has come back for. True if there were any. */
bool admission_lapse(const struct admission *a, weir_time now);

static inline bool admission_keeps(const struct admission *a)
{
	return a->count > 0 && atomic_load_explicit(&a->room->kept, memory_order_relaxed) > 0;
}

/*
 * Bring the gate's limit, and all guarantees and caps, to what is learned and configured.
 * Waits for a thread that is at it only if told to. Afterwards, drain the queue if
 * somebody waits.
 */
void admission_retune(const struct admission *a, bool wait);

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
