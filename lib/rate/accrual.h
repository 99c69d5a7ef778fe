/*
 * What falls due when: exact arithmetic of whole numbers, without threads and without clocks.
 *
 * Slots are counted from an origin, the beginning of some slot. By the beginning of the jth slot
 * after it, a quota of R units a period P has seen
 *
 *	base + floor((rest + worth(j) * R) / (100 * P))
 *
 * units fall due, since it was made. worth(j) is the time of j slots in nanoseconds, times their
 * pace in percent: 100 * j * slot, unless the pace was lowered. rest is what was left of a unit at
 * the origin. So nothing is rounded but the units that are shown, however often the origin moves,
 * and it moves with every change. In time it could not be so: a unit of 75 a second takes no whole
 * number of nanoseconds.
 *
 * A quota's word counts the units taken, as base counts those due: what is left is the difference.
 * It is compared by multiplication. A division is needed where something has lapsed, which is
 * once in a pause of the calls, or where a number is shown.
 *
 * Why nothing overflows. From an origin at most SPAN nanoseconds are counted, and quotas of up to
 * UNITS_PER_NS fall due: fewer than 2^62 units. worth() is below 2^63 and R at most 2^53; units
 * are below 2^62 and 100 * P below 2^59: products are below 2^122. SPAN is two years; the origin
 * moves in each RENEWAL, which is two weeks, if any calls are made.
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

/* All 64 bits wide: they are published word by word. */
struct accrual {
	uint64_t slot;
	uint64_t origin;
	uint64_t pause;   /* slots from the origin that are worth nothing */
	uint64_t first;   /* slots after these, at that percentage */
	uint64_t percent; /* FULL_PACE: for ever */
	uint64_t step;    /* slots at each higher percentage after that */
};

struct quota {
	uint64_t units; /* R */
	uint64_t span;  /* 100 * P */
	uint64_t base;
	uint64_t rest;  /* below span */
	uint64_t depth; /* units that may be left at once; 0: nothing passes */
	uint64_t limited;
};

/* Slots that have begun since the origin. */
uint64_t accrual_slots(const struct accrual *p, weir_time now);

uint64_t accrual_worth(const struct accrual *p, uint64_t slots);

/*
 * The first slot by which so much has come: its beginning, or if that is out of sight, a time not
 * after it. WEIR_FOREVER: there is none.
 */
weir_time accrual_time_of(const struct accrual *p, uint64_t worth);

/* Have the origin so many slots later, and nothing else. Quotas first. */
void accrual_move(struct accrual *p, uint64_t slots);
void quota_move(struct quota *q, uint64_t worth);

/* The callee complains. lower: the pace falls. */
void accrual_throttle(struct accrual *p, weir_time now, weir_dur retry_after, bool lower);

/* A quota of which nothing has been taken yet, at the origin. */
struct quota quota_from(const struct weir_quota *value, uint64_t slot);

/* The same quota with another value, at the origin. */
struct quota quota_with(const struct quota *q, const struct weir_quota *value, uint64_t slot);

/* Whether more than so many units have fallen due since base. */
static inline bool quota_covers(const struct quota *q, uint64_t worth, int64_t ahead)
{
	return ((signed_wide)ahead + 1) * (signed_wide)q->span <=
	       (signed_wide)((wide)worth * q->units + q->rest);
}

/* Whether less of it falls due in any time than of the other. */
static inline bool quota_is_slower(const struct quota *q, const struct quota *than)
{
	return (wide)q->units * than->span < (wide)than->units * q->span;
}

/* Units due in all. */
static inline uint64_t quota_due(const struct quota *q, uint64_t worth)
{
	return q->base + (uint64_t)(((wide)worth * q->units + q->rest) / q->span);
}

/* What the word is once what is beyond the depth has lapsed. */
static inline uint64_t quota_lapsed(const struct quota *q, uint64_t worth, uint64_t taken)
{
	if (quota_covers(q, worth, (int64_t)(taken - q->base) + (int64_t)q->depth))
		return quota_due(q, worth) - q->depth;
	return taken;
}

/* The same after so many units are taken as well. False: nothing is left. */
static inline bool quota_take(const struct quota *q, uint64_t worth, uint64_t taken, uint64_t units,
			      uint64_t *after)
{
	if (!quota_covers(q, worth, (int64_t)(taken - q->base)))
		return false;
	*after = quota_lapsed(q, worth, taken) + units;
	return q->depth > 0;
}

/* What is left, not below zero; and what is owed. */
uint64_t quota_left(const struct quota *q, uint64_t worth, uint64_t taken);
uint64_t quota_debt(const struct quota *q, uint64_t worth, uint64_t taken);

/* What has to come until anything is left. UINT64_MAX: it never does. */
uint64_t quota_worth_for(const struct quota *q, uint64_t taken);

#endif
