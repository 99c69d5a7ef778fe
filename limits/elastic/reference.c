/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "constants.h"
#include "posterior.h"
#include "reference.h"

/*
 * The reference point follows the slow means: at once where throughput has surely grown with n, or
 * the limit is not used; not at all where it is used and throughput has not grown, or the point would
 * follow the mistake. Where n falls below it, it follows slowly: at once would make the queue that other
 * limiters have built the reference whenever n falls a little, and not at all would hold the limit down by an
 * older latency after the work has become longer. It follows more slowly where others may be the cause: latency
 * has not fallen as in a queue of the limiter's own, and has not risen by more than others add at once.
 */
static void follow(struct reference *r, const struct reference_epoch *e, double lacks, double noise)
{
	const double x = e->x - r->x;
	const bool others = lacks >= 0 && lacks <= e->stride;
	const double weight = e->unused               ? 1
			      : x < 0                 ? (others ? LASTING : SLOW)
			      : lacks < -noise        ? 1
			      : lacks < 0 || !e->used ? SLOW
						      : 0;

	r->x += weight * x;
	r->y += weight * (e->y - r->y);
	r->n = 1 / ((1 - weight) * (1 - weight) / r->n + weight * weight * SLOW / e->n);
}

/*
 * Only calls that the limit admitted count: where the limit is not used, n grows by itself when calls
 * take longer.
 */
struct growth reference_check(struct reference *r, const struct reference_epoch *e)
{
	const double x = e->x - r->x, y = e->part * (e->y - r->y);
	const double lacks = y - (1 - e->target) * x;
	const double noise = sqrt(e->sigma2 * (SLOW / e->n + 1 / r->n));
	const bool grown = x > POSTERIOR_STEP && lacks > noise;

	follow(r, e, lacks, noise);
	return (struct growth){.x = x, .y = y, .lacks = grown ? lacks - noise : 0};
}
