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
	uint64_t target;   /* units, filled by allot() */
	uint64_t headroom; /* units beyond them, filled by allot_headroom() */
};

/*
 * Set the target of each claim. Sorts the claims. No target is above what its member wants, and
 * their sum is at most the capacity, except with WEIR_ALLOT_STATIC and WEIR_ALLOT_NONE.
 */
void allot(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count);

/*
 * Set the headroom of each claim after allot(): what the member may hold beyond its target, so that
 * it can admit a burst before others know of it. That is half of the capacity that is idle: the
 * other half stays free, for members that grow or come. Half of the headroom is divided by weight,
 * half in proportion to wants. With WEIR_ALLOT_STATIC and WEIR_ALLOT_NONE it fills up the capacity.
 */
void allot_headroom(enum weir_allotment how, uint64_t capacity, struct claim *claims, size_t count);

/*
 * What a member may take of its target while others hold that many units: it grows only into units
 * that no other member holds.
 */
uint64_t allot_step(enum weir_allotment how, uint64_t capacity, uint64_t target, uint64_t others);

#endif
