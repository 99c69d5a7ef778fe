/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoch.h - the calls that were admitted in one interval of time, and what they show together.
 *
 * A call's latency belongs to the number in flight that the call found, whatever happened since.
 * So samples are gathered by when they were admitted. What an epoch shows is a line: how y = ln R
 * depends on x = ln n.
 */
#ifndef WEIR_LIMITS_EPOCH_H
#define WEIR_LIMITS_EPOCH_H

#include <stdint.h>

#include "dither.h"
#include "idle.h"

struct epoch {
	double start;         /* nanoseconds */
	double late;          /* nanoseconds; from here on it has lasted far longer than calls do */
	double knee;          /* ln of the knee when it began or last went on */
	float knee_calls;     /* the same in calls */
	float limit;          /* in force, calls */
	float rounding;       /* ln of it over the limit before it was rounded */
	uint32_t moved;       /* bool: the knee was far from that before */
	struct dither dither; /* .pair 0: none */
	double calls;         /* samples or not, but for those dropped */
	double n, x, y, xx, xy, yy; /* sums of those with a latency: ln n, cbrt R */
	float whole, wholes; /* sums of cbrt R and its square, but of the latencies as they were */
	float samples;       /* that stand for the calls */
	float reached;       /* those of n that found the limit reached */
	float lost;          /* those of n that timed out */
	struct idle_sums idle;
};

/*
 * Summary of an epoch: means, sums of squares around them, and the variance around the line. A
 * slope, its sums and its variance are those of all calls; the means are those of samples.
 */
struct line {
	double n, x, y, xx, xy, variance;
	double part;            /* of a slope, that all calls follow: others.h */
	double limit, evenness; /* queueing.h */
	double whole;           /* y of the latencies as they were */
	double uncertain;       /* variance of whole, by these latencies alone */
};

/* Add n samples that found x = ln n in flight and took y = cbrt R. */
void epoch_add(struct epoch *e, double n, double x, double y);

/* Summarise an epoch; y becomes ln R. part: of a slope, that all calls follow. */
struct line epoch_line(const struct epoch *e, double part);

#endif
