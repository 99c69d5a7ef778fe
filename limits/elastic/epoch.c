/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "epoch.h"
#include "queueing.h"

void epoch_add(struct epoch *e, double n, double x, double y)
{
	e->n += n;
	e->x += n * x;
	e->y += n * y;
	e->xx += n * x * x;
	e->xy += n * x * y;
	e->yy += n * y * y;
}

struct line epoch_line(const struct epoch *e, double part)
{
	const double x = e->x / e->n, y = e->y / e->n;
	const double scale = part * 3 / y; /* d ln R = 3 d cbrt R / cbrt R */
	const double xx = fmax(0, e->xx - e->n * x * x);
	const double xy = (e->xy - e->n * x * y) * scale;
	const double yy = fmax(0, e->yy - e->n * y * y) * scale * scale;
	const double explained = xx > 1e-9 ? xy * xy / xx : 0;
	const double whole = (double)e->whole / e->n;
	const double wholes = fmax(0, (double)e->wholes / e->n - whole * whole);

	return (struct line){
		.n = e->n,
		.x = x,
		.y = 3 * log(y),
		.xx = xx,
		.xy = xy,
		.variance = fmax(0, yy - explained) / (e->n - 2) + 1e-4,
		.part = part,
		.limit = log((double)e->limit),
		.evenness = queueing_evenness(y, e->yy / e->n),
		.whole = 3 * log(whole),
		.uncertain = 9 / (whole * whole) * wholes / (e->n - 1),
	};
}
