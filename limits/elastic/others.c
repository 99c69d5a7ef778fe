/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "others.h"
#include "weights.h"

void others_update(struct others *o, const struct weir_window *w)
{
	const double n = w->count * each_of(w);
	float weight;

	o->since += (float)w->others;
	o->time_since += (float)w->others_time;
	if (n == 0)
		return;
	/* The first ones all have the same weight. */
	o->seen = fminf(o->seen + 1, (float)(1 / LASTING));
	weight = 1 / o->seen;
	o->rtt += (double)weight * (w->rtt - o->rtt);
	o->number += weight * ((float)(o->since / n) - o->number);
	o->time += weight * ((float)(o->time_since / n) - o->time);
	o->since = o->time_since = 0;
}

/* Whether others take longer than samples. */
static bool take_longer(const struct others *o)
{
	return o->rtt > 0 && o->number > 0 && (double)o->time > (double)o->number * o->rtt;
}

double others_part(const struct others *o)
{
	const double n = (double)o->number;

	return take_longer(o) ? (1 + n * n * o->rtt / (double)o->time) / (1 + n) : 1;
}

/* By Little's law, the mean latency of samples over that of all calls. */
double others_ending(const struct others *o)
{
	const double n = (double)o->number;

	return take_longer(o) ? (1 + n) * o->rtt / (o->rtt + (double)o->time) : 1;
}
