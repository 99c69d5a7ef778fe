/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing a capacity among members.
 *
 * FAIR is weighted water-filling, computed exactly: members that want less than the level get what
 * they want, all others get the level times their weight. Units that do not divide go by largest
 * remainder. PROPORTIONAL gives each member its part by weight, and divides what others leave of
 * their parts in proportion to what each still lacks. Only the fractions of PROPORTIONAL are
 * computed in floating point; their sum is again corrected by largest remainder.
 *
 * Headroom is rounded down, so all targets and all headroom together are within the capacity.
 */

#include "fleet/protocol/allot.h"

#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

/* The least wants per weight first; of equal ones, the lower id. */
static int by_need(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;
	const wide x = (wide)a->wants * b->weight, y = (wide)b->wants * a->weight;

	if (x != y)
		return x < y ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int by_priority(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return by_need(left, right);
}

/* A part that is not a whole number of units. */
struct remainder {
	struct claim *claim;
	long double fraction; /* only compared, never summed */
};

static int by_fraction(const void *left, const void *right)
{
	const struct remainder *a = left, *b = right;

	if (a->fraction < b->fraction || a->fraction > b->fraction)
		return a->fraction > b->fraction ? -1 : 1;
	return a->claim->id < b->claim->id ? -1 : a->claim->id > b->claim->id;
}

/* Give one unit more to the largest fractions; to none, without memory. */
static void round_up(struct claim *claims, size_t count, const long double *fraction, uint64_t left)
{
	struct remainder *remainders = left > 0 ? malloc(count * sizeof(*remainders)) : NULL;

	if (remainders == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		remainders[i] = (struct remainder){&claims[i], fraction[i]};
	qsort(remainders, count, sizeof(*remainders), by_fraction);
	for (size_t i = 0; i < count && left > 0; i++) {
		if (remainders[i].claim->target >= remainders[i].claim->wants)
			continue;
		remainders[i].claim->target++;
		left--;
	}
	free(remainders);
}

/* Divide the capacity by weight, where each claim wants more than it gets. */
static void divide(uint64_t capacity, uint64_t weights, struct claim *claims, size_t count)
{
	long double *fraction = calloc(count, sizeof(*fraction));
	uint64_t left = capacity;

	for (size_t i = 0; i < count; i++) {
		const wide product = (wide)capacity * claims[i].weight;

		claims[i].target = (uint64_t)(product / weights);
		left -= claims[i].target;
		if (fraction != NULL)
			fraction[i] = (long double)(uint64_t)(product % weights);
	}
	if (fraction != NULL)
		round_up(claims, count, fraction, left);
	free(fraction);
}

/* Claims are sorted by need. */
static void fill(uint64_t capacity, struct claim *claims, size_t count)
{
	uint64_t weights = 0;
	size_t i;

	for (i = 0; i < count; i++)
		weights += claims[i].weight;
	for (i = 0; i < count; i++) {
		if ((wide)claims[i].wants * weights > (wide)capacity * claims[i].weight)
			break;
		claims[i].target = claims[i].wants;
		capacity -= claims[i].wants;
		weights -= claims[i].weight;
	}
	if (i < count)
		divide(capacity, weights, claims + i, count - i);
}

/* What is left of all parts, and *lack, what they lack; both times the sum of weights. */
static long double surplus(uint64_t capacity, uint64_t weights, const struct claim *claims,
			   size_t count, long double *lack)
{
	long double extra = 0;

	*lack = 0;
	for (size_t i = 0; i < count; i++) {
		const wide part = (wide)capacity * claims[i].weight;
		const wide want = (wide)claims[i].wants * weights;

		if (want < part)
			extra += (long double)(part - want);
		else
			*lack += (long double)(want - part);
	}
	return extra;
}

static void proportion(uint64_t capacity, struct claim *claims, size_t count)
{
	long double *fraction = calloc(count, sizeof(*fraction)), lack, extra, exact;
	uint64_t weights = 0, left = capacity;

	for (size_t i = 0; i < count; i++)
		weights += claims[i].weight;
	extra = surplus(capacity, weights, claims, count, &lack);
	for (size_t i = 0; i < count; i++) {
		const wide part = (wide)capacity * claims[i].weight;
		const wide want = (wide)claims[i].wants * weights;

		exact = (long double)claims[i].wants;
		if (want > part)
			exact = ((long double)part + (long double)(want - part) * extra / lack) /
				(long double)weights;
		/* Rounding must not give away more than is left. */
		claims[i].target = exact < (long double)left ? (uint64_t)exact : left;
		if (claims[i].target > claims[i].wants)
			claims[i].target = claims[i].wants;
		left -= claims[i].target;
		if (fraction != NULL)
			fraction[i] = exact - (long double)claims[i].target;
	}
	if (fraction != NULL)
		round_up(claims, count, fraction, left);
	free(fraction);
}

static uint64_t wanted(const struct claim *claims, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum = sum < UINT64_MAX - claims[i].wants ? sum + claims[i].wants : UINT64_MAX;
	return sum;
}

static uint64_t allot_band(enum weir_allotment how, uint64_t capacity, struct claim *claims,
			   size_t count)
{
	uint64_t used = wanted(claims, count);

	if (used <= capacity) {
		for (size_t i = 0; i < count; i++)
			claims[i].target = claims[i].wants;
		return used;
	}
	if (how == WEIR_ALLOT_PROPORTIONAL)
		proportion(capacity, claims, count);
	else
		fill(capacity, claims, count);
	return capacity;
}

void allot(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count)
{
	size_t begin = 0, end;

	if (how == WEIR_ALLOT_STATIC || how == WEIR_ALLOT_NONE) {
		for (size_t i = 0; i < count; i++)
			claims[i].target = how == WEIR_ALLOT_NONE || claims[i].wants < capacity
						   ? claims[i].wants
						   : capacity;
		return;
	}
	qsort(claims, count, sizeof(*claims), by_priority);
	while (begin < count) {
		for (end = begin; end < count; end++)
			if (claims[end].priority != claims[begin].priority)
				break;
		capacity -= allot_band(how, capacity, claims + begin, end - begin);
		begin = end;
	}
}

/* What is left of the capacity once each member has its target. */
static uint64_t idle_of(uint64_t capacity, const struct claim *claims, size_t count)
{
	for (size_t i = 0; i < count && capacity > 0; i++)
		capacity -= claims[i].target < capacity ? claims[i].target : capacity;
	return capacity;
}

static void divide_headroom(uint64_t units, struct claim *claims, size_t count)
{
	wide weights = 0, wants = 0;
	uint64_t by_wants;

	for (size_t i = 0; i < count; i++) {
		weights += claims[i].weight;
		wants += claims[i].wants;
	}
	by_wants = wants > 0 ? units / 2 : 0;
	for (size_t i = 0; i < count; i++) {
		const wide by_weight = units - by_wants;

		claims[i].headroom = (uint64_t)(by_weight * claims[i].weight / weights);
		if (wants > 0)
			claims[i].headroom += (uint64_t)((wide)by_wants * claims[i].wants / wants);
	}
}

void allot_headroom(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count)
{
	if (how == WEIR_ALLOT_STATIC || how == WEIR_ALLOT_NONE) {
		for (size_t i = 0; i < count; i++)
			claims[i].headroom = idle_of(capacity, &claims[i], 1);
		return;
	}
	capacity = idle_of(capacity, claims, count);
	divide_headroom(capacity - capacity / 2, claims, count);
}

uint64_t allot_step(enum weir_allotment how, uint64_t capacity, uint64_t target, uint64_t others)
{
	const uint64_t left = capacity > others ? capacity - others : 0;

	if (how == WEIR_ALLOT_STATIC || how == WEIR_ALLOT_NONE)
		return target;
	return target < left ? target : left;
}
