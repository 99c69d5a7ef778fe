/*
 * Waiting for a permit, and handing permits to those who wait.
 *
 *          enter              drain                    drain              poll
 *    FREE --------> WAITING --------------> TELLING --------> GRANTED ----------> FREE
 *                      |  \_____________________________________^
 *                      |        drain, if nobody is to be told
 *                      | leave             drain
 *                      +--------> ABANDONED ---------> FREE
 *
 * Every way out of WAITING is one compare-and-swap, so a grant and a leave
 * cannot both happen: a waiter that loses to a grant has the permit. TELLING
 * lasts while the waiter's callback runs; poll and leave wait for its end, so
 * that what the callback uses may go away after them.
 *
 * word     written by                       order    pairs with
 * -------  -------------------------------  -------  --------------------------------------
 * state    enter: store WAITING             relaxed  nothing: the push orders it
 * state    drain: CAS from WAITING          release  poll, leave: slot.inflight
 * state    drain: store GRANTED             release  poll, leave: what the callback did
 * state    leave: CAS to ABANDONED          acquire  drain's CAS, if that came first
 * state    free_slot: store FREE            relaxed  nothing: the free map orders it
 * inbox    enter: CAS, pushes               release  drain: the slot's plain fields
 * inbox    drain: exchange, takes all       acquire  enter
 * gone     leave: CAS, pushes               release  drain: slot.gone_next
 * gone     drain: exchange, takes all       acquire  leave
 * pending  ask: +1; the drainer: -n         acq_rel  each other: the lists and the drainer's
 *                                                    fields pass from drainer to drainer, and
 *                                                    who drains sees what was done before
 *                                                    each asking
 *
 * inbox and gone are lists to which threads push and from which one takes
 * everything. Nothing is popped singly, so a head cannot come back unnoticed (ABA).
 *
 * Any number of threads may ask for a drain. The one that raises pending from
 * zero does it, and goes on until it has brought pending back to zero; all others
 * leave at once.
 *
 * Why no waiter is forgotten. A waiter (1) pushes itself, (2) announces itself
 * on the gate's word, (3) asks for a drain. Whoever makes room, a release or
 * a raised limit, (a) changes the gate's word and, if it shows waiters,
 * (b) asks for a drain. (2) and (a) modify one word, so one is first.
 *   (a) first: the drain that answers (3) comes after (2), hence after (a), and
 *       finds the room.
 *   (2) first: (a) sees the waiter, so (b) follows. (3) and (b) both modify
 *       pending. The drain that answers the later of the two sees what was
 *       done before the earlier as well: the push and the room.
 */

#include "lib/queue.h"

#include <sched.h>

#include "lib/bitmap.h"

#define NIL UINT32_MAX

/* Looks at a callback that is still running before the processor is left to it. */
#define SPINS 100

enum { FREE, WAITING, TELLING, GRANTED, ABANDONED };

/* A slot's state word carries a stamp of its use, so that a stale waiter is known. */
#define STATE_BITS 3
#define STATE_MASK ((1u << STATE_BITS) - 1)

static uint32_t word_of(uint32_t stamp, uint32_t state)
{
	return stamp << STATE_BITS | state;
}

void queue_init(const struct queueing *q, const struct queue_config *config)
{
	struct queue *queue = q->queue;

	atomic_init(&queue->inbox, NIL);
	atomic_init(&queue->gone, NIL);
	atomic_init(&queue->pending, 0);
	queue->slots = config->slots;
	queue->order = config->order;
	queue->stand = config->stand;
	queue->head = queue->tail = NIL;
	queue->standing_since = 0;
	bitmap_init(q->free, config->slots);
	for (uint32_t i = 0; i < config->slots; i++) {
		atomic_init(&q->slots[i].state, word_of(0, FREE));
		park_init(&q->slots[i].park);
		q->slots[i].next = q->slots[i].prev = NIL;
	}
}

static void free_slot(const struct queueing *q, uint32_t i)
{
	uint32_t word = atomic_load_explicit(&q->slots[i].state, memory_order_relaxed);

	atomic_store_explicit(&q->slots[i].state, word_of(word >> STATE_BITS, FREE),
			      memory_order_relaxed);
	bitmap_put(q->free, i);
}

/* Put slot i before all that head holds. next is the slot's link for this list. */
static void push(_Atomic uint32_t *head, uint32_t i, uint32_t *next)
{
	uint32_t first = atomic_load_explicit(head, memory_order_relaxed);

	do {
		*next = first;
	} while (!atomic_compare_exchange_weak_explicit(head, &first, i, memory_order_release,
							memory_order_relaxed));
}

/* The drainer's list, oldest at the head. */

static bool listed(const struct queue *queue, const struct slot *slots, uint32_t i)
{
	return slots[i].prev != NIL || queue->head == i;
}

static void append(const struct queueing *q, uint32_t i)
{
	struct queue *queue = q->queue;

	q->slots[i].next = NIL;
	q->slots[i].prev = queue->tail;
	if (queue->tail == NIL) {
		queue->head = i;
		queue->standing_since = q->slots[i].since;
	} else {
		q->slots[queue->tail].next = i;
	}
	queue->tail = i;
}

static void take_out(const struct queueing *q, uint32_t i)
{
	struct queue *queue = q->queue;
	uint32_t next = q->slots[i].next, prev = q->slots[i].prev;

	if (prev == NIL)
		queue->head = next;
	else
		q->slots[prev].next = next;
	if (next == NIL)
		queue->tail = prev;
	else
		q->slots[next].prev = prev;
	q->slots[i].next = q->slots[i].prev = NIL;
}

/* Who entered since the last drain, appended in the order of their coming. */
static void take_inbox(const struct queueing *q)
{
	uint32_t i = atomic_exchange_explicit(&q->queue->inbox, NIL, memory_order_acquire);
	uint32_t oldest = NIL;

	while (i != NIL) {
		uint32_t next = q->slots[i].inbox_next;

		q->slots[i].inbox_next = oldest;
		oldest = i;
		i = next;
	}
	for (i = oldest; i != NIL; i = q->slots[i].inbox_next)
		append(q, i);
}

/*
 * Take the newcomers into the list, and those who left out of it. Who left is read
 * first: it entered before it left, so it is in the list by the time it is taken out.
 */
static void collect(const struct queueing *q)
{
	uint32_t i = atomic_exchange_explicit(&q->queue->gone, NIL, memory_order_acquire);

	take_inbox(q);
	while (i != NIL) {
		uint32_t next = q->slots[i].gone_next;

		if (listed(q->queue, q->slots, i))
			take_out(q, i);
		free_slot(q, i);
		i = next;
	}
}

/* The queue has not been empty for so long that its oldest are hardly worth serving. */
static bool stands(const struct queue *queue, weir_time now)
{
	return (int64_t)(now - queue->standing_since) > (int64_t)queue->stand;
}

/* Who is next; or NIL. */
static uint32_t choose(const struct queue *queue, weir_time now)
{
	switch ((enum weir_order)queue->order) {
	case WEIR_LIFO:
		return queue->tail;
	case WEIR_ADAPTIVE:
		return stands(queue, now) ? queue->tail : queue->head;
	case WEIR_FIFO:
		break;
	}
	return queue->head;
}

/* Give the permit that the drainer holds to slot i. False: the waiter has left. */
static bool grant(const struct queueing *q, uint32_t i, uint32_t inflight)
{
	struct slot *slot = &q->slots[i];
	struct listener listener = q->listeners[i];
	uint32_t word = atomic_load_explicit(&slot->state, memory_order_relaxed);
	uint32_t stamp = word >> STATE_BITS;
	uint32_t to = word_of(stamp, listener.granted != NULL ? TELLING : GRANTED);

	slot->inflight = inflight;
	word = word_of(stamp, WAITING);
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word, to, memory_order_release,
						     memory_order_relaxed))
		return false;
	gate_retract(q->gate);
	if (listener.granted != NULL) {
		listener.granted(listener.arg);
		atomic_store_explicit(&slot->state, word_of(stamp, GRANTED), memory_order_release);
	}
	park_wake(&slot->park);
	return true;
}

/* A slot whose waiter left stays taken until it comes by in gone. */
static void drain_once(const struct queueing *q, weir_time now)
{
	uint32_t i, inflight;
	uint64_t before;

	collect(q);
	while ((i = choose(q->queue, now)) != NIL) {
		if (!gate_reserve(q->gate, true, &inflight))
			return;
		take_out(q, i);
		if (!grant(q, i, inflight))
			(void)gate_give_back(q->gate, &before);
	}
}

void queue_drain(const struct queueing *q, weir_time now)
{
	uint32_t asked = 1, before;

	if (atomic_fetch_add_explicit(&q->queue->pending, 1, memory_order_acq_rel) != 0)
		return;
	for (;;) {
		drain_once(q, now);
		before = atomic_fetch_sub_explicit(&q->queue->pending, asked, memory_order_acq_rel);
		if (before == asked)
			return;
		asked = before - asked;
	}
}

bool queue_enter(const struct queueing *q, weir_time now, struct listener listener,
		 struct weir_wait *wait)
{
	uint32_t hint = (uint32_t)sched_getcpu(), stamp;
	uint32_t i = bitmap_take(q->free, q->queue->slots, hint);
	struct slot *slot;

	if (i == NO_PLACE)
		return false;
	slot = &q->slots[i];
	stamp = (atomic_load_explicit(&slot->state, memory_order_relaxed) >> STATE_BITS) + 1;
	stamp &= UINT32_MAX >> STATE_BITS;
	stamp += stamp == 0; /* 0 is no waiter */
	*wait = (struct weir_wait){.slot = i, .stamp = stamp};

	slot->since = now;
	q->listeners[i] = listener;
	atomic_store_explicit(&slot->state, word_of(stamp, WAITING), memory_order_relaxed);
	push(&q->queue->inbox, i, &slot->inbox_next);
	gate_announce(q->gate);
	queue_drain(q, now);
	return true;
}

/* The waiter's state, once its callback, if it is running, has returned. */
static uint32_t settled(const struct queueing *q, const struct weir_wait *wait)
{
	struct slot *slot;
	uint32_t word;

	if (wait->stamp == 0 || wait->slot >= q->queue->slots)
		return FREE;
	slot = &q->slots[wait->slot];
	for (unsigned spins = 0;; spins++) {
		word = atomic_load_explicit(&slot->state, memory_order_acquire);
		if (word >> STATE_BITS != wait->stamp)
			return FREE;
		if ((word & STATE_MASK) != TELLING)
			return word & STATE_MASK;
		if (spins >= SPINS)
			sched_yield();
	}
}

static enum queue_state collect_grant(const struct queueing *q, uint32_t i, uint32_t *inflight)
{
	*inflight = q->slots[i].inflight;
	free_slot(q, i);
	return QUEUE_GRANTED;
}

enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    uint32_t *inflight)
{
	switch (settled(q, wait)) {
	case WAITING:
		return QUEUE_WAITING;
	case GRANTED:
		return collect_grant(q, wait->slot, inflight);
	default:
		return QUEUE_NONE;
	}
}

enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     uint32_t *inflight)
{
	struct slot *slot;
	uint32_t word = word_of(wait->stamp, WAITING);

	if (settled(q, wait) == FREE || settled(q, wait) == ABANDONED)
		return QUEUE_NONE;
	slot = &q->slots[wait->slot];
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word,
						     word_of(wait->stamp, ABANDONED),
						     memory_order_acquire, memory_order_acquire))
		return queue_poll(q, wait, inflight);

	gate_retract(q->gate);
	push(&q->queue->gone, wait->slot, &slot->gone_next);
	queue_drain(q, now); /* so that the slot is free again */
	return QUEUE_GONE;
}

struct park *queue_park(const struct queueing *q, const struct weir_wait *wait)
{
	return &q->slots[wait->slot].park;
}
