/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "constants.h"
#include "idle.h"

/* Samples that the idle fraction is averaged over: some tens show a few percent. */
#define SAMPLES 60

/* Fraction of the rise below which others use the server too: nearly as many calls as its own. */
#define COMPANY 0.6

void idle_add(struct idle_sums *sums, double n, double inflight, double y, double knee, double rise)
{
	const double found = fmax(0, inflight - 1);

	sums->found += (float)(n * found);
	sums->idle += (float)(n * fmax(0, 1 - found / knee));
	sums->rise += (float)(n * rise);
	sums->rise2 += (float)(n * rise * rise);
	sums->rise_y += (float)(n * rise * y);
}

static void follow(float *mean, double value, double weight)
{
	*mean += (float)(weight * (value - (double)*mean));
}

void idle_inflight(struct idle *i, double inflight)
{
	follow(&i->inflight, inflight, RECENT);
}

/* How far latency rises with what calls find in flight as the knee predicts: about 0 to 1. */
static double follows_calls(struct idle *i, const struct idle_sums *sums,
			    const struct idle_epoch *e)
{
	const double rise = (double)sums->rise, y = e->y / e->n;
	const double square = fmax(0, (double)sums->rise2 - rise * rise / e->n);
	const double product = ((double)sums->rise_y - rise * y) * e->part * 3 / y; /* with ln R */

	follow(&i->expected, square / e->sigma2, LASTING);
	follow(&i->seen, product / e->sigma2, LASTING);
	return ((double)i->seen + RISE_PRIOR) / ((double)i->expected + RISE_PRIOR);
}

/*
 * Whether latency rises as the knee predicts. In company it follows neither what calls find nor the
 * rounding.
 */
static bool alone(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e)
{
	const double part = follows_calls(i, sums, e);
	double expected;

	if (e->bound && e->rounding != 0) {
		follow(&i->rounding_expected, e->rounding * e->rise / e->noise, LASTING);
		follow(&i->rounding_seen, e->rounding * e->above / e->noise, LASTING);
	}
	expected = fmax(0, (double)i->rounding_expected) + RISE_PRIOR;
	return fmax(part, (double)i->rounding_seen / expected) > COMPANY;
}

/*
 * The fraction of the time that the knee was idle. Admitted calls see only the time in which the
 * limit is not reached. The share of the rest follows from the mean in flight over all time, and
 * the mean that calls found. The limit moves from epoch to epoch, so all three are of the same epochs.
 */
static double idle_in(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e)
{
	double full;

	follow(&i->limit, e->limit, RECENT);
	follow(&i->found, (double)sums->found / e->n, RECENT);
	full = (double)(i->inflight - i->found) / fmax(1e-3, (double)(i->limit - i->found));
	return (1 - clamp(full, 0, 1)) * (double)sums->idle / e->n;
}

void idle_update(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e)
{
	const bool own = alone(i, sums, e);
	double seen;

	i->bound = e->bound ? i->bound + 1 : 0;
	seen = own && i->bound >= 3 ? (double)i->pending : 0; /* the last one, and both beside it */
	i->weight = (float)(e->n / (e->n + SAMPLES));
	follow(&i->fraction, seen, (double)i->weight);
	i->pending = (float)idle_in(i, sums, e);
}
