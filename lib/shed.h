/*
 * Shedding by priority: which calls may use all the room, and which get what is left.
 *
 * After DAGOR (H. Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC
 * 2018): a threshold on priority moves with the load, and a histogram of recent arrivals
 * turns "admit so large a part of them" into a level. Two things differ. The load is
 * read off what hurts, calls above the threshold that were refused, not off a
 * queueing time that has to be tuned. And calls below the threshold are not refused
 * outright: they may use the room that is left beside a margin (as in trunk reservation), so that a
 * threshold that is too high wastes nothing.
 *
 * word      written by                           order    pairs with
 * --------  -----------------------------------  -------  ---------------------------
 * arrived,  a call: +1                           relaxed  nothing: numbers
 * high,
 * refused
 * pass      steer, the window's owner: store     relaxed  nothing: a number
 *
 * Counters only grow; the window's owner remembers what they were.
 */
#ifndef WEIR_LIB_SHED_H
#define WEIR_LIB_SHED_H

#include <stdbool.h>

#include "lib/layout.h"

#define LEVELS (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)

/* Calls of one partition on one CPU. */
struct arrivals {
	_Alignas(LINE) _Atomic uint32_t arrived[LEVELS];
	_Alignas(LINE) _Atomic uint32_t high, refused; /* above the threshold, and of these */
};

/* The part of a level's calls that is above the threshold, in parts of WHOLE. */
#define WHOLE 65536u

struct threshold {
	_Alignas(LINE) _Atomic uint32_t pass[LEVELS];

	/* The window's owner's. */
	_Alignas(LINE) uint32_t arrived[LEVELS];
	uint32_t high, refused; /* as they were at the last step */
	double part;            /* of all calls that are to be above the threshold */
};

/* With its arrays, which lie elsewhere in the same memory. */
struct shedding {
	struct arrivals *arrivals; /* a stripe and a partition each */
	struct threshold *thresholds;
	uint32_t parts; /* 0: nothing is shed */
	uint32_t stripes;
	double floor; /* of the calls below the threshold, this part is above it all the same */
};

void shed_init(const struct shedding *s);

/* Count a call. True: it is below the threshold. */
bool shed_is_low(const struct shedding *s, uint32_t stripe, uint16_t part, int16_t priority);

/* A call above the threshold was refused. */
static inline void shed_refused(const struct shedding *s, uint32_t stripe, uint16_t part)
{
	atomic_fetch_add_explicit(&s->arrivals[stripe * s->parts + part].refused, 1,
				  memory_order_relaxed);
}

/* Move the thresholds. For the window's owner, some times a second. */
void shed_steer(const struct shedding *s);

#endif
