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
 * state    place: store GRANTED             release  poll, leave: slot.inflight
 * watches  watch: store                     relaxed  drain: pending orders it
 * inbox    enter: CAS, pushes               release  drain: the slot's plain fields
 * inbox    drain: exchange, takes all       acquire  enter
 * gone     leave: CAS, pushes               release  drain: slot.gone_next
 * gone     drain: exchange, takes all       acquire  leave; enter looks at it, relaxed: a hint
 * pending  the errand's word (lib/errand.h): the lists and the drainer's fields pass from
 *          drainer to drainer, and who drains sees what was done before each asking
 * open     shadow_set: store                relaxed  nothing: who stores it asks for a drain
 *
 * inbox and gone are lists to which threads push and from which one takes
 * everything. Nothing is popped singly, so a head cannot come back unnoticed (ABA).
 *
 * Why no waiter is forgotten. A waiter (1) announces itself on the gate's word, (2) pushes
 * itself, (3) asks for a drain; so it is never taken off the gate before it is on it. Whoever
 * makes room, a release or a raised limit, (a) changes the gate's word and, if it shows
 * waiters, (b) asks for a drain. (1) and (a) modify one word, so one is first.
 *   (a) first: the drain that answers (3) comes after (1), hence after (a), and
 *       finds the room.
 *   (1) first: (a) sees the waiter, so (b) follows. (3) and (b) both modify
 *       pending. The drain that answers the later of the two sees what was
 *       done before the earlier as well: the push and the room.
 * A waiter of a partition announces itself on the partition's word too, and whoever
 * makes room there sees it there. While the partition is at its cap, its waiters have no use for
 * the gate's room, and must not keep others from it: the drainer then takes
 * their announcement off the gate (the row is stuck), and puts it back, before it looks at
 * the gate, once the cap allows. All else that may give a waiter its turn, room
 * that is no longer kept, a guarantee that grows, is followed by an asking, whoever may wait.
 */

#include "lib/queue.h"

#include <sched.h>

#include "lib/bitmap.h"
#include "lib/errand.h"

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
	atomic_init(&queue->open, config->open);
	queue->slots = config->slots;
	queue->rows = config->rows;
	queue->order = config->order;
	queue->stand = config->stand;
	for (uint32_t i = 0; i < config->rows; i++)
		q->rows[i] = (struct row){.head = NIL, .tail = NIL};
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

static void announce(const struct queueing *q, uint16_t part)
{
	if (q->admission.count > 0)
		gate_announce(&q->admission.parts[part].own, 1);
	gate_announce(q->admission.gate, 1);
}

/* A waiter of this row is no more. The drainer's. */
static void retract(const struct queueing *q, uint16_t part)
{
	if (q->admission.count > 0)
		gate_retract(&q->admission.parts[part].own, 1);
	if (!q->rows[part].stuck)
		gate_retract(q->admission.gate, 1);
}

/* The drainer's lists, oldest at the head. */

static bool listed(const struct queueing *q, uint32_t i)
{
	return q->slots[i].prev != NIL || q->rows[q->slots[i].part].head == i;
}

static void append(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[slot->part];

	slot->next = NIL;
	slot->prev = row->tail;
	if (row->tail == NIL) {
		row->head = i;
		row->standing_since = slot->since;
	} else {
		q->slots[row->tail].next = i;
	}
	row->tail = i;
	row->length++;
	if (row->stuck)
		gate_retract(q->admission.gate, 1);
}

static void take_out(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[slot->part];

	if (slot->prev == NIL)
		row->head = slot->next;
	else
		q->slots[slot->prev].next = slot->next;
	if (slot->next == NIL)
		row->tail = slot->prev;
	else
		q->slots[slot->next].prev = slot->prev;
	slot->next = slot->prev = NIL;
	row->length--;
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

		if (listed(q, i)) {
			take_out(q, i);
			retract(q, q->slots[i].part);
		}
		free_slot(q, i);
		i = next;
	}
}

/* The row has not been empty for so long that its oldest are hardly worth serving. */
static bool stands(const struct queueing *q, const struct row *row, weir_time now)
{
	return (int64_t)(now - row->standing_since) > (int64_t)q->queue->stand;
}

/* Who is next in the row; or NIL. */
static uint32_t choose(const struct queueing *q, const struct row *row, weir_time now)
{
	switch ((enum weir_order)q->queue->order) {
	case WEIR_LIFO:
		return row->tail;
	case WEIR_ADAPTIVE:
		return stands(q, row, now) ? row->tail : row->head;
	case WEIR_FIFO:
		break;
	}
	return row->head;
}

/* Give slot i what the drainer holds, or let it through. False: the waiter has left. */
static bool grant(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	struct slot *slot = &q->slots[i];
	struct listener listener = q->listeners[i];
	uint32_t word = atomic_load_explicit(&slot->state, memory_order_relaxed);
	uint32_t stamp = word >> STATE_BITS;
	uint32_t to = word_of(stamp, listener.granted != NULL ? TELLING : GRANTED);

	slot->inflight = permit->inflight;
	slot->granted = permit->cost;
	word = word_of(stamp, WAITING);
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word, to, memory_order_release,
						     memory_order_relaxed))
		return false;
	if (listener.granted != NULL) {
		listener.granted(listener.arg);
		atomic_store_explicit(&slot->state, word_of(stamp, GRANTED), memory_order_release);
	}
	park_wake(&slot->park);
	return true;
}

/* Slot i waits no more, whether its waiter is still there or has left, which gone will tell. */
static void hand_over(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	const uint16_t part = q->slots[i].part;
	bool wake;

	take_out(q, i);
	retract(q, part);
	if (!grant(q, i, permit) && permit->cost > 0)
		(void)admission_give_back(&q->admission, part, permit->cost, &wake);
}

/* Try to serve slot i. False: there is no room for it. */
static bool serve(const struct queueing *q, uint32_t i)
{
	const struct demand demand = {
		.part = q->slots[i].part, .cost = q->slots[i].cost, .overtake = true};
	struct permit permit;

	if (admission_reserve(&q->admission, &demand, &permit) != ADMITTED)
		return false;
	hand_over(q, i, &permit);
	return true;
}

/* Whether the partition's own cap has room for the next in its row. */
static bool below_cap(const struct queueing *q, uint32_t r, weir_time now)
{
	uint64_t own = gate_read(&q->admission.parts[r].own);
	uint32_t cost = q->slots[choose(q, &q->rows[r], now)].cost;

	cost = cost < gate_limit(own) ? cost : gate_limit(own);
	return gate_inflight(own) + cost <= gate_limit(own);
}

/* Announce at the gate the rows that can use its room, and no others. */
static void sort_out(const struct queueing *q, weir_time now)
{
	for (uint32_t r = 0; r < q->queue->rows; r++) {
		struct row *row = &q->rows[r];
		bool stuck = row->length > 0 && !below_cap(q, r, now);

		row->tried = false;
		if (stuck == row->stuck)
			continue;
		row->stuck = stuck;
		if (stuck)
			gate_retract(q->admission.gate, row->length);
		else
			gate_announce(q->admission.gate, row->length);
	}
}

/* Permits that partition r has above its guarantee. */
static int64_t borrowed(const struct queueing *q, uint32_t r)
{
	const struct part *part = &q->admission.parts[r];

	return (int64_t)gate_inflight(gate_read(&part->own)) -
	       atomic_load_explicit(&part->guarantee, memory_order_relaxed);
}

static bool entitled(const struct queueing *q, uint32_t i)
{
	const struct demand demand = {.part = q->slots[i].part, .cost = q->slots[i].cost};

	return admission_entitled(&q->admission, &demand);
}

/*
 * Of the rows that have not been tried, whose turn it is: of those within their guarantee
 * who has waited longest, else who has borrowed least. NIL: nobody's.
 */
static uint32_t next_row(const struct queueing *q, bool within_guarantee, weir_time now)
{
	uint32_t best = NIL;

	for (uint32_t r = 0; r < q->queue->rows; r++) {
		const struct row *row = &q->rows[r];
		uint32_t i = choose(q, row, now);

		if (i == NIL || row->stuck || row->tried || entitled(q, i) != within_guarantee)
			continue;
		if (best == NIL)
			best = r;
		else if (within_guarantee)
			best = (int64_t)(q->slots[i].since -
					 q->slots[choose(q, &q->rows[best], now)].since) < 0
				       ? r
				       : best;
		else
			best = borrowed(q, r) < borrowed(q, best) ? r : best;
	}
	return best;
}

/*
 * Serve whose turn it is. Room that a partition is owed is left alone until there is
 * enough of it for who is next there; the others' goes to one after the other.
 */
static bool serve_next(const struct queueing *q, weir_time now)
{
	bool owed = false;
	uint32_t r;

	sort_out(q, now);
	while ((r = next_row(q, true, now)) != NIL) {
		if (serve(q, choose(q, &q->rows[r], now)))
			return true;
		q->rows[r].tried = owed = true;
	}
	if (owed)
		return false;
	r = next_row(q, false, now);
	return r != NIL && serve(q, choose(q, &q->rows[r], now));
}

/* The first thread that sleeps in a row; or NIL. */
static uint32_t sleeper_in(const struct queueing *q, const struct row *row)
{
	uint32_t i = row->head;

	while (i != NIL && !q->listeners[i].sleeps)
		i = q->slots[i].next;
	return i;
}

/*
 * What is kept for a partition may be all that a waiter lacks, and nobody may come by when that
 * lapses. So of the threads that wait, if there are any, one has the watch: it sleeps for so
 * long only, and then drains for everybody. It says so in its slot, and the others sleep on.
 *
 * Why there is always one. Who no longer watches says that first, and then asks for a drain.
 * Whichever drain answers that sees it, and sees what is kept as the drain before saw it, or
 * later; so if that one relied on the watch, this one wakes the thread anew.
 */
static void set_watch(const struct queueing *q, weir_time now)
{
	if (next_row(q, false, now) == NIL || !admission_keeps(&q->admission))
		return;
	for (uint32_t r = 0; r < q->queue->rows; r++) {
		uint32_t i = sleeper_in(q, &q->rows[r]);

		if (i == NIL)
			continue;
		if (atomic_load_explicit(&q->slots[i].watches, memory_order_relaxed) == 0)
			park_wake(&q->slots[i].park);
		return;
	}
}

static void drain_parts(const struct queueing *q, weir_time now)
{
	(void)admission_lapse(&q->admission, now);
	while (serve_next(q, now))
		;
	set_watch(q, now);
}

/* Nobody waits in shadow mode: who gets no permit goes without. */
static void let_through(const struct queueing *q, weir_time now)
{
	const struct permit none = {.cost = 0};

	for (uint32_t r = 0; r < q->queue->rows; r++) {
		uint32_t i;

		while ((i = choose(q, &q->rows[r], now)) != NIL) {
			if (!serve(q, i))
				hand_over(q, i, &none);
		}
	}
}

static void drain_once(const struct queueing *q, weir_time now)
{
	uint32_t i;

	collect(q);
	if (UNLIKELY(atomic_load_explicit(&q->queue->open, memory_order_relaxed) != 0))
		let_through(q, now);
	else if (q->admission.count > 0)
		drain_parts(q, now);
	else
		while ((i = choose(q, q->rows, now)) != NIL && serve(q, i))
			;
}

void queue_drain(const struct queueing *q, weir_time now)
{
	uint32_t asked;

	if (!errand_begin(&q->queue->pending, &asked))
		return;
	do {
		drain_once(q, now);
	} while (!errand_done(&q->queue->pending, &asked));
}

/*
 * A free slot's number, or NO_PLACE. Those that waiters have left come free in a drain. If none is
 * free but some were left, who drains has most likely lost his processor in the middle of it,
 * and all would find the queue full until he has it back: so he is given the chance, once. In
 * a queue that is full of waiters nobody gives way.
 */
static uint32_t find_place(const struct queueing *q)
{
	const uint32_t hint = (uint32_t)sched_getcpu();
	uint32_t i = bitmap_take(q->free, q->queue->slots, hint);

	if (LIKELY(i != NO_PLACE) ||
	    atomic_load_explicit(&q->queue->gone, memory_order_relaxed) == NIL)
		return i;
	sched_yield();
	return bitmap_take(q->free, q->queue->slots, hint);
}

/* A slot of our own, with a stamp for its new use; or NO_PLACE. Its state stays FREE. */
static uint32_t take_slot(const struct queueing *q, const struct demand *demand,
			  struct listener listener, struct weir_wait *wait)
{
	uint32_t i = find_place(q), stamp;
	struct slot *slot;

	if (i == NO_PLACE)
		return NO_PLACE;
	slot = &q->slots[i];
	stamp = (atomic_load_explicit(&slot->state, memory_order_relaxed) >> STATE_BITS) + 1;
	stamp &= UINT32_MAX >> STATE_BITS;
	stamp += stamp == 0; /* 0 is no waiter */
	*wait = (struct weir_wait){.slot = i, .stamp = stamp};

	slot->part = demand->part;
	slot->cost = demand->cost;
	atomic_store_explicit(&slot->watches, 0, memory_order_relaxed);
	q->listeners[i] = listener;
	return i;
}

bool queue_enter(const struct queueing *q, weir_time now, const struct demand *demand,
		 struct listener listener, struct weir_wait *wait)
{
	uint32_t i = take_slot(q, demand, listener, wait);
	struct slot *slot;

	if (i == NO_PLACE)
		return false;
	slot = &q->slots[i];
	slot->since = now;
	atomic_store_explicit(&slot->state, word_of(wait->stamp, WAITING), memory_order_relaxed);
	announce(q, demand->part);
	push(&q->queue->inbox, i, &slot->inbox_next);
	queue_drain(q, now);
	return true;
}

bool queue_place(const struct queueing *q, const struct demand *demand, const struct permit *permit,
		 struct listener listener, struct weir_wait *wait)
{
	uint32_t i = take_slot(q, demand, listener, wait);

	if (i == NO_PLACE)
		return false;
	q->slots[i].inflight = permit->inflight;
	q->slots[i].granted = permit->cost;
	if (listener.granted != NULL)
		listener.granted(listener.arg);
	atomic_store_explicit(&q->slots[i].state, word_of(wait->stamp, GRANTED),
			      memory_order_release);
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

static struct waited read_slot(const struct slot *slot)
{
	return (struct waited){
		.inflight = slot->inflight, .cost = slot->granted, .part = slot->part};
}

enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    struct waited *got)
{
	switch (settled(q, wait)) {
	case WAITING:
		*got = (struct waited){.part = q->slots[wait->slot].part};
		return QUEUE_WAITING;
	case GRANTED:
		*got = read_slot(&q->slots[wait->slot]);
		free_slot(q, wait->slot);
		return QUEUE_GRANTED;
	default:
		return QUEUE_NONE;
	}
}

enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     struct waited *got)
{
	struct slot *slot;
	uint32_t word = word_of(wait->stamp, WAITING);

	if (settled(q, wait) == FREE || settled(q, wait) == ABANDONED)
		return QUEUE_NONE;
	slot = &q->slots[wait->slot];
	*got = (struct waited){.part = slot->part};
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word,
						     word_of(wait->stamp, ABANDONED),
						     memory_order_acquire, memory_order_acquire))
		return queue_poll(q, wait, got);

	push(&q->queue->gone, wait->slot, &slot->gone_next);
	queue_drain(q,
		    now); /* so that the slot is free again, and others know that one waits less */
	return QUEUE_GONE;
}

void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches)
{
	atomic_store_explicit(&q->slots[wait->slot].watches, watches, memory_order_relaxed);
}

struct park *queue_park(const struct queueing *q, const struct weir_wait *wait)
{
	return &q->slots[wait->slot].park;
}
