/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "idle.h"

/* Samples that the idle fraction is averaged over: some tens show a few percent. */
#define SAMPLES 60

/* Weight of an epoch in how ln R rises with the calls in flight: fifty epochs. */
#define RISE_NEW 0.02
/* Variance that counts as a full rise: a limiter is alone until latency shows that it is not. */
#define RISE_PRIOR 0.1
/* Fraction of the rise below which others use the server too: at least as many calls as its own. */
#define COMPANY 0.5
/* Range above COMPANY in which idle time counts partly, so that noise does not switch it. */
#define ALONE 0.2

void idle_add(struct idle_sums *sums, double n, double inflight, double y, double knee, double rise)
{
	const double found = fmax(0, inflight - 1);

	sums->found += (float)(n * found);
	sums->idle += (float)(n * fmax(0, 1 - found / knee));
	sums->rise += (float)(n * rise);
	sums->rise2 += (float)(n * rise * rise);
	sums->rise_y += (float)(n * rise * y);
}

void idle_mean(struct idle *i, double inflight, double weight)
{
	i->inflight += (float)(weight * (inflight - (double)i->inflight));
}

/* From 0, others use the server as well, to 1: latency rises as the knee predicts. */
static double alone(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e)
{
	const double rise = (double)sums->rise, y = e->y / e->n;
	const double square = fmax(0, (double)sums->rise2 - rise * rise / e->n);
	const double product = ((double)sums->rise_y - rise * y) * e->part * 3 / y; /* with ln R */

	i->expected += (float)(RISE_NEW * (square / e->sigma2 - (double)i->expected));
	i->seen += (float)(RISE_NEW * (product / e->sigma2 - (double)i->seen));
	return clamp(
		(((double)i->seen + RISE_PRIOR) / ((double)i->expected + RISE_PRIOR) - COMPANY) /
			ALONE,
		0, 1);
}

/*
 * The fraction of the time that the knee was idle. Admitted calls see only the time in which the
 * limit is not reached. The share of the rest follows from the mean in flight over all time, and
 * the mean that calls found.
 */
static double idle_in(const struct idle *i, const struct idle_sums *sums,
		      const struct idle_epoch *e)
{
	const double found = (double)sums->found / e->n;
	const double full = ((double)i->inflight - found) / fmax(1e-3, e->limit - found);

	return (1 - clamp(full, 0, 1)) * (double)sums->idle / e->n;
}

void idle_update(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e)
{
	const double own = alone(i, sums, e), weight = e->n / (e->n + SAMPLES);
	double seen;

	i->bound = e->bound ? i->bound + 1 : 0;
	seen = i->bound >= 3 ? own * (double)i->pending : 0; /* the last one, and both beside it */
	i->fraction += (float)(weight * (seen - (double)i->fraction));
	i->pending = (float)idle_in(i, sums, e);
}
