/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranking of priorities. shed.h explains the ranks.
 */

#include "lib/admission/shed.h"

#include <string.h>

#define RELAXED memory_order_relaxed

/* Time between two steps, in nanoseconds. */
#define STEER_EVERY (100 * WEIR_MS)

#define BUSY UINT64_C(1)

#define RANK_MAX 2

/* Fewest calls for an estimate: with fewer, the step waits for more. */
#define CALLS_MIN 20

/* Weight of the fraction served in the last step, in the moving average. */
#define WEIGHT 0.5

void shed_init(const struct shedding *s)
{
	memset(s->arrivals, 0, (size_t)s->parts * s->stripes * sizeof(*s->arrivals));
	if (s->parts > 0)
		atomic_init(&s->steering->due, 0);
	for (uint32_t p = 0; p < s->parts; p++) {
		memset(&s->rankings[p], 0, sizeof(s->rankings[p]));
		s->rankings[p].served = 1;
	}
}

/* Choose floor of each 65536 calls, evenly: whether the n-th is chosen. */
static bool is_chosen(uint32_t n, uint32_t floor)
{
	return ((uint64_t)n + 1) * floor >> 16 != (uint64_t)n * floor >> 16;
}

uint32_t shed_rank(const struct shedding *s, uint32_t stripe, uint16_t part, int16_t priority)
{
	struct arrivals *arrivals = &s->arrivals[stripe * s->parts + part];
	uint32_t level = (uint32_t)(priority - WEIR_PRIORITY_MIN);
	const uint32_t set = atomic_load_explicit(&s->rankings[part].rank[level], RELAXED);
	const uint32_t rank = LIKELY(set <= RANK_MAX) ? set : RANK_MAX;
	uint32_t n = atomic_fetch_add_explicit(&arrivals->arrived[level], 1, RELAXED);

	return UNLIKELY(rank == RANK_MAX) && is_chosen(n, s->floor) ? 0 : rank;
}

/* A partition's counters, over all stripes. */
struct counts {
	uint32_t arrived[LEVELS], refused;
};

static struct counts add_up(const struct shedding *s, uint32_t part)
{
	struct counts sum = {.refused = 0};

	for (uint32_t k = 0; k < s->stripes; k++) {
		const struct arrivals *a = &s->arrivals[k * s->parts + part];

		sum.refused += atomic_load_explicit(&a->refused, RELAXED);
		for (uint32_t i = 0; i < LEVELS; i++)
			sum.arrived[i] += atomic_load_explicit(&a->arrived[i], RELAXED);
	}
	return sum;
}

/*
 * Give each level its rank, from the highest down. The highest level that has calls is of rank 0 in
 * any case, as there is none above it to leave room for.
 */
static void set_ranks(struct ranking *r, const uint32_t *calls, uint32_t all)
{
	double left = r->served * all;
	bool highest = true;

	for (uint32_t i = LEVELS; i-- > 0;) {
		uint32_t rank = left <= 0 ? RANK_MAX : calls[i] > left ? 1 : 0;

		if (highest)
			rank = 0;
		left -= calls[i];
		highest = highest && calls[i] == 0;
		atomic_store_explicit(&r->rank[i], rank, RELAXED);
	}
}

static void steer(const struct shedding *s, uint32_t part)
{
	struct ranking *r = &s->rankings[part];
	struct counts now = add_up(s, part);
	uint32_t calls[LEVELS], refused = now.refused - r->refused, all = 0;
	double served;

	for (uint32_t i = 0; i < LEVELS; i++) {
		calls[i] = now.arrived[i] - r->arrived[i];
		all += calls[i];
	}
	if (all < CALLS_MIN)
		return;
	memcpy(r->arrived, now.arrived, sizeof(now.arrived));
	r->refused = now.refused;
	served = refused < all ? (double)(all - refused) / all : 0;
	r->served += WEIGHT * (served - r->served);
	/* Without this, rounding would shed the lowest level for ever. */
	if (refused == 0 && r->served > 0.99)
		r->served = 1;
	set_ranks(r, calls, all);
}

static uint64_t busy(uint32_t owner)
{
	return (uint64_t)owner << 1 | BUSY;
}

/* Half-updated counters make one step's estimate wrong, and no more. */
void shed_recover(const struct shedding *s, uint32_t dead)
{
	uint64_t due = busy(dead);

	if (s->parts > 0)
		(void)atomic_compare_exchange_strong_explicit(&s->steering->due, &due, 0,
							      memory_order_acq_rel, RELAXED);
}

void shed_steer(const struct shedding *s, weir_time now)
{
	_Atomic uint64_t *word = &s->steering->due;
	uint64_t due = atomic_load_explicit(word, RELAXED);

	if ((due & BUSY) != 0 || (due != 0 && (int64_t)((now << 1) - due) < 0))
		return;
	if (!atomic_compare_exchange_strong_explicit(word, &due, busy(s->owner),
						     memory_order_acquire, RELAXED))
		return;
	for (uint32_t part = 0; part < s->parts; part++)
		steer(s, part);
	atomic_store_explicit(word, (now + STEER_EVERY) << 1, memory_order_release);
}
