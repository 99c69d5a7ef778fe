/*
 * The slots of a queue: their states, and who may change them. lib/wait/queue.c is what waiters do,
 * lib/wait/grant.c hands permits to those who wait, lib/wait/recovery.c is for what dead processes leave.
 *
 *          enter          enter              drain                   drain             poll
 *    FREE -------> TAKEN -------> WAITING ------------> NOTIFYING --------------> GRANTED ----> FREE
 *                                 |  |  \____________________________________^   ^
 *                                 |  |     drain, if nobody is to be told        |
 *                                 |  |     drain of another process              | poll
 *                                 |  +-----------------------------> PROMISED ---+
 *                                 | leave             drain             \ tell
 *                                 +--------> ABANDONED ------> FREE      +----> NOTIFYING
 *
 * Every way out of WAITING is one compare-and-swap, so a grant and a leave
 * cannot both happen: a waiter that loses to a grant has the permit. NOTIFYING
 * lasts while the waiter's callback runs; poll and leave wait for its end, so
 * that what the callback uses may go away after them. From the callback itself they take the
 * permit, and free the slot (lib/base/notify.h). Before a callback runs, everything is as its waiter is
 * to find it. A callback belongs to one process. If another process hands the permit over, the
 * waiter is PROMISED until its own process notifies it, or it looks. A slot may also be taken for a
 * permit that is there already (place): then it is NOTIFYING at once, or GRANTED. The states are for
 * all processes. A word of its own process (lib/wait/callback.h) decides whether a callback runs: in a
 * shared limiter poll and leave look at that word alone, and go on where the state says NOTIFYING but
 * no callback runs.
 *
 * word     written by                       order    pairs with
 * -------  -------------------------------  -------  --------------------------------------
 * state    claim: CAS from FREE             acquire  slot_free
 * state    enter: store WAITING             release  drain, at its look: the slot's plain fields
 * state    drain: CAS from WAITING          release  poll, leave: slot.inflight
 * state    drain: CAS to GRANTED            release  poll, leave: slot.inflight
 * state    told: CAS from NOTIFYING           release  poll, leave: what the callback did
 * state    tell: CAS from PROMISED          acquire  poll, leave, if one of them came first
 * state    poll: CAS from PROMISED, NOTIFYING acquire  drain's CAS
 * state    leave: CAS to ABANDONED          acq_rel  drain's CAS, if that came first; drain, at its
 *                                                    look
 * state    slot_free: store FREE            release  claim
 * state    place: store NOTIFYING, GRANTED    release  poll, leave: slot.inflight
 * granted  drain, place: store              relaxed  state carries it; and a number
 * part     claim: store                     relaxed  as granted
 * watches  watch: store                     relaxed  drain: pending orders it
 * fresh[i] report: or                       release  drain: state
 * fresh[i] drain: exchange 0                acquire  report
 * news     report: or, after fresh          release  drain: fresh
 * news     drain: exchange 0                acquire  report
 * free     lib/base/bitmap.h
 * pending  the errand's word (lib/base/combiner.h): the lists and the drainer's fields pass from
 *          drainer to drainer, and who drains sees what was done before each asking
 * open     shadow_set: store                relaxed  nothing: who stores it asks for a drain
 * next,    the drainer: store               relaxed  pending
 * prev,
 * head,
 * tail
 *
 * A slot's state is all that counts. The bits of free say where a free slot may be found, those of
 * fresh where there may be something for the drainer to see; whoever comes looks at the state. So
 * a bit too many does no harm, and one that was lost with a process can be set again.
 *
 * Why no waiter is forgotten. A waiter (1) announces itself on the gate's word, (2) is WAITING, and
 * reports that, (3) asks for a drain; so it is never taken off the gate before it is on it. Whoever
 * makes room, a release or a raised limit, (a) changes the gate's word and, if it shows
 * waiters, (b) asks for a drain. (1) and (a) modify one word, so one is first.
 *   (a) first: the drain that answers (3) comes after (1), hence after (a), and
 *       finds the room.
 *   (1) first: (a) sees the waiter, so (b) follows. (3) and (b) both modify
 *       pending. The drain that answers the later of the two sees what was
 *       done before the earlier as well: the report and the room.
 * A waiter of a partition announces itself on the partition's word too, and whoever
 * makes room there sees it there. While the partition is at its cap, its waiters have no use for
 * the gate's room, and must not keep others from it: the drainer then takes
 * their announcement off the gate (the row is stuck), and puts it back, before it looks at
 * the gate, once the cap allows. All else that may give a waiter its turn, room
 * that is no longer kept, a guarantee that grows, is followed by an asking, whoever may wait.
 *
 * Why a death in here loses nothing. Lists are the drainer's. If it dies, its heir
 * (queue_recover()) makes them anew from the states of all slots, and wakes once more whom it may
 * have granted and not woken. Who dies as a waiter leaves a slot with the number of its process:
 * whoever finds that out acts for him (queue_reclaim()). Announcements may then be too many or too
 * few; but what they should be is known whenever no slot is TAKEN, as announcing is done in that
 * state, and retracting in a drain. So a drainer who sees that puts them right (queue_recount()).
 * Until then, at worst, newcomers are refused as if somebody waited.
 *
 * Why nothing leads out of the block. A process that shares the limiter may store anything in it at
 * any time. So a number that leads to a place is read by one function, once, and is turned into a
 * place that exists: a partition by slot_part(), a link by slot_at(), a bit of free or fresh
 * through bitmap_mask(), the number of a process by lease_ring(). A link that leads nowhere ends
 * its list. Lists may have become rings, so no walk and no drain takes more steps than there are
 * slots; in lists that are whole, it never needs more. All that can be wrong then is which waiter
 * is served, and when.
 */
#ifndef WEIR_LIB_SLOTS_H
#define WEIR_LIB_SLOTS_H

#include "lib/wait/queue.h"

#include "lib/base/bitmap.h"
#include "lib/base/notify.h"

#define NIL UINT32_MAX

enum { FREE, TAKEN, WAITING, PROMISED, NOTIFYING, GRANTED, ABANDONED };

/*
 * A slot's state word carries a stamp of its use, so that a stale waiter is known, and whose
 * process its waiter is of.
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

/* The same use of the slot, in another state. */
static inline uint64_t word_with(uint64_t word, uint32_t state)
{
	return (word & ~(uint64_t)STATE_MASK) | state;
}

static inline uint64_t slot_read(const struct slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_acquire);
}

/* Its partition's row; row 0 if it names one that does not exist. */
static inline uint16_t slot_part(const struct queueing *q, uint32_t i)
{
	const uint16_t part = atomic_load_explicit(&q->slots[i].part, memory_order_relaxed);

	return LIKELY(part < q->config.rows) ? part : 0;
}

/* Where a link or a head or tail of a row leads: a slot, or NIL. */
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

/* Have the next drain look at slot i. */
static inline void slot_report(const struct queueing *q, uint32_t i)
{
	bitmap_put(q->fresh, i);
	bitmap_put(&q->queue->news, i / 64 / NEWS_PART);
}

static inline void slot_announce(const struct queueing *q, uint16_t part)
{
	if (q->admission.count > 0)
		gate_announce(&q->admission.parts[part].own, 1);
	gate_announce(q->admission.gate, 1);
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

/* Out of WAITING, and before the drainer. False: it has changed before. */
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
 * Run the callback of slot i, which this process has just put into the state NOTIFYING by that word.
 * It may end the waiter.
 */
static inline void slot_notify(const struct queueing *q, uint32_t i, uint64_t word)
{
	callback_run(&q->callbacks[i], word_stamp(word));
	(void)atomic_compare_exchange_strong_explicit(&q->slots[i].state, &word,
						      word_with(word, GRANTED),
						      memory_order_release, memory_order_relaxed);
}

/* A slot has news: somebody came, or left. The drainer's. */
void drain_slot(const struct queueing *q, uint32_t i);

/* Drain, as combiner_begin() has asked for it, until nobody has asked again. The drainer's. */
void drain_all(const struct queueing *q, weir_time now);

#endif
