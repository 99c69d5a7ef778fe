/*
 * The arithmetic of sharing: pure, and in whole units.
 */
#ifndef WEIR_FLEET_ALLOT_H
#define WEIR_FLEET_ALLOT_H

#include <weir/fleet.h>

/* A member that wants something. */
struct claim {
	uint64_t id; /* ties go to the lower one */
	uint64_t wants;
	uint32_t weight;
	int32_t priority;
	uint64_t target; /* what it is due, filled by allot() */
};

/*
 * What each is due of the capacity, once all have what they are due. Sorts the claims. Together
 * they are no more than the capacity, but with WEIR_ALLOT_STATIC and WEIR_ALLOT_NONE; and none is
 * more than it wants.
 */
void allot(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count);

/*
 * What a member may take of what it is due, while others hold so much: it grows only into what
 * nobody holds, and never below zero.
 */
uint64_t allot_step(enum weir_allotment how, uint64_t capacity, uint64_t target, uint64_t others);

#define DEMAND_SECONDS 10

/*
 * What is wanted a second, from what was asked for in the last seconds, the last one first: each
 * weighs one less than the one after it.
 */
uint64_t demand_estimate(const uint64_t seconds[DEMAND_SECONDS]);

#endif
