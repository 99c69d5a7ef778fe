/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Granting permits to waiters. One thread drains at a time. A thread that makes room meanwhile has
 * it drain once more (lib/base/combiner.h). slots.h has the ledger.
 */

#include "lib/wait/slots.h"

#include "lib/base/combiner.h"
#include "lib/process/lease.h"

/*
 * Retract a waiter's announcement. Waiters listed in a stuck row are not announced at the gate.
 * Only the drainer calls it.
 */
static void retract(const struct queueing *q, uint16_t part, bool on_gate)
{
	if (q->admission->count > 0)
		gate_retract(&q->admission->parts[part].own, 1);
	if (on_gate)
		gate_retract(q->admission->gate, 1);
}

/* The rows are lists, oldest at the head. */

static _Atomic uint32_t *link_to(const struct queueing *q, struct row *row, uint32_t prev)
{
	return prev == NIL ? &row->head : &q->slots[prev].next;
}

static _Atomic uint32_t *link_back(const struct queueing *q, struct row *row, uint32_t next)
{
	return next == NIL ? &row->tail : &q->slots[next].prev;
}

/* The last waiter in the row that came before that time; or NIL. */
static uint32_t last_before(const struct queueing *q, const struct row *row, weir_time since)
{
	uint32_t i = slot_at(q, &row->tail);

	for (uint32_t steps = 0; i != NIL && (int64_t)(since - q->slots[i].since) < 0; steps++)
		i = steps < q->config.slots ? slot_at(q, &q->slots[i].prev) : NIL;
	return i;
}

/* Insert slot i behind all waiters that came before it, which is mostly at the tail. */
static void append(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[slot_part(q, i)];
	const uint32_t prev = last_before(q, row, slot->since);
	const uint32_t next = slot_at(q, link_to(q, row, prev));

	if (slot_at(q, &row->tail) == NIL)
		row->standing_since = slot->since;
	slot_link(&slot->prev, prev);
	slot_link(&slot->next, next);
	slot_link(link_back(q, row, next), i);
	slot_link(link_to(q, row, prev), i);
	row->length++;
	if (row->stuck != 0)
		gate_retract(q->admission->gate, 1);
}

static void take_out(const struct queueing *q, uint32_t i)
{
	struct slot *slot = &q->slots[i];
	struct row *row = &q->rows[slot_part(q, i)];
	const uint32_t prev = slot_at(q, &slot->prev), next = slot_at(q, &slot->next);

	slot_link(link_to(q, row, prev), next);
	slot_link(link_back(q, row, next), prev);
	slot_unlink(slot);
	row->length--;
}

void drain_slot(const struct queueing *q, uint32_t i)
{
	const uint32_t state = word_state(slot_read(&q->slots[i]));
	const uint16_t part = slot_part(q, i);
	const bool is_listed = slot_listed(q, i);

	if (state == WAITING && !is_listed) {
		append(q, i);
	} else if (state == ABANDONED) {
		if (is_listed)
			take_out(q, i);
		retract(q, part, !is_listed || q->rows[part].stuck == 0);
		slot_free(q, i);
	}
}

static void drain_word(const struct queueing *q, uint32_t k)
{
	uint64_t left = 0;

	if (atomic_load_explicit(&q->fresh[k], memory_order_relaxed) != 0)
		left = atomic_exchange_explicit(&q->fresh[k], 0, memory_order_acquire);
	for (left &= bitmap_mask(q->config.slots, k); left != 0; left &= left - 1)
		drain_slot(q, k * 64 + (uint32_t)__builtin_ctzll(left));
}

/* Add new waiters to the lists, and remove those that left. */
static void collect(const struct queueing *q)
{
	const uint32_t words = bitmap_words(q->config.slots);
	uint64_t left = 0;

	if (atomic_load_explicit(&q->queue->news, memory_order_relaxed) != 0)
		left = atomic_exchange_explicit(&q->queue->news, 0, memory_order_acquire);
	for (; left != 0; left &= left - 1) {
		const uint32_t first = (uint32_t)__builtin_ctzll(left) * NEWS_PART;

		for (uint32_t k = first; k < first + NEWS_PART && k < words; k++)
			drain_word(q, k);
	}
}

/* Whether the row has not been empty for longer than queue_stand. */
static bool stands(const struct queueing *q, const struct row *row, weir_time now)
{
	return (int64_t)(now - row->standing_since) > (int64_t)q->config.stand;
}

/* The next waiter of the row; or NIL. */
static uint32_t choose(const struct queueing *q, const struct row *row, weir_time now)
{
	switch ((enum weir_order)q->config.order) {
	case WEIR_LIFO:
		return slot_at(q, &row->tail);
	case WEIR_ADAPTIVE:
		return slot_at(q, stands(q, row, now) ? &row->tail : &row->head);
	case WEIR_FIFO:
		break;
	}
	return slot_at(q, &row->head);
}

static uint32_t state_granted(const struct queueing *q, const struct slot *slot, uint64_t word)
{
	if (!slot->notifies)
		return GRANTED;
	return word_owner(word) == q->owner ? NOTIFYING : PROMISED;
}

/* Give slot i a permit, or let it through. False: the waiter has left. */
static bool grant(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	struct slot *slot = &q->slots[i];
	uint64_t word = word_with(slot_read(slot), WAITING);
	const uint32_t owner = word_owner(word), to = state_granted(q, slot, word);

	slot->inflight = permit->inflight;
	atomic_store_explicit(&slot->granted, permit->cost, memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&slot->state, &word, word_with(word, to),
						     memory_order_release, memory_order_relaxed))
		return false;
	if (to == NOTIFYING)
		slot_notify(q, i, word_with(word, NOTIFYING));
	else if (to == PROMISED)
		lease_ring(q->leases, q->lease_count, owner);
	park_wake(&slot->park);
	return true;
}

/* Take slot i out of its row and grant it the permit, unless its waiter has left. */
static void hand_over(const struct queueing *q, uint32_t i, const struct permit *permit)
{
	const uint16_t part = slot_part(q, i);

	take_out(q, i);
	retract(q, part, q->rows[part].stuck == 0);
	if (grant(q, i, permit))
		return;
	/* It has left and is listed no more, but stays announced until its report is examined. */
	slot_announce(q, part);
	/* This drain goes on, and finds the room. */
	if (permit->cost > 0)
		(void)admission_give_back(q->admission, part, permit->cost, 0);
}

/* Try to reserve a permit for slot i and grant it. False: there is no room. */
static bool serve(const struct queueing *q, uint32_t i)
{
	const struct request request = {
		.part = slot_part(q, i),
		.cost = q->slots[i].cost,
		.overtake = true,
		.queued = true,
	};
	struct permit permit;

	if (admission_reserve(q->admission, &request, &permit) != ADMITTED)
		return false;
	hand_over(q, i, &permit);
	return true;
}

/* The next waiter of each row during a drain; NIL: the row is not served now. */
struct turns {
	uint32_t next[WEIR_PARTITIONS_MAX + 1];
};

/* Whether the partition's own cap has room for slot i, the next in its row. */
static bool below_cap(const struct queueing *q, uint32_t r, uint32_t i)
{
	uint64_t own = gate_read(&q->admission->parts[r].own);
	uint32_t cost = q->slots[i].cost;

	return gate_inflight(own) + gate_cost(own, cost) <= gate_limit(own);
}

/* Give turns to the rows that can use the gate's room, and announce only these at the gate. */
static void assign_turns(const struct queueing *q, weir_time now, struct turns *turns)
{
	for (uint32_t r = 0; r < q->config.rows; r++) {
		struct row *row = &q->rows[r];
		const uint32_t i = choose(q, row, now);
		const bool stuck = i != NIL && !below_cap(q, r, i);

		turns->next[r] = stuck ? NIL : i;
		if (stuck == (row->stuck != 0))
			continue;
		row->stuck = stuck;
		if (stuck)
			gate_retract(q->admission->gate, row->length);
		else
			gate_announce(q->admission->gate, row->length);
	}
}

/* Permits that partition r has in flight above its guarantee. */
static int64_t borrowed(const struct queueing *q, uint32_t r)
{
	const struct part *part = &q->admission->parts[r];

	return (int64_t)gate_inflight(gate_read(&part->own)) -
	       atomic_load_explicit(&part->guarantee, memory_order_relaxed);
}

static bool entitled(const struct queueing *q, uint32_t i)
{
	const struct request request = {.part = slot_part(q, i), .cost = q->slots[i].cost};

	return admission_entitled(q->admission, &request);
}

/* Whether row r precedes the other: it has waited longer, or has borrowed less. */
static bool is_before(const struct queueing *q, const struct turns *turns, bool within_guarantee,
		      uint32_t r, uint32_t other)
{
	const struct slot *slot = &q->slots[turns->next[r]];

	if (within_guarantee)
		return (int64_t)(slot->since - q->slots[turns->next[other]].since) < 0;
	return borrowed(q, r) < borrowed(q, other);
}

/*
 * The row to serve next: of those within their guarantee, the one that has waited longest; of the
 * others, the one that has borrowed least. NIL: none.
 */
static uint32_t next_row(const struct queueing *q, const struct turns *turns, bool within_guarantee)
{
	uint32_t best = NIL;

	for (uint32_t r = 0; r < q->config.rows; r++) {
		const uint32_t i = turns->next[r];

		if (i == NIL || entitled(q, i) != within_guarantee)
			continue;
		if (best == NIL || is_before(q, turns, within_guarantee, r, best))
			best = r;
	}
	return best;
}

/*
 * Serve the next waiter. If a partition within its guarantee finds too little room, the room is
 * left for it until there is enough. Other partitions take room one waiter at a time.
 */
static bool serve_next(const struct queueing *q, weir_time now, struct turns *turns)
{
	bool deficit = false;
	uint32_t r;

	assign_turns(q, now, turns);
	while ((r = next_row(q, turns, true)) != NIL) {
		if (serve(q, turns->next[r]))
			return true;
		turns->next[r] = NIL; /* no room */
		deficit = true;
	}
	if (deficit)
		return false;
	r = next_row(q, turns, false);
	return r != NIL && serve(q, turns->next[r]);
}

/* The first slot in the row whose waiter is a sleeping thread; or NIL. */
static uint32_t sleeper_in(const struct queueing *q, const struct row *row)
{
	uint32_t i = slot_at(q, &row->head);

	for (uint32_t steps = 0; i != NIL && !q->slots[i].sleeps; steps++)
		i = steps < q->config.slots ? slot_at(q, &q->slots[i].next) : NIL;
	return i;
}

/*
 * Permits reserved for a partition may be all that a waiter lacks, and no call may come when that
 * reservation lapses, or when a pause is over. So one of the waiting threads, if there are any, has
 * the watch: it sleeps until then only, and then drains for all waiters. It marks that in its slot,
 * and the others sleep on.
 *
 * Why there is always one. A thread that gives up the watch clears the mark first, and then
 * requests a drain. The drain that serves this request sees the mark cleared, and sees the
 * reservations and the pause as the drain before saw them, or later. So if the earlier drain relied
 * on the watch, this one wakes a thread to take it. The window's owner that begins a pause lowers
 * the gate's limit after it, and then drains if calls wait. A call that begins to wait after that
 * sees the pause (lib/admission/gate.h), and one that began before is seen.
 */
static void set_watch(const struct queueing *q)
{
	if (!admission_awaits_time(q->admission))
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

static void drain_partitions(const struct queueing *q, weir_time now)
{
	struct turns turns;
	uint32_t served = 0;

	(void)admission_lapse(q->admission, now);
	while (serve_next(q, now, &turns) && served < q->config.slots)
		served++;
	if (next_row(q, &turns, false) != NIL)
		set_watch(q);
}

static void drain_gate(const struct queueing *q, weir_time now)
{
	uint32_t i, served = 0;

	while ((i = choose(q, q->rows, now)) != NIL && served < q->config.slots && serve(q, i))
		served++;
	if (i != NIL)
		set_watch(q);
}

/* In shadow mode no call waits: a waiter that gets no permit is let through without one. */
static void let_through(const struct queueing *q, weir_time now)
{
	const struct permit none = {.cost = 0};
	uint32_t i, served = 0;

	for (uint32_t r = 0; r < q->config.rows; r++) {
		while ((i = choose(q, &q->rows[r], now)) != NIL && served++ < q->config.slots) {
			if (!serve(q, i))
				hand_over(q, i, &none);
		}
	}
}

static void drain_once(const struct queueing *q, weir_time now)
{
	collect(q);
	(void)admission_resume(q->admission, now);
	if (UNLIKELY(atomic_load_explicit(&q->queue->open, memory_order_relaxed) != 0))
		let_through(q, now);
	else if (q->admission->count > 0)
		drain_partitions(q, now);
	else
		drain_gate(q, now);
}

void drain_all(const struct queueing *q, weir_time now)
{
	uint32_t rounds = 0;

	do {
		drain_once(q, now);
	} while (!combiner_over(&q->queue->pending, q->owner, &rounds));
}

void queue_drain(const struct queueing *q, weir_time now)
{
	if (combiner_begin(&q->queue->pending, q->owner))
		drain_all(q, now);
}
