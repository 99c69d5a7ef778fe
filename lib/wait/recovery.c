/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cleaning up after waiters and drainers that have died. slots.h has the ledger, and the argument
 * why nothing is lost.
 */

#include "lib/wait/slots.h"

#include <sched.h>

#include "lib/base/combiner.h"
#include "lib/process/lease.h"

/* Tries of a recount before it gives up. Arbitrary. */
#define RECOUNTS 100

/* Free the slot of a dead waiter that was granted a permit, or had not begun to wait. */
static void reclaim_slot(const struct queueing *q, uint32_t i, uint32_t state)
{
	const struct waited got = slot_waited(q, i);

	/* First: if this process dies in between, permits are lost for a while, never gained. */
	slot_free(q, i);
	if (state != TAKEN && got.cost > 0)
		(void)admission_give_back(q->admission, got.part, got.cost, 0);
}

/* Reclaim a slot of a dead process. A concurrent drain may still grant it a permit. */
static void reclaim(const struct queueing *q, uint32_t i, uint64_t word)
{
	if (word_state(word) == WAITING && slot_abandon(q, i, word))
		return;
	word = slot_read(&q->slots[i]);
	if (word_state(word) == ABANDONED)
		slot_report(q, i); /* the waiter may have died before its report */
	else
		reclaim_slot(q, i, word_state(word));
}

void queue_reclaim(const struct queueing *q, uint32_t dead)
{
	for (uint32_t i = 0; i < q->config.slots; i++) {
		const uint64_t word = slot_read(&q->slots[i]);

		if (word_state(word) == FREE)
			bitmap_put(q->free, i); /* its bit may have been taken without more */
		else if (word_owner(word) == dead)
			reclaim(q, i, word);
	}
}

uint64_t queue_digest(const struct queueing *q)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < q->config.slots; i++)
		sum = (sum ^ slot_read(&q->slots[i])) * UINT64_C(0x100000001b3);
	return sum;
}

/* The number of announced waiters: at the gate, and of each row. */
struct census {
	uint32_t gate, row[WEIR_PARTITIONS_MAX + 1];
};

/* Count the waiters that should be announced. False: a waiter may be announcing itself now. */
static bool count_slots(const struct queueing *q, struct census *c)
{
	bool known = true;

	*c = (struct census){.gate = 0};
	for (uint32_t i = 0; i < q->config.slots; i++) {
		const uint32_t state = word_state(slot_read(&q->slots[i]));
		const uint16_t part = slot_part(q, i);

		known = known && state != TAKEN;
		if (state != WAITING && state != ABANDONED)
			continue;
		c->row[part]++;
		c->gate += !slot_listed(q, i) || q->rows[part].stuck == 0;
	}
	return known;
}

static struct census count_announced(const struct queueing *q)
{
	struct census c = {.gate = gate_waiters(gate_read_acquire(q->admission->gate))};

	for (uint32_t r = 0; r < q->admission->count; r++)
		c.row[r] = gate_waiters(gate_read_acquire(&q->admission->parts[r].own));
	return c;
}

static void correct(struct gate *gate, uint32_t announced, uint32_t should)
{
	if (announced > should)
		gate_retract(gate, announced - should);
	if (announced < should)
		gate_announce(gate, should - announced);
}

/* Correct the announcements. False: the right number is not known. Only the drainer calls it. */
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
		correct(q->admission->gate, announced.gate, should.gate);
		for (uint32_t r = 0; r < q->admission->count; r++)
			correct(&q->admission->parts[r].own, announced.row[r], should.row[r]);
		return true;
	}
	return false;
}

bool queue_recount(const struct queueing *q, weir_time now)
{
	bool known;

	if (!combiner_begin(&q->queue->pending, q->owner))
		return false;
	known = recount(q);
	drain_all(q, now);
	return known;
}

/* Recover slot i: list it again if it waits, and wake its waiter if it was granted a permit. */
static void recover_slot(const struct queueing *q, uint32_t i)
{
	const uint64_t word = slot_read(&q->slots[i]);

	drain_slot(q, i);
	if (word_state(word) == PROMISED)
		lease_ring(q->leases, q->lease_count, word_owner(word));
	if (word_state(word) == PROMISED || word_state(word) == GRANTED)
		park_wake(&q->slots[i].park);
}

void queue_recover(const struct queueing *q, uint32_t dead, weir_time now)
{
	if (!combiner_recover(&q->queue->pending, dead, q->owner))
		return;
	for (uint32_t i = 0; i < q->config.rows; i++)
		row_empty(&q->rows[i]);
	for (uint32_t i = 0; i < q->config.slots; i++)
		slot_unlink(&q->slots[i]);
	/* Before anything is retracted, because the dead drainer may have done that already. */
	(void)recount(q);
	for (uint32_t i = 0; i < q->config.slots; i++)
		recover_slot(q, i);
	drain_all(q, now);
}

uint32_t queue_granted(const struct queueing *q, uint16_t part)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < q->config.slots; i++) {
		const struct slot *slot = &q->slots[i];
		const uint32_t state = word_state(slot_read(slot));

		if ((state == PROMISED || state == NOTIFYING || state == GRANTED) &&
		    slot_part(q, i) == part)
			sum += atomic_load_explicit(&slot->granted, memory_order_relaxed);
	}
	return sum;
}
