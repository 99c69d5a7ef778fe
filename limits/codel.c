/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CoDel: as many calls as keep the backend's own queue short.
 *
 * It uses the delays in the backend's queue that the program reports, weir_queued(), and needs no
 * latency without load to compare with. The detector is that of K. Nichols and V. Jacobson,
 * "Controlling Queue Delay", ACM Queue 10(5), 2012, as in folly's Codel: there is a standing queue
 * if even the shortest delay of an interval was above target. A burst is gone within the interval,
 * and then some call waited only briefly.
 *
 * CoDel drops from the queue itself; a limit needs a number. That number moves as Breakwater moves
 * its credits (I. Cho et al., "Overload Control for us-scale RPCs with Breakwater", OSDI 2020):
 * with d the shortest delay,
 *
 *     limit *= max(1 - decrease * (d - target) / target, 0.5)     if d > target
 *     limit += increase                                           else
 *
 * but it grows only if at least half of it was used in the interval. Breakwater adds a fraction of
 * the number of its clients each round trip, 10 us; here an interval adds one.
 *
 * What it cannot do: find the right target, which the user must set. And an interval without a
 * report carries no information, so without any reports the limit stays at its initial value.
 *
 * Outcomes: neither outcomes nor latencies are used. Samples only close windows; the calls in
 * flight show whether the limit was used.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* Lowest factor in one interval, however long the delay; from Breakwater. */
#define FACTOR_MIN 0.5

struct codel {
	double limit;
	double delay;   /* the shortest in the last interval, nanoseconds */
	double elapsed; /* time in the present interval, nanoseconds */
	double reports; /* in the present interval */
	double lowest;  /* the shortest of these, nanoseconds */
	double used;    /* bool: at least half the limit was used in it */
	double min, max, interval, target, increase, decrease;
};

static const char *codel_check(const void *config)
{
	const struct weir_codel_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static double codel_init(void *state, const void *config, double random)
{
	const struct weir_codel_config *c = config;
	struct codel *l = state;

	(void)random;
	*l = (struct codel){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.interval = (double)c->interval,
		.target = (double)c->target,
		.increase = c->increase,
		.decrease = c->decrease,
	};
	return l->limit;
}

static void add_window(struct codel *l, const struct weir_window *w)
{
	l->elapsed += lasted(w);
	if (w->queued > 0 && (l->reports == 0 || w->queue_min < l->lowest))
		l->lowest = w->queue_min;
	l->reports += w->queued;
	if (!mostly_unused(w, l->limit))
		l->used = 1;
}

static double next_limit(const struct codel *l)
{
	if (l->delay > l->target)
		return l->limit *
		       fmax(1 - l->decrease * (l->delay - l->target) / l->target, FACTOR_MIN);
	return l->used > 0 ? l->limit + l->increase : l->limit;
}

static double codel_update(void *state, const struct weir_window *w)
{
	struct codel *l = state;

	add_window(l, w);
	if (l->elapsed < l->interval)
		return l->limit;
	if (l->reports > 0) {
		l->delay = l->lowest;
		l->limit = clamp(next_limit(l), l->min, l->max);
	}
	l->elapsed = l->reports = l->lowest = l->used = 0;
	return l->limit;
}

static const char *const codel_numbers[] = {"estimate", "delay", NULL};

static void codel_observe(const void *state, double *values)
{
	const struct codel *l = state;

	values[0] = l->limit;
	values[1] = l->delay;
}

#define OFFSET(field) offsetof(struct weir_codel_config, field)

static const struct weir_param codel_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"interval", WEIR_PARAM_DUR, OFFSET(interval), 1e3, 60e9, "100ms",
	 "time over which the shortest delay is taken"},
	{"target", WEIR_PARAM_DUR, OFFSET(target), 1, 60e9, "5ms",
	 "shortest delay above which there is a standing queue"},
	{"increase", WEIR_PARAM_DOUBLE, OFFSET(increase), 1e-3, 1e6, "1", "step up, calls"},
	{"decrease", WEIR_PARAM_DOUBLE, OFFSET(decrease), 1e-3, 1, "0.02",
	 "fraction to shrink by for each multiple of target above it"},
};

static const struct weir_sampling codel_sampling = {
	.window_min = 100 * WEIR_MS,
	.window_max = 100 * WEIR_MS,
	.window_samples = 1,
};

const struct weir_limit_ops weir_codel = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_QUEUE,
	.name = "codel",
	.about =
		"Keeps the backend's queue short: where the backend reports how long calls waited.",
	.version = 1,
	.state_size = sizeof(struct codel),
	.config_size = sizeof(struct weir_codel_config),
	.params = codel_params,
	.param_count = sizeof(codel_params) / sizeof(codel_params[0]),
	.check = codel_check,
	.init = codel_init,
	.update = codel_update,
	.numbers = codel_numbers,
	.observe = codel_observe,
	.sampling = &codel_sampling,
};
