/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accrual: how many units have been added when. Exact integer arithmetic, without threads and
 * without clocks.
 *
 * Slots are counted from an origin, the beginning of some slot. By the beginning of the jth slot
 * after it, a quota of R units in a period P has had
 *
 *	base + floor((rest + worth(j) * R) / (100 * P))
 *
 * units added since it was made. worth(j) is the time of j slots in nanoseconds, times their pace
 * in percent: 100 * j * slot, unless the pace was lowered. rest is the fraction of a unit left at
 * the origin. So only the units that are shown are rounded, however often the origin moves, and it
 * moves with every change. Counting in time would not be exact: one unit of 75 a second takes no
 * whole number of nanoseconds.
 *
 * A quota's word counts the units taken, as base counts those added: the difference is what is
 * left. They are compared by multiplication. A division is needed only where something has lapsed,
 * which is once in each pause of the calls, or where a number is shown.
 *
 * Why nothing overflows. At most SPAN nanoseconds are counted from an origin, and at most
 * UNITS_PER_NS units are added in each: fewer than 2^62 units. worth() is below 2^63 and R at most
 * 2^53; units are below 2^62 and 100 * P below 2^59: products are below 2^122. SPAN is two years;
 * the origin moves once in each RENEWAL, two weeks, if any calls are made.
 */
#ifndef WEIR_LIB_ACCRUAL_H
#define WEIR_LIB_ACCRUAL_H

#include <stdbool.h>

#include <weir/rate.h>

#define PERIOD_MAX   (UINT64_C(1) << 52)
#define SPAN         (UINT64_C(1) << 56)
#define RENEWAL      (UINT64_C(1) << 50)
#define UNITS_PER_NS 64
#define FULL_PACE    100

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

/* All fields have 64 bits: they are published word by word. */
struct accrual {
	uint64_t slot;
	uint64_t origin;
	uint64_t pause;   /* slots from the origin that add nothing */
	uint64_t first;   /* slots after these, at percent */
	uint64_t percent; /* the pace; FULL_PACE: for good */
	uint64_t step;    /* slots at each higher percentage after that */
};

struct quota {
	uint64_t units; /* R */
	uint64_t span;  /* 100 * P */
	uint64_t base;
	uint64_t rest;  /* numerator of the fraction of a unit left; below span */
	uint64_t depth; /* units that may be left at once; 0: nothing passes */
	uint64_t limited;
};

/* Slots that have begun since the origin. */
uint64_t accrual_slots(const struct accrual *p, weir_time now);

uint64_t accrual_worth(const struct accrual *p, uint64_t slots);

/*
 * The beginning of the first slot by which this worth is reached; if that is beyond SPAN, a time
 * not after it. WEIR_FOREVER: never.
 */
weir_time accrual_time_of(const struct accrual *p, uint64_t worth);

/* Move the origin by that many slots, and change nothing else. Quotas first. */
void accrual_move(struct accrual *p, uint64_t slots);
void quota_move(struct quota *q, uint64_t worth);

/* The backend has throttled. lower: the pace falls. */
void accrual_throttle(struct accrual *p, weir_time now, weir_dur retry_after, bool lower);

/* A quota of which nothing has been taken yet, at the origin. */
struct quota quota_from(const struct weir_quota *value, uint64_t slot);

/* The same quota with another value, at the origin. */
struct quota quota_with(const struct quota *q, const struct weir_quota *value, uint64_t slot);

/* Whether more than ahead units have been added since base. */
static inline bool quota_covers(const struct quota *q, uint64_t worth, int64_t ahead)
{
	return ((signed_wide)ahead + 1) * (signed_wide)q->span <=
	       (signed_wide)((wide)worth * q->units + q->rest);
}

/* Whether it adds fewer units in any time than the other. */
static inline bool quota_is_slower(const struct quota *q, const struct quota *than)
{
	return (wide)q->units * than->span < (wide)than->units * q->span;
}

/* Units added in total. */
static inline uint64_t quota_due(const struct quota *q, uint64_t worth)
{
	return q->base + (uint64_t)(((wide)worth * q->units + q->rest) / q->span);
}

/* The quota's word after units beyond the depth have lapsed. */
static inline uint64_t quota_lapsed(const struct quota *q, uint64_t worth, uint64_t taken)
{
	if (quota_covers(q, worth, (int64_t)(taken - q->base) + (int64_t)q->depth))
		return quota_due(q, worth) - q->depth;
	return taken;
}

/* The same after units have been taken as well. False: nothing is left. */
static inline bool quota_take(const struct quota *q, uint64_t worth, uint64_t taken, uint64_t units,
			      uint64_t *after)
{
	if (!quota_covers(q, worth, (int64_t)(taken - q->base)))
		return false;
	*after = quota_lapsed(q, worth, taken) + units;
	return q->depth > 0;
}

/* Units left, not below zero; and debt in units. */
uint64_t quota_left(const struct quota *q, uint64_t worth, uint64_t taken);
uint64_t quota_debt(const struct quota *q, uint64_t worth, uint64_t taken);

/* The worth at which the next unit of a limited quota is left. UINT64_MAX: never. */
uint64_t quota_worth_for(const struct quota *q, uint64_t taken);

#endif
