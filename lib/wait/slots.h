/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a queue: their states, and which code may change them. lib/wait/queue.c has the
 * operations of waiters, lib/wait/grant.c hands out permits, and lib/wait/recovery.c cleans up
 * after dead processes.
 *
 *          enter          enter              drain                   drain             poll
 *    FREE -------> TAKEN -------> WAITING ------------> NOTIFYING --------------> GRANTED ----> FREE
 *                                 |  |  \____________________________________^   ^
 *                                 |  |     drain, if there is no callback        |
 *                                 |  |     drain of another process              | poll
 *                                 |  +-----------------------------> PROMISED ---+
 *                                 | leave             drain             \ notify
 *                                 +--------> ABANDONED ------> FREE      +----> NOTIFYING
 *
 * Every way out of WAITING is one compare-and-swap, so a grant and a leave cannot both happen: a
 * waiter that loses to a grant has the permit. NOTIFYING lasts while the waiter's callback runs;
 * poll and leave wait for its end, so that what the callback uses may be freed after them. If poll
 * or leave is called from the callback itself, it takes the permit and frees the slot
 * (lib/base/notify.h). Before a callback runs, everything is in the state in which its waiter may
 * find it.
 *
 * A callback belongs to one process. If another process hands the permit over, the waiter is
 * PROMISED until its own process notifies it, or until it polls. A slot may also be taken for a
 * permit that has been reserved already (enter_granted): then it is NOTIFYING at once, or GRANTED.
 *
 * The states are shared by all processes. Whether a callback runs is decided by a word of its own
 * process (lib/wait/callback.h). In a shared limiter, poll and leave look at that word alone, and
 * go on where the state says NOTIFYING but no callback runs.
 *
 * word     written by                       order    pairs with
 * -------  -------------------------------  -------  --------------------------------------
 * state    claim: CAS from FREE             acquire  slot_free
 * state    enter: store WAITING             release  drain, at its look: the slot's plain fields
 * state    drain: CAS from WAITING          release  poll, leave: slot.inflight
 * state    drain: CAS to GRANTED            release  poll, leave: slot.inflight
 * state    notify: CAS from NOTIFYING       release  poll, leave: what the callback did
 * state    notify: CAS from PROMISED        acquire  poll, leave, if one of them came first
 * state    poll: CAS from PROMISED,         acquire  drain's CAS
 *          NOTIFYING
 * state    leave: CAS to ABANDONED          acq_rel  drain's CAS, if that came first; drain, at its
 *                                                    look
 * state    slot_free: store FREE            release  claim
 * state    enter_granted: store NOTIFYING,  release  poll, leave: slot.inflight
 *          GRANTED
 * granted  drain, enter_granted: store      relaxed  state carries it; and a number
 * part     claim: store                     relaxed  as granted
 * watches  watch: store                     relaxed  drain: pending orders it
 * fresh[i] report: or                       release  drain: state
 * fresh[i] drain: exchange 0                acquire  report
 * news     report: or, after fresh          release  drain: fresh
 * news     drain: exchange 0                acquire  report
 * free     lib/base/bitmap.h
 * pending  the combiner's word (lib/base/combiner.h): the lists and the drainer's fields pass from
 *          drainer to drainer, and a drain sees what was done before each request that it serves
 * open     shadow_set: store                relaxed  nothing: a drain is requested after it
 * next,    the drainer: store               relaxed  pending
 * prev,
 * head,
 * tail
 *
 * Only a slot's state is authoritative. The bits of free say where a free slot may be found, and
 * those of fresh where the drainer may find a change; either way the state is checked. So an extra
 * bit does no harm, and a bit that was lost with a process can be set again.
 *
 * Why no waiter is forgotten. A waiter (1) announces itself on the gate's word, (2) becomes WAITING
 * and reports its slot, and (3) requests a drain; so it is never retracted from the gate before it
 * is announced there. A thread that makes room, by a release or a raised limit, (a) changes the
 * gate's word and, if it shows waiters, (b) requests a drain. (1) and (a) modify the same word, so
 * one of them is first.
 *   (a) first: the drain that serves (3) comes after (1), hence after (a), and
 *       finds the room.
 *   (1) first: (a) sees the waiter, so (b) follows. (3) and (b) both modify
 *       pending. The drain that serves the later of the two sees what was
 *       done before the earlier as well: the report and the room.
 * A waiter of a partition announces itself on the partition's word too, where a thread that makes
 * room in the partition sees it. While the partition is at its cap, its waiters cannot use room in
 * the gate and must not keep others from it. The drainer then retracts their announcement from the
 * gate (the row is stuck). Once the cap allows, it announces them again, before it looks at the
 * gate. Everything else that may let a waiter proceed, such as a reservation that lapses or a
 * guarantee that grows, is followed by a request for a drain, whether any call waits or not.
 *
 * Why the death of a process loses nothing. Lists belong to the drainer. If it dies, recovery
 * (queue_recover()) rebuilds them from the states of all slots, and wakes again every waiter that
 * the dead drainer may have granted a permit without waking it. A waiter that dies leaves a slot
 * with the number of its process; the process that detects the death acts in its place
 * (queue_reclaim()). The number announced may then be too high or too low. The right number is
 * known whenever no slot is TAKEN, because waiters announce themselves in that state, and only a
 * drain retracts. A drainer that finds no slot TAKEN corrects it (queue_recount()). Until then, at
 * worst, new calls are refused as if others waited.
 *
 * Why no access leaves the block. A process that shares the limiter may store anything in it at any
 * time. So each kind of number that is used as an index is read by one function, once, and turned
 * into an index that exists: a partition by slot_part(), a link by slot_at(), a bit of free or
 * fresh through bitmap_mask(), the number of a process by lease_ring(). An invalid link ends its
 * list. Lists may have become rings, so no walk and no drain takes more steps than there are slots;
 * with intact lists it never needs more. The only things that can go wrong then are which waiter is
 * served, and when.
 */
#ifndef WEIR_LIB_SLOTS_H
#define WEIR_LIB_SLOTS_H

#include "lib/wait/queue.h"

#include "lib/base/bitmap.h"
#include "lib/base/notify.h"

#define NIL UINT32_MAX

enum { FREE, TAKEN, WAITING, PROMISED, NOTIFYING, GRANTED, ABANDONED };

/*
 * A slot's state word also holds a stamp of its use, by which a stale waiter is recognized, and the
 * number of its waiter's process.
 */
#define STATE_BITS  3
#define STATE_MASK  ((1u << STATE_BITS) - 1)
#define OWNER_SHIFT 32

static inline uint64_t slot_word(uint32_t owner, uint32_t stamp, uint32_t state)
{
	return (uint64_t)owner << OWNER_SHIFT | stamp << STATE_BITS | state;
}

static inline uint32_t word_owner(uint64_t word)
{
	return (uint32_t)(word >> OWNER_SHIFT);
}

static inline uint32_t word_stamp(uint64_t word)
{
	return (uint32_t)word >> STATE_BITS;
}

static inline uint32_t word_state(uint64_t word)
{
	return (uint32_t)word & STATE_MASK;
}

/* The word for the same use of the slot in another state. */
static inline uint64_t word_with(uint64_t word, uint32_t state)
{
	return (word & ~(uint64_t)STATE_MASK) | state;
}

static inline uint64_t slot_read(const struct slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_acquire);
}

/* The row of its partition; row 0 if the slot holds an invalid partition. */
static inline uint16_t slot_part(const struct queueing *q, uint32_t i)
{
	const uint16_t part = atomic_load_explicit(&q->slots[i].part, memory_order_relaxed);

	return LIKELY(part < q->config.rows) ? part : 0;
}

/* The slot that a link, or a row's head or tail, refers to; or NIL. */
static inline uint32_t slot_at(const struct queueing *q, const _Atomic uint32_t *link)
{
	const uint32_t i = atomic_load_explicit(link, memory_order_relaxed);

	return LIKELY(i < q->config.slots) ? i : NIL;
}

static inline void slot_link(_Atomic uint32_t *link, uint32_t i)
{
	atomic_store_explicit(link, i, memory_order_relaxed);
}

static inline void slot_unlink(struct slot *slot)
{
	slot_link(&slot->next, NIL);
	slot_link(&slot->prev, NIL);
}

static inline void row_empty(struct row *row)
{
	slot_link(&row->head, NIL);
	slot_link(&row->tail, NIL);
	row->length = row->stuck = 0;
	row->standing_since = 0;
}

static inline void slot_free(const struct queueing *q, uint32_t i)
{
	uint64_t word = atomic_load_explicit(&q->slots[i].state, memory_order_relaxed);

	atomic_store_explicit(&q->slots[i].state, slot_word(0, word_stamp(word), FREE),
			      memory_order_release);
	bitmap_put(q->free, i);
}

/* Have the next drain examine slot i. */
static inline void slot_report(const struct queueing *q, uint32_t i)
{
	bitmap_put(q->fresh, i);
	bitmap_put(&q->queue->news, i / 64 / NEWS_PART);
}

static inline void slot_announce(const struct queueing *q, uint16_t part)
{
	if (q->admission->count > 0)
		gate_announce(&q->admission->parts[part].own, 1);
	gate_announce(q->admission->gate, 1);
}

/* Whether slot i is in its row. The drainer's. */
static inline bool slot_listed(const struct queueing *q, uint32_t i)
{
	return slot_at(q, &q->slots[i].prev) != NIL ||
	       slot_at(q, &q->rows[slot_part(q, i)].head) == i;
}

static inline struct waited slot_waited(const struct queueing *q, uint32_t i)
{
	const struct slot *slot = &q->slots[i];

	return (struct waited){
		.inflight = slot->inflight,
		.cost = atomic_load_explicit(&slot->granted, memory_order_relaxed),
		.part = slot_part(q, i),
	};
}

/* Move slot i from WAITING to ABANDONED. False: its state had changed. */
static inline bool slot_abandon(const struct queueing *q, uint32_t i, uint64_t word)
{
	if (!atomic_compare_exchange_strong_explicit(&q->slots[i].state, &word,
						     word_with(word, ABANDONED),
						     memory_order_acq_rel, memory_order_acquire))
		return false;
	slot_report(q, i);
	return true;
}

/*
 * Run the callback of slot i, which this process has just put into the state NOTIFYING with that
 * word. The callback may end the waiter.
 */
static inline void slot_notify(const struct queueing *q, uint32_t i, uint64_t word)
{
	callback_run(&q->callbacks[i], word_stamp(word));
	(void)atomic_compare_exchange_strong_explicit(&q->slots[i].state, &word,
						      word_with(word, GRANTED),
						      memory_order_release, memory_order_relaxed);
}

/* Examine a slot whose waiter has entered or left. Only the drainer calls it. */
void drain_slot(const struct queueing *q, uint32_t i);

/* After combiner_begin(): drain until no further drain is requested. Only the drainer calls it. */
void drain_all(const struct queueing *q, weir_time now);

#endif
