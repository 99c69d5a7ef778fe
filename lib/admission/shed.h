/*
 * Shedding by priority: which calls may use all the room, and which get what others leave.
 *
 * After DAGOR (H. Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC
 * 2018): a histogram of recent arrivals turns "so large a part of them can be served" into
 * a level. Two things differ. How large a part is measured, not searched for: it is
 * the part of recent calls that was served. And calls below that level are not refused outright,
 * which would waste room whenever the estimate is a little off: they are
 * admitted while enough permits are left for those above them (trunk reservation, as
 * telephone networks do it). So there are three ranks:
 *   0  levels that can be served whole: they may use all the room;
 *   1  the level at which what can be served ends: it leaves a margin;
 *   2  levels below: they leave twice that. Some of their calls go as rank 0 all the same, so
 *      that no level starves.
 *
 * word      written by                           order    pairs with
 * --------  -----------------------------------  -------  ---------------------------
 * arrived,  a call: +1                           relaxed  nothing: numbers
 * refused
 * rank      steer: store                         relaxed  nothing: a number
 * due       steer: CAS, owner << 1 | busy        acquire  steer, at its end: what who
 *                                                         steered before has left
 * due       steer, at its end: store             release  steer
 *
 * Counters only grow; who steers remembers what they were. Steering is due some times a second,
 * and done by whoever closes a window or is refused for his rank: the latter, because a
 * limiter in which nothing ends closes none.
 */
#ifndef WEIR_LIB_SHED_H
#define WEIR_LIB_SHED_H

#include <stdbool.h>

#include "lib/base/layout.h"

#define LEVELS (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)

/* Calls of one partition on one CPU. */
struct arrivals {
	_Alignas(LINE) _Atomic uint32_t arrived[LEVELS];
	_Alignas(LINE) _Atomic uint32_t refused;
};

struct ranking {
	_Alignas(LINE) _Atomic uint32_t rank[LEVELS];

	/* Whoever steers: his. */
	_Alignas(LINE) uint32_t arrived[LEVELS];
	uint32_t refused; /* as they were at the last step */
	double served;    /* of all calls, so large a part can be */
};

struct steering {
	_Alignas(LINE) _Atomic uint64_t due; /* time << 1, or who is at it << 1 | 1; 0: at once */
};

/* With its arrays, which lie elsewhere in the same memory. */
struct shedding {
	struct steering *steering;
	struct arrivals *arrivals; /* a stripe and a partition each */
	struct ranking *rankings;
	uint32_t parts; /* 0: nothing is shed */
	uint32_t stripes;
	uint32_t floor; /* of 65536 calls of rank 2, so many go as rank 0 */
	uint32_t owner; /* this process's number (lib/base/layout.h) */
};

void shed_init(const struct shedding *s);

/* Count a call, and say its rank. */
uint32_t shed_rank(const struct shedding *s, uint32_t stripe, uint16_t part, int16_t priority);

/* A call was refused, or waited in vain. */
static inline void shed_refused(const struct shedding *s, uint32_t stripe, uint16_t part)
{
	atomic_fetch_add_explicit(&s->arrivals[stripe * s->parts + part].refused, 1,
				  memory_order_relaxed);
}

/* Let go of what a dead process was at. */
void shed_recover(const struct shedding *s, uint32_t dead);

/* Rank the levels anew, if it is time and nobody else is at it. */
void shed_steer(const struct shedding *s, weir_time now);

#endif
