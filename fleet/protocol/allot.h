/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing a capacity among members: pure functions, in whole units.
 */
#ifndef WEIR_FLEET_ALLOT_H
#define WEIR_FLEET_ALLOT_H

#include <weir/fleet.h>

/* What a member asks for, and what it gets. */
struct claim {
	uint64_t id; /* the lower one wins a tie */
	uint64_t wants;
	uint32_t weight;
	int32_t priority;
	uint64_t target; /* units, filled by allot() */
};

/*
 * Set the target of each claim. Sorts the claims. No target is above what its member wants, and
 * their sum is at most the capacity, except with WEIR_ALLOT_STATIC and WEIR_ALLOT_NONE.
 */
void allot(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count);

/*
 * What a member may take of its target while others hold that many units: it grows only into units
 * that no other member holds.
 */
uint64_t allot_step(enum weir_allotment how, uint64_t capacity, uint64_t target, uint64_t others);

#define DEMAND_SECONDS 10

/*
 * Units wanted per second, from the demand in each of the last seconds, the last one first: a
 * weighted mean, in which each second weighs one less than the second after it.
 */
uint64_t demand_estimate(const uint64_t seconds[DEMAND_SECONDS]);

#endif
