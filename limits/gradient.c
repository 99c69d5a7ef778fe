/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gradient: the limit times lowest latency over present latency, plus a queue.
 *
 * In the form of Netflix's GradientLimit (2018). With r the present latency and
 * r0 the lowest known,
 *
 *     g = clamp(tolerance * r0 / r, 0.5, 1)
 *     limit = limit * g + queue
 *
 * so the limit grows by the queue while r is within the tolerance, and settles where g takes away
 * what the queue adds. From time to time the limit drops to its minimum, which drains the backend's
 * queue, and r0 is measured again.
 *
 * It differs from the original where that fails: max takes precedence over the queue, in a probe
 * too; a latency of zero, which no clock measures, is not used.
 *
 * Outcomes: a dropped or timed out call multiplies the limit by backoff, used or
 * not; its latency may become r0. Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct gradient {
	double limit;
	double rtt_noload; /* r0, nanoseconds; 0: not known yet */
	double countdown;  /* windows until the next probe */
	double probes;
	double min, max, smoothing, tolerance, backoff;
	double probe; /* fewest windows between two probes; 0: never probe */
	struct weir_scale queue;
};

static const char *gradient_check(const void *config)
{
	const struct weir_gradient_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

/* Random in [probe, 2 * probe), so that the members of a fleet do not probe together. */
static double countdown_from(const struct gradient *g, double random)
{
	return g->probe + floor(g->probe * random);
}

static double gradient_init(void *state, const void *config, double random)
{
	const struct weir_gradient_config *c = config;
	struct gradient *g = state;

	*g = (struct gradient){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.smoothing = c->smoothing,
		.tolerance = c->tolerance,
		.backoff = c->backoff,
		.probe = c->probe == WEIR_NEVER ? 0 : c->probe,
		.queue = c->queue,
	};
	g->countdown = countdown_from(g, random);
	return g->limit;
}

static bool probe_due(struct gradient *g, const struct weir_window *w)
{
	if (g->probe == 0)
		return false;
	if (g->countdown > 0) {
		g->countdown -= 1;
		return false;
	}
	g->countdown = countdown_from(g, w->random);
	g->probes += 1;
	return true;
}

static double gradient_update(void *state, const struct weir_window *w)
{
	struct gradient *g = state;
	double queue = scale_at(&g->queue, g->limit);
	double next;

	if (!has_latency(w) && overloads(w) == 0)
		return g->limit;

	if (probe_due(g, w)) {
		g->limit = clamp(queue, g->min, g->max);
		g->rtt_noload = 0;
		return g->limit;
	}
	if (has_latency(w) && (g->rtt_noload == 0 || w->rtt < g->rtt_noload))
		g->rtt_noload = w->rtt;

	if (overloads(w) > 0)
		next = g->limit * g->backoff;
	else if (mostly_unused(w, g->limit))
		return g->limit;
	else
		next = g->limit * clamp(g->tolerance * g->rtt_noload / w->rtt, 0.5, 1) + queue;

	if (next < g->limit)
		next = fmax(g->min, g->limit * (1 - g->smoothing) + g->smoothing * next);
	g->limit = fmin(g->max, fmax(queue, next));
	return g->limit;
}

static const char *const gradient_numbers[] = {"estimate", "rtt_noload", "countdown", "probes",
					       NULL};

static void gradient_observe(const void *state, double *values)
{
	const struct gradient *g = state;

	values[0] = g->limit;
	values[1] = g->rtt_noload;
	values[2] = g->countdown;
	values[3] = g->probes;
}

#define OFFSET(field) offsetof(struct weir_gradient_config, field)

static const struct weir_param gradient_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "50", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"smoothing", WEIR_PARAM_DOUBLE, OFFSET(smoothing), SMOOTHING_MIN, 1, "0.2",
	 "weight of the new value when the limit shrinks"},
	{"queue", WEIR_PARAM_SCALE, OFFSET(queue), 0, LIMIT_TOP, "sqrt:4",
	 "calls that may wait at the backend"},
	{"tolerance", WEIR_PARAM_DOUBLE, OFFSET(tolerance), 1, 100, "2",
	 "multiple of the lowest latency that is not yet overload"},
	{"probe", WEIR_PARAM_U32, OFFSET(probe), 1, UINT32_MAX, "1000",
	 "fewest windows between two probes of the lowest latency, or never"},
	{"backoff", WEIR_PARAM_DOUBLE, OFFSET(backoff), 0.5, 1, "0.9", "factor on a drop"},
};

_Static_assert(sizeof(struct gradient) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_gradient = {
	.size = sizeof(struct weir_limit_ops),
	.name = "gradient",
	.about = "Follows lowest over present latency, and probes: where short dips do no harm.",
	.version = 1,
	.state_size = sizeof(struct gradient),
	.config_size = sizeof(struct weir_gradient_config),
	.params = gradient_params,
	.param_count = sizeof(gradient_params) / sizeof(gradient_params[0]),
	.check = gradient_check,
	.init = gradient_init,
	.update = gradient_update,
	.numbers = gradient_numbers,
	.observe = gradient_observe,
};
