/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gradient2: the limit times long-term latency over present latency, plus a queue.
 *
 * In the form of Netflix's Gradient2Limit (2018). With r the present latency and
 * r_long its exponential average over long_window windows,
 *
 *     g = clamp(tolerance * r_long / r, 0.5, 1)
 *     limit = (1 - smoothing) * limit + smoothing * (limit * g + queue)
 *
 * The average does not stay far too high for long: while it is above twice the present latency, as
 * after a long overload, it is reduced by a twentieth a window.
 *
 * What it cannot do: r_long comes to include the queue that the limit allows, so under lasting
 * overload the limit drifts to max. Set max accordingly.
 *
 * It differs from the original in one way: a latency of zero, which no clock
 * measures, is not used.
 *
 * Outcomes: the latency of successes, dropped and timed out calls counts alike; that
 * a call was dropped or timed out does not. Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct gradient2 {
	double limit;
	struct ema rtt_long; /* nanoseconds */
	double min, max, smoothing, long_window, tolerance;
	struct weir_scale queue;
};

static const char *gradient2_check(const void *config)
{
	const struct weir_gradient2_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static double gradient2_init(void *state, const void *config, double random)
{
	const struct weir_gradient2_config *c = config;
	struct gradient2 *g = state;

	(void)random;
	*g = (struct gradient2){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.smoothing = c->smoothing,
		.long_window = c->long_window,
		.tolerance = c->tolerance,
		.queue = c->queue,
	};
	return g->limit;
}

/* Add a latency to the average. Returns the average before any reduction for being too high. */
static double long_term(struct gradient2 *g, double rtt)
{
	double average;

	ema_add(&g->rtt_long, rtt, g->long_window);
	average = g->rtt_long.value;
	if (average / rtt > 2)
		g->rtt_long.value *= 0.95;
	return average;
}

static double gradient2_update(void *state, const struct weir_window *w)
{
	struct gradient2 *g = state;
	double average, gradient, next;

	if (!has_latency(w))
		return g->limit;

	average = long_term(g, w->rtt);
	if (mostly_unused(w, g->limit))
		return g->limit;

	gradient = clamp(g->tolerance * average / w->rtt, 0.5, 1);
	next = g->limit * gradient + scale_at(&g->queue, g->limit);
	next = g->limit * (1 - g->smoothing) + next * g->smoothing;
	g->limit = clamp(next, g->min, g->max);
	return g->limit;
}

static const char *const gradient2_numbers[] = {"estimate", "rtt_long", NULL};

static void gradient2_observe(const void *state, double *values)
{
	const struct gradient2 *g = state;

	values[0] = g->limit;
	values[1] = g->rtt_long.value;
}

#define OFFSET(field) offsetof(struct weir_gradient2_config, field)

static const struct weir_param gradient2_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "20", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "200", "highest limit"},
	{"smoothing", WEIR_PARAM_DOUBLE, OFFSET(smoothing), SMOOTHING_MIN, 1, "0.2",
	 "weight of the new value"},
	{"queue", WEIR_PARAM_SCALE, OFFSET(queue), 0, LIMIT_TOP, "const:4",
	 "calls that may wait at the backend"},
	{"long_window", WEIR_PARAM_U32, OFFSET(long_window), 1, 1e9, "600",
	 "windows that the long-term latency averages"},
	{"tolerance", WEIR_PARAM_DOUBLE, OFFSET(tolerance), 1, 100, "1.5",
	 "multiple of the long-term latency that is not yet overload"},
};

_Static_assert(sizeof(struct gradient2) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_gradient2 = {
	.size = sizeof(struct weir_limit_ops),
	.name = "gradient2",
	.about = "Follows long-term over present latency: for short overloads, and a known max.",
	.version = 1,
	.state_size = sizeof(struct gradient2),
	.config_size = sizeof(struct weir_gradient2_config),
	.params = gradient2_params,
	.param_count = sizeof(gradient2_params) / sizeof(gradient2_params[0]),
	.check = gradient2_check,
	.init = gradient2_init,
	.update = gradient2_update,
	.numbers = gradient2_numbers,
	.observe = gradient2_observe,
};
