/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "constants.h"
#include "level.h"

/* Square of a change of latency, over its variance, from which it is a shift: 4 deviations. */
#define SHIFT_SURE 16
/* Steepest slope that is no surprise; the flattest is 0. It is steeper than 1 in a collapse. */
#define SLOPE_MOST 2

double level_surprise(double x, double y)
{
	return y - clamp(y, fmin(0, SLOPE_MOST * x), fmax(0, SLOPE_MOST * x));
}

/* The variance of the difference between the level and the mean of the epoch. */
static double noise(const struct level *v, const struct level_epoch *e)
{
	return e->sigma2 * (1 / e->n + 1 / v->n) + e->scatter;
}

bool level_shifted(const struct level *v, const struct level_epoch *e)
{
	const double shift = level_surprise(e->x - v->x, e->part * (e->y - v->y));

	if (shift > 0 && e->x > v->x + BOLD && e->used)
		return false;
	return v->n > 0 && fabs(shift) > BOLD && shift * shift > SHIFT_SURE * noise(v, e);
}

/* Throughput that is lost, in ln X, although more calls were in flight; 0: none. */
static double loss(const struct level *v, const struct level_epoch *e, double y)
{
	const double x = e->x - v->x;

	return v->n > 0 && x > 0 && e->reached ? e->part * (y - v->y) - x : 0;
}

bool level_collapsed(const struct level *v, const struct level_epoch *e)
{
	const double lost = loss(v, e, e->y);

	return lost > RISE && lost * lost > SHIFT_SURE * e->sigma2 / EPOCH_WIDE;
}

bool level_lost(const struct level *v, const struct level_epoch *e)
{
	const double lost = loss(v, e, e->whole);

	return lost > ROOM_MOST && lost * lost > SHIFT_SURE * (noise(v, e) + e->uncertain);
}

void level_follow(struct level *v, const struct level_epoch *e)
{
	const double weight = e->n / (v->n + e->n);

	v->x += weight * (e->x - v->x);
	v->y += weight * (e->y - v->y);
	v->n = fmin(v->n + e->n, e->n / SLOW);
}
