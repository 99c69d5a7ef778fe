/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "constants.h"
#include "others.h"

void others_update(struct others *o, const struct weir_window *w)
{
	const double n = w->count * each_of(w);
	float weight;

	o->since += (float)w->others;
	o->time_since += (float)w->others_time;
	o->cancelled_since += (float)w->cancelled;
	if (n == 0)
		return;
	/* The first ones all have the same weight. */
	o->seen = fminf(o->seen + 1, (float)(1 / LASTING));
	weight = 1 / o->seen;
	o->rtt += (double)weight * (w->rtt - o->rtt);
	o->number += weight * ((float)(o->since / n) - o->number);
	o->time += weight * ((float)(o->time_since / n) - o->time);
	o->cancelled += weight * ((float)(o->cancelled_since / n) - o->cancelled);
	o->since = o->time_since = o->cancelled_since = 0;
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

/*
 * By Little's law, each cancelled call adds the rest of the time that it takes at the server. That counts
 * from a factor of e on: where callers cancel about as late as calls are served, it would be chance.
 */
double others_abandoned(const struct others *o, double rtt)
{
	const double each = o->number > 0 ? (double)o->time / (double)o->number : 0;
	const double rest = fmax(0, rtt / exp(1) - each);

	return log(1 + (double)o->cancelled * rest / (rtt + (double)o->time));
}

double others_cancelled(const struct others *o)
{
	return (double)o->cancelled / (1 + (double)o->number);
}

/* By Little's law, the mean latency of samples over that of all calls. */
double others_ending(const struct others *o)
{
	const double n = (double)o->number;

	return take_longer(o) ? (1 + n) * o->rtt / (o->rtt + (double)o->time) : 1;
}
