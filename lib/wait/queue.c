/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waiters do: enter the queue, poll for a permit, and leave. slots.h has the ledger.
 */

#include "lib/wait/slots.h"

#include <sched.h>

/* Polls of a running callback before the thread yields its CPU. Arbitrary; most are short. */
#define SPINS 100

void queue_init(const struct queueing *q)
{
	struct queue *queue = q->queue;

	atomic_init(&queue->news, 0);
	atomic_init(&queue->pending, 0);
	atomic_init(&queue->open, q->config.open);
	for (uint32_t i = 0; i < q->config.rows; i++)
		row_empty(&q->rows[i]);
	bitmap_init(q->free, q->config.slots);
	for (uint32_t i = 0; i < bitmap_words(q->config.slots); i++)
		atomic_init(&q->fresh[i], 0);
	for (uint32_t i = 0; i < q->config.slots; i++) {
		atomic_init(&q->slots[i].part, 0);
		atomic_init(&q->slots[i].state, slot_word(0, 0, FREE));
		park_init(&q->slots[i].park);
		slot_unlink(&q->slots[i]);
	}
}

/*
 * A free slot's number, or NO_SLOT. A slot that its waiter has left becomes free in a drain. If
 * none is free but some were left, the draining thread has most likely been preempted, and every
 * caller would find the queue full until it runs again; so yield to it once. In a queue that is
 * full of waiters no caller yields.
 */
static uint32_t find_slot(const struct queueing *q)
{
	const uint32_t hint = (uint32_t)sched_getcpu();
	uint32_t i = bitmap_take(q->free, q->config.slots, hint);

	if (LIKELY(i != NO_SLOT) ||
	    atomic_load_explicit(&q->queue->news, memory_order_relaxed) == 0)
		return i;
	sched_yield();
	return bitmap_take(q->free, q->config.slots, hint);
}

/*
 * Take a free slot and stamp its new use. Returns its number or NO_SLOT. The number of tries is
 * bounded by the number of slots.
 */
static uint32_t claim(const struct queueing *q, struct weir_wait *wait)
{
	uint32_t i, stamp;
	uint64_t word;

	for (uint32_t tries = 0; tries < q->config.slots; tries++) {
		i = find_slot(q);
		if (i == NO_SLOT)
			break;
		word = atomic_load_explicit(&q->slots[i].state, memory_order_relaxed);
		stamp = (word_stamp(word) + 1) & (UINT32_MAX >> STATE_BITS);
		stamp += stamp == 0; /* 0 means no waiter */
		if (word_state(word) == FREE &&
		    atomic_compare_exchange_strong_explicit(
			    &q->slots[i].state, &word, slot_word(q->owner, stamp, TAKEN),
			    memory_order_acquire, memory_order_relaxed)) {
			*wait = (struct weir_wait){.slot = i, .stamp = stamp};
			return i;
		}
	}
	return NO_SLOT;
}

/* Take a free slot and fill in the request. */
static uint32_t take_slot(const struct queueing *q, const struct request *request,
			  struct listener listener, struct weir_wait *wait)
{
	uint32_t i = claim(q, wait);
	struct slot *slot;

	if (i == NO_SLOT)
		return NO_SLOT;
	slot = &q->slots[i];
	atomic_store_explicit(&slot->part, request->part, memory_order_relaxed);
	slot->cost = request->cost;
	slot->sleeps = listener.sleeps;
	slot->notifies = listener.granted != NULL;
	atomic_store_explicit(&slot->watches, 0, memory_order_relaxed);
	if (listener.granted == NULL ||
	    callback_set(&q->callbacks[i], wait->stamp, listener.granted, listener.arg))
		return i;
	/* The block offered a slot in which a waiter of this process still waits. */
	slot_free(q, i);
	return NO_SLOT;
}

bool queue_enter(const struct queueing *q, weir_time now, const struct request *request,
		 struct listener listener, struct weir_wait *wait)
{
	uint32_t i = take_slot(q, request, listener, wait);

	if (i == NO_SLOT)
		return false;
	q->slots[i].since = now;
	slot_announce(q, request->part);
	atomic_store_explicit(&q->slots[i].state, slot_word(q->owner, wait->stamp, WAITING),
			      memory_order_release);
	slot_report(q, i);
	queue_drain(q, now);
	return true;
}

bool queue_enter_granted(const struct queueing *q, const struct request *request,
			 const struct permit *permit, struct listener listener,
			 struct weir_wait *wait)
{
	const uint32_t i = take_slot(q, request, listener, wait);
	const uint32_t state = listener.granted != NULL ? NOTIFYING : GRANTED;

	if (i == NO_SLOT)
		return false;
	q->slots[i].inflight = permit->inflight;
	atomic_store_explicit(&q->slots[i].granted, permit->cost, memory_order_relaxed);
	atomic_store_explicit(&q->slots[i].state, slot_word(q->owner, wait->stamp, state),
			      memory_order_release);
	if (state == NOTIFYING)
		slot_notify(q, i, slot_word(q->owner, wait->stamp, NOTIFYING));
	return true;
}

/* The waiter takes the permit itself and need not be notified. True: *word is the new state. */
static bool take_permit(struct slot *slot, uint64_t *word)
{
	const uint64_t granted = word_with(*word, GRANTED);

	if (!atomic_compare_exchange_strong_explicit(&slot->state, word, granted,
						     memory_order_acquire, memory_order_acquire))
		return false;
	*word = granted;
	return true;
}

/* End the waiter's callback. False: it is running, and the caller is not patient. */
static bool end_callback(const struct queueing *q, const struct weir_wait *wait, bool patient)
{
	return wait->stamp == 0 || wait->slot >= q->config.slots ||
	       callback_end(&q->callbacks[wait->slot], wait->stamp, patient);
}

/*
 * The waiter's state. If another thread runs its callback, wait until that has returned. If this
 * thread is in the callback itself, take the permit that the callback announces. A poll from any
 * other callback does not wait, as two threads may be polling each other's waiter.
 */
static uint32_t settled(const struct queueing *q, const struct weir_wait *wait, bool leaves)
{
	struct slot *slot;
	uint64_t word;

	if (wait->stamp == 0 || wait->slot >= q->config.slots)
		return FREE;
	slot = &q->slots[wait->slot];
	for (unsigned spins = 0;; spins++) {
		word = slot_read(slot);
		if (word_stamp(word) != wait->stamp || word_owner(word) != q->owner)
			return FREE;
		if (word_state(word) == PROMISED && !take_permit(slot, &word))
			continue;
		if (word_state(word) != NOTIFYING)
			return word_state(word);
		if (notify_here(&q->callbacks[wait->slot], wait->stamp))
			return GRANTED;
		if (!leaves && notify_any())
			return NOTIFYING;
		if (q->leases != NULL) {
			(void)end_callback(q, wait, true);
			(void)take_permit(slot, &word);
		} else if (spins >= SPINS)
			sched_yield();
	}
}

static enum queue_state see(const struct queueing *q, const struct weir_wait *wait, bool leaves,
			    struct waited *got)
{
	const uint32_t state = settled(q, wait, leaves);

	if (state == WAITING || state == NOTIFYING ||
	    !end_callback(q, wait, leaves || !notify_any())) {
		*got = (struct waited){.part = slot_part(q, wait->slot)};
		return QUEUE_WAITING;
	}
	if (state != GRANTED)
		return QUEUE_NONE;
	*got = slot_waited(q, wait->slot);
	slot_free(q, wait->slot);
	return QUEUE_GRANTED;
}

/* Poll a waiter that was found not to be waiting. */
static enum queue_state poll_last(const struct queueing *q, const struct weir_wait *wait,
				  struct waited *got)
{
	const enum queue_state state = see(q, wait, true, got);

	if (state != QUEUE_WAITING)
		return state;
	/* Only a faulty or malicious process puts a slot back into that state. */
	(void)end_callback(q, wait, true);
	return QUEUE_NONE;
}

enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    struct waited *got)
{
	return see(q, wait, false, got);
}

enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     struct waited *got)
{
	const uint64_t waiting = slot_word(q->owner, wait->stamp, WAITING);

	if (settled(q, wait, true) != WAITING)
		return poll_last(q, wait, got);
	*got = (struct waited){.part = slot_part(q, wait->slot)};
	if (!slot_abandon(q, wait->slot, waiting))
		return poll_last(q, wait, got);
	(void)end_callback(q, wait, true);
	/* This frees the slot and retracts the waiter's announcement. */
	queue_drain(q, now);
	return QUEUE_GONE;
}

bool queue_is_empty(const struct queueing *q)
{
	for (uint32_t k = 0; k < bitmap_words(q->config.slots); k++) {
		uint64_t left = bitmap_taken(q->free, q->config.slots, k);

		for (; left != 0; left &= left - 1) {
			const uint32_t i = k * 64 + (uint32_t)__builtin_ctzll(left);

			if (word_state(slot_read(&q->slots[i])) != FREE)
				return false;
		}
	}
	return true;
}

bool queue_notify(const struct queueing *q)
{
	bool any = false;

	for (uint32_t i = 0; i < q->config.slots; i++) {
		struct slot *slot = &q->slots[i];
		uint64_t word = slot_read(slot);

		if (word_state(word) == PROMISED && word_owner(word) == q->owner &&
		    atomic_compare_exchange_strong_explicit(
			    &slot->state, &word, word_with(word, NOTIFYING), memory_order_acquire,
			    memory_order_relaxed)) {
			slot_notify(q, i, word_with(word, NOTIFYING));
			any = true;
		}
	}
	return any;
}

void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches)
{
	atomic_store_explicit(&q->slots[wait->slot].watches, watches, memory_order_relaxed);
}

struct park *queue_park(const struct queueing *q, const struct weir_wait *wait)
{
	return &q->slots[wait->slot].park;
}
