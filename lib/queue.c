/*
 * Waiting for a permit, and handing permits to those who wait.
 *
 *          enter          enter              drain                   drain             poll
 *    FREE -------> TAKEN -------> WAITING ------------> TELLING --------------> GRANTED ----> FREE
 *                                 |  |  \____________________________________^   ^
 *                                 |  |     drain, if nobody is to be told        |
 *                                 |  |     drain of another process              | poll
 *                                 |  +-----------------------------> PROMISED ---+
 *                                 | leave             drain             \ tell
 *                                 +--------> ABANDONED ------> FREE      +----> TELLING
 *
 * Every way out of WAITING is one compare-and-swap, so a grant and a leave
 * cannot both happen: a waiter that loses to a grant has the permit. TELLING
 * lasts while the waiter's callback runs; poll and leave wait for its end, so
 * that what the callback uses may go away after them. A callback is of one process. If
 * another hands the permit over, the waiter is PROMISED until its process tells it, or it looks.
 *
 * word     written by                       order    pairs with
 * -------  -------------------------------  -------  --------------------------------------
 * state    claim: CAS from FREE             acquire  free_slot
 * state    enter: store WAITING             release  drain, at its look: the slot's plain fields
 * state    drain: CAS from WAITING          release  poll, leave: slot.inflight
 * state    drain, tell: store GRANTED       release  poll, leave: what the callback did
 * state    tell: CAS from PROMISED          acquire  poll, leave, if one of them came first
 * state    poll: CAS from PROMISED          acquire  drain's CAS
 * state    leave: CAS to ABANDONED          acq_rel  drain's CAS, if that came first; drain, at its
 *                                                    look
 * state    free_slot: store FREE            release  claim
 * state    place: store GRANTED             release  poll, leave: slot.inflight
 * granted  drain, place: store              relaxed  state carries it; and a number
 * part     claim: store                     relaxed  as granted
 * watches  watch: store                     relaxed  drain: pending orders it
 * fresh[i] report: or                       release  drain: state
 * fresh[i] drain: exchange 0                acquire  report
 * news     report: or, after fresh          release  drain: fresh
 * news     drain: exchange 0                acquire  report
 * free     lib/bitmap.h
 * pending  the errand's word (lib/errand.h): the lists and the drainer's fields pass from
 *          drainer to drainer, and who drains sees what was done before each asking
 * open     shadow_set: store                relaxed  nothing: who stores it asks for a drain
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
 * (queue_inherit()) makes them anew from the states of all slots, and wakes once more whom it may
 * have granted and not woken. Who dies as a waiter leaves a slot with the number of its process:
 * whoever finds that out acts for him (queue_bury()). Announcements may then be too many or too
 * few; but what they should be is known whenever no slot is TAKEN, as announcing is done in that
 * state, and retracting in a drain. So a drainer who sees that puts them right (queue_recount()).
 * Until then, at worst, newcomers are refused as if somebody waited.
 */

#include "lib/queue.h"

#include <sched.h>

#include "lib/bitmap.h"
#include "lib/errand.h"
#include "lib/lease.h"

#define NIL UINT32_MAX

/* Looks at a callback that is still running before the processor is left to it. */
#define SPINS 100

/* Tries of a recount. */
#define RECOUNTS 100

enum { FREE, TAKEN, WAITING, PROMISED, TELLING, GRANTED, ABANDONED };

/*
 * A slot's state word carries a stamp of its use, so that a stale waiter is known, and whose
 * process its waiter is of.
 */
#define STATE_BITS  3
#define STATE_MASK  ((1u << STATE_BITS) - 1)
#define OWNER_SHIFT 32

static uint64_t word_of(uint32_t owner, uint32_t stamp, uint32_t state)
{
	return (uint64_t)owner << OWNER_SHIFT | stamp << STATE_BITS | state;
}

static uint32_t owner_in(uint64_t word)
{
	return (uint32_t)(word >> OWNER_SHIFT);
}

static uint32_t stamp_in(uint64_t word)
{
	return (uint32_t)word >> STATE_BITS;
}

static uint32_t state_in(uint64_t word)
{
	return (uint32_t)word & STATE_MASK;
}

/* The same use of the slot, in another state. */
static uint64_t with_state(uint64_t word, uint32_t state)
{
	return (word & ~(uint64_t)STATE_MASK) | state;
}

static uint64_t read_state(const struct slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_acquire);
}

static uint16_t part_of(const struct slot *slot)
{
	return atomic_load_explicit(&slot->part, memory_order_relaxed);
}

void queue_init(const struct queueing *q)
{
	struct queue *queue = q->queue;

	atomic_init(&queue->news, 0);
	atomic_init(&queue->pending, 0);
	atomic_init(&queue->open, q->config.open);
	for (uint32_t i = 0; i < q->config.rows; i++)
		q->rows[i] = (struct row){.head = NIL, .tail = NIL};
	bitmap_init(q->free, q->config.slots);
	for (uint32_t i = 0; i < bitmap_words(q->config.slots); i++)
		atomic_init(&q->fresh[i], 0);
	for (uint32_t i = 0; i < q->config.slots; i++) {
		atomic_init(&q->slots[i].part, 0);
		atomic_init(&q->slots[i].state, word_of(0, 0, FREE));
		park_init(&q->slots[i].park);
		q->slots[i].next = q->slots[i].prev = NIL;
	}
}

static bool is_place(const struct queueing *q, uint32_t i)
{
	return i == NIL || i < q->config.slots;
}

bool queue_is_sound(const struct queueing *q)
{
	bool sound = true;

	for (uint32_t i = 0; sound && i < q->config.rows; i++)
		sound = is_place(q, q->rows[i].head) && is_place(q, q->rows[i].tail);
	for (uint32_t i = 0; sound && i < q->config.slots; i++)
		sound = is_place(q, q->slots[i].next) && is_place(q, q->slots[i].prev) &&
			part_of(&q->slots[i]) < q->config.rows;
	return sound;
}

static void free_slot(const struct queueing *q, uint32_t i)
{
	uint64_t word = atomic_load_explicit(&q->slots[i].state, memory_order_relaxed);

	atomic_store_explicit(&q->slots[i].state, word_of(0, stamp_in(word), FREE),
			      memory_order_release);
	bitmap_put(q->free, i);
}

/* Have the next drain look at slot i. */
static void report(const struct queueing *q, uint32_t i)
{
	bitmap_put(q->fresh, i);
	bitmap_put(&q->queue->news, i / 64 / NEWS_PART);
}

static void announce(const struct queueing *q, uint16_t part)
{
	if (q->admission.count > 0)
		gate_announce(&q->admission.parts[part].own, 1);
	gate_announce(q->admission.gate, 1);
}

/* A waiter is no more. Those listed in a row that is stuck are off the gate. The drainer's. */
static void retract(const struct queueing *q, uint16_t part, bool on_gate)
{
	if (q->admission.count > 0)
		gate_retract(&q->admission.parts[part].own, 1);
	if (on_gate)
		gate_retract(q->admission.gate, 1);
}

/* The drainer's lists, oldest at the head. */

static bool listed(const struct queueing *q, uint32_t i)
{
	return q->slots[i].prev != NIL || q->rows[part_of(&q->slots[i])].head == i;
}

static uint32_t *link_to(const struct queueing *q, struct row *row, uint32_t prev)
{
	return prev == NIL ? &row->head : &q->slots[prev].next;
}

/* Behind all who came before it: mostly those are all. */
static void append(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[part_of(slot)];
	uint32_t prev = row->tail;

	if (prev == NIL)
		row->standing_since = slot->since;
	while (prev != NIL && (int64_t)(slot->since - q->slots[prev].since) < 0)
		prev = q->slots[prev].prev;
	slot->prev = prev;
	slot->next = *link_to(q, row, prev);
	if (slot->next == NIL)
		row->tail = i;
	else
		q->slots[slot->next].prev = i;
	*link_to(q, row, prev) = i;
	row->length++;
	if (row->stuck != 0)
		gate_retract(q->admission.gate, 1);
}

static void take_out(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[part_of(slot)];

	*link_to(q, row, slot->prev) = slot->next;
	if (slot->next == NIL)
		row->tail = slot->prev;
	else
		q->slots[slot->next].prev = slot->prev;
	slot->next = slot->prev = NIL;
	row->length--;
}

/* A slot has news: somebody came, or left. */
static void look_at(const struct queueing *q, uint32_t i)
{
	const uint32_t state = state_in(read_state(&q->slots[i]));
	const uint16_t part = part_of(&q->slots[i]);
	const bool is_listed = listed(q, i);

	if (state == WAITING && !is_listed) {
		append(q, i);
	} else if (state == ABANDONED) {
		if (is_listed)
			take_out(q, i);
		retract(q, part, !is_listed || q->rows[part].stuck == 0);
		free_slot(q, i);
	}
}

static void look_at_word(const struct queueing *q, uint32_t k)
{
	uint64_t left = 0;

	if (atomic_load_explicit(&q->fresh[k], memory_order_relaxed) != 0)
		left = atomic_exchange_explicit(&q->fresh[k], 0, memory_order_acquire);
	for (; left != 0; left &= left - 1)
		look_at(q, k * 64 + (uint32_t)__builtin_ctzll(left));
}

/* Take the newcomers into the lists, and those who left out of them. */
static void collect(const struct queueing *q)
{
	const uint32_t words = bitmap_words(q->config.slots);
	uint64_t left = 0;

	if (atomic_load_explicit(&q->queue->news, memory_order_relaxed) != 0)
		left = atomic_exchange_explicit(&q->queue->news, 0, memory_order_acquire);
	for (; left != 0; left &= left - 1) {
		const uint32_t first = (uint32_t)__builtin_ctzll(left) * NEWS_PART;

		for (uint32_t k = first; k < first + NEWS_PART && k < words; k++)
			look_at_word(q, k);
	}
}

/* The row has not been empty for so long that its oldest are hardly worth serving. */
static bool stands(const struct queueing *q, const struct row *row, weir_time now)
{
	return (int64_t)(now - row->standing_since) > (int64_t)q->config.stand;
}

/* Who is next in the row; or NIL. */
static uint32_t choose(const struct queueing *q, const struct row *row, weir_time now)
{
	switch ((enum weir_order)q->config.order) {
	case WEIR_LIFO:
		return row->tail;
	case WEIR_ADAPTIVE:
		return stands(q, row, now) ? row->tail : row->head;
	case WEIR_FIFO:
		break;
	}
	return row->head;
}

/* Run the callback of slot i, which is being told and of this process. */
static void tell(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	const uint64_t word = read_state(slot);

	q->listeners[i].granted(q->listeners[i].arg);
	atomic_store_explicit(&slot->state, with_state(word, GRANTED), memory_order_release);
}

static uint32_t state_granted(const struct queueing *q, const struct slot *slot, uint64_t word)
{
	if (!slot->tells)
		return GRANTED;
	return owner_in(word) == q->owner ? TELLING : PROMISED;
}

/* Give slot i what the drainer holds, or let it through. False: the waiter has left. */
static bool grant(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	struct slot *slot = &q->slots[i];
	uint64_t word = with_state(read_state(slot), WAITING);
	const uint32_t owner = owner_in(word), to = state_granted(q, slot, word);

	slot->inflight = permit->inflight;
	atomic_store_explicit(&slot->granted, permit->cost, memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word, with_state(word, to),
						     memory_order_release, memory_order_relaxed))
		return false;
	if (to == TELLING)
		tell(q, i);
	else if (to == PROMISED)
		lease_ring(q->leases, owner);
	park_wake(&slot->park);
	return true;
}

/* Slot i waits no more, whether its waiter is still there or has left and reported that. */
static void hand_over(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	const uint16_t part = part_of(&q->slots[i]);
	bool wake;

	take_out(q, i);
	retract(q, part, q->rows[part].stuck == 0);
	if (grant(q, i, permit))
		return;
	/* He has left, is listed no more, and counts until that is looked at. */
	announce(q, part);
	if (permit->cost > 0)
		(void)admission_give_back(&q->admission, part, permit->cost, &wake);
}

/* Try to serve slot i. False: there is no room for it. */
static bool serve(const struct queueing *q, uint32_t i)
{
	const struct demand demand = {
		.part = part_of(&q->slots[i]), .cost = q->slots[i].cost, .overtake = true};
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
	for (uint32_t r = 0; r < q->config.rows; r++) {
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
	const struct demand demand = {.part = part_of(&q->slots[i]), .cost = q->slots[i].cost};

	return admission_entitled(&q->admission, &demand);
}

/*
 * Of the rows that have not been tried, whose turn it is: of those within their guarantee
 * who has waited longest, else who has borrowed least. NIL: nobody's.
 */
static uint32_t next_row(const struct queueing *q, bool within_guarantee, weir_time now)
{
	uint32_t best = NIL;

	for (uint32_t r = 0; r < q->config.rows; r++) {
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

	while (i != NIL && !q->slots[i].sleeps)
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
	for (uint32_t r = 0; r < q->config.rows; r++) {
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

	for (uint32_t r = 0; r < q->config.rows; r++) {
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

static void drain_all(const struct queueing *q, weir_time now, uint32_t asked)
{
	do {
		drain_once(q, now);
	} while (!errand_done(&q->queue->pending, &asked));
}

void queue_drain(const struct queueing *q, weir_time now)
{
	uint32_t asked;

	if (errand_begin(&q->queue->pending, q->owner, &asked))
		drain_all(q, now, asked);
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
	uint32_t i = bitmap_take(q->free, q->config.slots, hint);

	if (LIKELY(i != NO_PLACE) ||
	    atomic_load_explicit(&q->queue->news, memory_order_relaxed) == 0)
		return i;
	sched_yield();
	return bitmap_take(q->free, q->config.slots, hint);
}

/* A slot of our own, with a stamp for its new use; or NO_PLACE. */
static uint32_t claim(const struct queueing *q, struct weir_wait *wait)
{
	uint32_t i, stamp;
	uint64_t word;

	while ((i = find_place(q)) != NO_PLACE) {
		word = atomic_load_explicit(&q->slots[i].state, memory_order_relaxed);
		stamp = (stamp_in(word) + 1) & (UINT32_MAX >> STATE_BITS);
		stamp += stamp == 0; /* 0 is no waiter */
		if (state_in(word) == FREE &&
		    atomic_compare_exchange_strong_explicit(
			    &q->slots[i].state, &word, word_of(q->owner, stamp, TAKEN),
			    memory_order_acquire, memory_order_relaxed)) {
			*wait = (struct weir_wait){.slot = i, .stamp = stamp};
			return i;
		}
	}
	return NO_PLACE;
}

/* The same, with who asks in it. */
static uint32_t take_slot(const struct queueing *q, const struct demand *demand,
			  struct listener listener, struct weir_wait *wait)
{
	uint32_t i = claim(q, wait);
	struct slot *slot;

	if (i == NO_PLACE)
		return NO_PLACE;
	slot = &q->slots[i];
	atomic_store_explicit(&slot->part, demand->part, memory_order_relaxed);
	slot->cost = demand->cost;
	slot->sleeps = listener.sleeps;
	slot->tells = listener.granted != NULL;
	atomic_store_explicit(&slot->watches, 0, memory_order_relaxed);
	q->listeners[i] = listener;
	return i;
}

bool queue_enter(const struct queueing *q, weir_time now, const struct demand *demand,
		 struct listener listener, struct weir_wait *wait)
{
	uint32_t i = take_slot(q, demand, listener, wait);

	if (i == NO_PLACE)
		return false;
	q->slots[i].since = now;
	announce(q, demand->part);
	atomic_store_explicit(&q->slots[i].state, word_of(q->owner, wait->stamp, WAITING),
			      memory_order_release);
	report(q, i);
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
	atomic_store_explicit(&q->slots[i].granted, permit->cost, memory_order_relaxed);
	if (listener.granted != NULL)
		listener.granted(listener.arg);
	atomic_store_explicit(&q->slots[i].state, word_of(q->owner, wait->stamp, GRANTED),
			      memory_order_release);
	return true;
}

/* A promise is kept if its waiter comes for it: nobody need tell him. True: word is what is so. */
static bool keep(struct slot *slot, uint64_t *word)
{
	const uint64_t kept = with_state(*word, GRANTED);

	if (!atomic_compare_exchange_strong_explicit(&slot->state, word, kept, memory_order_acquire,
						     memory_order_acquire))
		return false;
	*word = kept;
	return true;
}

/* The waiter's state, once its callback, if it is running, has returned. */
static uint32_t settled(const struct queueing *q, const struct weir_wait *wait)
{
	struct slot *slot;
	uint64_t word;

	if (wait->stamp == 0 || wait->slot >= q->config.slots)
		return FREE;
	slot = &q->slots[wait->slot];
	for (unsigned spins = 0;; spins++) {
		word = read_state(slot);
		if (stamp_in(word) != wait->stamp || owner_in(word) != q->owner)
			return FREE;
		if (state_in(word) == PROMISED && !keep(slot, &word))
			continue;
		if (state_in(word) != TELLING)
			return state_in(word);
		if (spins >= SPINS)
			sched_yield();
	}
}

static struct waited read_slot(const struct slot *slot)
{
	return (struct waited){
		.inflight = slot->inflight,
		.cost = atomic_load_explicit(&slot->granted, memory_order_relaxed),
		.part = part_of(slot),
	};
}

enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    struct waited *got)
{
	switch (settled(q, wait)) {
	case WAITING:
		*got = (struct waited){.part = part_of(&q->slots[wait->slot])};
		return QUEUE_WAITING;
	case GRANTED:
		*got = read_slot(&q->slots[wait->slot]);
		free_slot(q, wait->slot);
		return QUEUE_GRANTED;
	default:
		return QUEUE_NONE;
	}
}

/* Out of WAITING, and before the drainer. False: it has changed before. */
static bool abandon(const struct queueing *q, uint32_t i, uint64_t word)
{
	if (!atomic_compare_exchange_strong_explicit(&q->slots[i].state, &word,
						     with_state(word, ABANDONED),
						     memory_order_acq_rel, memory_order_acquire))
		return false;
	report(q, i);
	return true;
}

enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     struct waited *got)
{
	const uint32_t state = settled(q, wait);

	if (state != WAITING && state != GRANTED)
		return QUEUE_NONE;
	*got = (struct waited){.part = part_of(&q->slots[wait->slot])};
	if (!abandon(q, wait->slot, word_of(q->owner, wait->stamp, WAITING)))
		return queue_poll(q, wait, got);
	/* So that the slot is free again, and others know that one waits less. */
	queue_drain(q, now);
	return QUEUE_GONE;
}

bool queue_tell(const struct queueing *q)
{
	bool any = false;

	for (uint32_t i = 0; i < q->config.slots; i++) {
		struct slot *slot = &q->slots[i];
		uint64_t word = read_state(slot);

		if (state_in(word) == PROMISED && owner_in(word) == q->owner &&
		    atomic_compare_exchange_strong_explicit(
			    &slot->state, &word, with_state(word, TELLING), memory_order_acquire,
			    memory_order_relaxed)) {
			tell(q, i);
			any = true;
		}
	}
	return any;
}

/* The slot of a dead waiter, which is granted, or was never waited in. */
static void bury_slot(const struct queueing *q, uint32_t i, uint32_t state)
{
	const struct waited got = read_slot(&q->slots[i]);
	bool wake;

	/* First: who dies before the rest loses permits for a while, and makes none. */
	free_slot(q, i);
	if (state != TAKEN && got.cost > 0)
		(void)admission_give_back(&q->admission, got.part, got.cost, &wake);
}

/* A slot of a dead process. Drains may be going on: one may grant it a permit meanwhile. */
static void bury(const struct queueing *q, uint32_t i, uint64_t word)
{
	if (state_in(word) == WAITING && abandon(q, i, word))
		return;
	word = read_state(&q->slots[i]);
	if (state_in(word) == ABANDONED)
		report(q, i); /* he may not have come to that */
	else
		bury_slot(q, i, state_in(word));
}

void queue_bury(const struct queueing *q, uint32_t dead)
{
	for (uint32_t i = 0; i < q->config.slots; i++) {
		const uint64_t word = read_state(&q->slots[i]);

		if (state_in(word) == FREE)
			bitmap_put(q->free, i); /* its bit may have been taken, and then no more */
		else if (owner_in(word) == dead)
			bury(q, i, word);
	}
}

uint64_t queue_digest(const struct queueing *q)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < q->config.slots; i++)
		sum = (sum ^ read_state(&q->slots[i])) * UINT64_C(0x100000001b3);
	return sum;
}

/* Waiters that are announced: at the gate, and of each row. */
struct census {
	uint32_t gate, row[WEIR_PARTITIONS_MAX + 1];
};

/* Those that should be. False: somebody may be announcing himself. */
static bool count_slots(const struct queueing *q, struct census *c)
{
	bool known = true;

	*c = (struct census){.gate = 0};
	for (uint32_t i = 0; i < q->config.slots; i++) {
		const uint32_t state = state_in(read_state(&q->slots[i]));
		const uint16_t part = part_of(&q->slots[i]);

		known = known && state != TAKEN;
		if (state != WAITING && state != ABANDONED)
			continue;
		c->row[part]++;
		c->gate += !listed(q, i) || q->rows[part].stuck == 0;
	}
	return known;
}

static struct census count_announced(const struct queueing *q)
{
	struct census c = {.gate = gate_waiters(gate_read_acquire(q->admission.gate))};

	for (uint32_t r = 0; r < q->admission.count; r++)
		c.row[r] = gate_waiters(gate_read_acquire(&q->admission.parts[r].own));
	return c;
}

static void set_right(struct gate *gate, uint32_t announced, uint32_t should)
{
	if (announced > should)
		gate_retract(gate, announced - should);
	if (announced < should)
		gate_announce(gate, should - announced);
}

/* The drainer's: bring announcements to what they should be. False: that could not be told. */
static bool recount(const struct queueing *q)
{
	struct census should, announced;
	uint64_t before;
	bool known;

	for (int i = 0; i < RECOUNTS; i++) {
		before = queue_digest(q);
		known = count_slots(q, &should);
		announced = count_announced(q);
		if (!known || queue_digest(q) != before) {
			sched_yield();
			continue;
		}
		set_right(q->admission.gate, announced.gate, should.gate);
		for (uint32_t r = 0; r < q->admission.count; r++)
			set_right(&q->admission.parts[r].own, announced.row[r], should.row[r]);
		return true;
	}
	return false;
}

bool queue_recount(const struct queueing *q, weir_time now)
{
	uint32_t asked;
	bool known;

	if (!errand_begin(&q->queue->pending, q->owner, &asked))
		return false;
	known = recount(q);
	drain_all(q, now, asked);
	return known;
}

/* What an heir does with slot i once all who wait are listed. */
static void mend(const struct queueing *q, uint32_t i)
{
	const uint64_t word = read_state(&q->slots[i]);

	look_at(q, i);
	if (state_in(word) == PROMISED)
		lease_ring(q->leases, owner_in(word));
	if (state_in(word) == PROMISED || state_in(word) == GRANTED)
		park_wake(&q->slots[i].park);
}

void queue_inherit(const struct queueing *q, uint32_t dead, weir_time now)
{
	uint32_t asked;

	if (!errand_inherit(&q->queue->pending, dead, q->owner, &asked))
		return;
	for (uint32_t i = 0; i < q->config.rows; i++)
		q->rows[i] = (struct row){.head = NIL, .tail = NIL};
	for (uint32_t i = 0; i < q->config.slots; i++)
		q->slots[i].next = q->slots[i].prev = NIL;
	/* Before anything is retracted: who has died here may have done that already. */
	(void)recount(q);
	for (uint32_t i = 0; i < q->config.slots; i++)
		mend(q, i);
	drain_all(q, now, asked);
}

uint32_t queue_granted(const struct queueing *q, uint16_t part)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < q->config.slots; i++) {
		const struct slot *slot = &q->slots[i];
		const uint32_t state = state_in(read_state(slot));

		if ((state == PROMISED || state == TELLING || state == GRANTED) &&
		    part_of(slot) == part)
			sum += atomic_load_explicit(&slot->granted, memory_order_relaxed);
	}
	return sum;
}

void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches)
{
	atomic_store_explicit(&q->slots[wait->slot].watches, watches, memory_order_relaxed);
}

struct park *queue_park(const struct queueing *q, const struct weir_wait *wait)
{
	return &q->slots[wait->slot].park;
}
