/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load shedding by priority: which calls may use all permits, and which must leave some free.
 *
 * After DAGOR (H. Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC 2018): a
 * histogram of recent arrivals turns the fraction of calls that can be served into a priority
 * level. Two things differ. The fraction is measured, not searched for: it is the fraction of
 * recent calls that was served. And calls below the level are not refused outright, which would
 * waste room whenever the estimate is a little off. They are admitted while enough permits are left
 * for those above them (trunk reservation, as in telephone networks). So there are three ranks:
 *   0  levels that can be served completely: they may use all permits;
 *   1  the level that can be served in part: it leaves a margin;
 *   2  levels below: they leave twice that. Some of their calls are admitted as rank 0, so
 *      that no level starves.
 *
 * word      written by                           order    pairs with
 * --------  -----------------------------------  -------  ---------------------------
 * arrived,  a call: +1                           relaxed  nothing: numbers
 * refused
 * rank      steer: store                         relaxed  nothing: a number
 * due       steer: CAS, owner << 1 | busy        acquire  steer, at its end: what the
 *                                                         last steer wrote
 * due       steer, at its end: store             release  steer
 *
 * Counters only grow; steer remembers their last values. Steering is due ten times per second. It
 * is done by the thread that closes a window, or by a call that is refused because of its rank: the
 * latter because no window closes in a limiter in which no calls end.
 */
#ifndef WEIR_LIB_SHED_H
#define WEIR_LIB_SHED_H

#include <stdbool.h>

#include "lib/base/layout.h"

#define LEVELS (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)

/* Counters of one partition in one stripe. */
struct arrivals {
	_Alignas(LINE) _Atomic uint32_t arrived[LEVELS];
	_Alignas(LINE) _Atomic uint32_t refused;
};

struct ranking {
	_Alignas(LINE) _Atomic uint32_t rank[LEVELS];

	/* Written by the thread that steers only. */
	_Alignas(LINE) uint32_t arrived[LEVELS];
	uint32_t refused; /* both as they were at the last step */
	double served;    /* fraction of all calls that can be served, 0 to 1 */
};

struct steering {
	_Alignas(LINE) _Atomic uint64_t due; /* time << 1, or owner << 1 | 1; 0: at once */
};

/* A process's view of load shedding: pointers to its arrays, and constants. */
struct shedding {
	struct steering *steering;
	struct arrivals *arrivals; /* one for each stripe and partition */
	struct ranking *rankings;
	uint32_t parts; /* partitions; 0: nothing is shed */
	uint32_t stripes;
	uint32_t floor; /* of 65536 calls of rank 2, the number admitted as rank 0 */
	uint32_t owner; /* this process's number (lib/base/layout.h) */
};

void shed_init(const struct shedding *s);

/* Count a call. Returns its rank. */
uint32_t shed_rank(const struct shedding *s, uint32_t stripe, uint16_t part, int16_t priority);

/* Count a call that was refused or left the queue without a permit. */
static inline void shed_refused(const struct shedding *s, uint32_t stripe, uint16_t part)
{
	atomic_fetch_add_explicit(&s->arrivals[stripe * s->parts + part].refused, 1,
				  memory_order_relaxed);
}

/* Release the steering that a dead process left unfinished. */
void shed_recover(const struct shedding *s, uint32_t dead);

/* Compute the ranks of all levels, if that is due and no other thread is doing it. */
void shed_steer(const struct shedding *s, weir_time now);

#endif
