/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "constants.h"
#include "use.h"

void use_add(struct use *u, const struct weir_window *w, double limit)
{
	const double samples = has_latency(w) ? w->count * each_of(w) : 0;
	const float at = (float)((double)w->end - u->since);

	u->ended += (float)(samples + w->others);
	u->busy += samples * w->rtt + w->others_time;
	u->full += fmaxf(0, at - u->at) * u->used;
	u->at = at;
	u->used = (float)fmin(1, w->inflight_now / limit);
}

/* The change of a rate, in ln X; 0 as long as it is not known. */
static double change_of(float *rate, double calls, double lasted)
{
	const double before = (double)*rate;

	if (calls <= 0 || lasted <= 0)
		return 0;
	*rate = (float)(calls / lasted);
	return before > 0 ? log((double)*rate / before) : 0;
}

/* The standard error of the change of a rate, in ln X, that two numbers of calls show. */
static double error_of(double calls, double before)
{
	return calls > 0 && before > 0 ? sqrt(1 / calls + 1 / before) : 0;
}

double use_change(struct use *u, double now)
{
	const double calls = (double)u->ended, error = error_of(calls, (double)u->before);
	const double in_all = change_of(&u->rate, calls, now - u->since);
	const double change = fmax(in_all, change_of(&u->rate_used, calls, (double)u->full));

	if (calls > 0)
		u->before = u->ended;
	return fmax(change, fmin(0, change + 2 * error));
}

double use_begin(struct use *u, double limit, double now)
{
	const double lasted = now - u->since, busy = u->busy;

	*u = (struct use){
		.since = now,
		.used = u->used,
		.load = u->load,
		.rate = u->rate,
		.rate_used = u->rate_used,
		.before = u->before,
	};
	if (lasted <= 0)
		return -1;
	u->load += (float)(RECENT * (fmin(1, busy / lasted / limit) - (double)u->load));
	return busy / lasted;
}
