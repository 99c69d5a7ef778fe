/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The demand of a share, measured from what the application counts: pure functions.
 */
#ifndef WEIR_FLEET_DEMAND_H
#define WEIR_FLEET_DEMAND_H

#include <weir/base.h>

#define DEMAND_SECONDS 10
#define DEMAND_TICKS   10 /* in a second */
#define DEMAND_TICK    (WEIR_S / DEMAND_TICKS)

struct demand {
	uint64_t ticks[DEMAND_SECONDS * DEMAND_TICKS]; /* units in each, the last one first */
	uint64_t seen;                                 /* units at the end of the last tick */
};

/* Spread what was counted since the last call evenly over the ticks that have passed. */
void demand_count(struct demand *demand, uint64_t counted, uint64_t ticks);

/* Units in the last second. */
uint64_t demand_last(const struct demand *demand);

/*
 * Units wanted per period: the greater of demand_estimate() and the mean of the last period, which
 * counts as one second at least and as DEMAND_SECONDS at most. So a rise is followed at once, and a
 * fall slowly.
 */
uint64_t demand_wanted(const struct demand *demand, weir_dur period);

/*
 * Units wanted per second, from the demand in each of the last seconds, the last one first: a
 * weighted mean, in which each second weighs one less than the second after it.
 */
uint64_t demand_estimate(const uint64_t seconds[DEMAND_SECONDS]);

#endif
