/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vector: one more a round trip while latency is at its mean, a tenth less well above it.
 *
 * In the form of the adaptive request concurrency of Vector's sinks
 * (src/sinks/util/adaptive_concurrency). It decides once a round trip, which lasts as long as the
 * average latency. With r the mean latency since the last decision, and m and s the mean and the
 * standard deviation of the earlier ones,
 *
 *     backpressure, or r >= m + deviations * s     limit = backoff * limit, rounded down
 *     else the limit was reached, and r <= m       limit + 1
 *
 * and then r is added to m and s, which are exponential averages.
 *
 * What it cannot do: remember what latency was before an overload. m follows r within a few round
 * trips, so a queue that has grown slowly looks normal; without backpressure the limit settles
 * where noise in r lets it, not where the queue begins. And it takes long to reach a large limit,
 * at one a round trip.
 *
 * It differs from the original in these ways:
 *   - the library's windows are gathered to round trips. A window lasts a millisecond, and so does
 *     a round trip at least;
 *   - the limit counts as reached when a call that found it so ends, not when it begins: after a
 *     step up, that is a round trip later;
 *   - the latency of calls that were dropped or timed out counts too, as it cannot be separated
 *     from that of the others;
 *   - backpressure that comes before any latency shrinks the limit.
 *
 * Outcomes: a dropped or timed out call is backpressure, whether the limit was used or not, and its
 * latency counts. Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct vector {
	double limit;        /* whole */
	double rtt_mean;     /* m, nanoseconds; 0: not known yet */
	double rtt_variance; /* s squared */
	double max, backoff, smoothing, deviations;
	struct gathered trip;
};

static double vector_init(void *state, const void *config, double random)
{
	const struct weir_vector_config *c = config;
	struct vector *v = state;

	(void)random;
	*v = (struct vector){
		.limit = c->initial,
		.max = c->max,
		.backoff = c->backoff,
		.smoothing = c->smoothing,
		.deviations = c->deviations,
	};
	return v->limit;
}

/* The limit after a round trip with mean latency rtt, which is 0 if no call had a latency. */
static double next_limit(const struct vector *v, double rtt)
{
	const struct gathered *t = &v->trip;
	const double slow = v->rtt_mean + v->deviations * sqrt(v->rtt_variance);
	const bool judged = rtt > 0 && v->rtt_mean > 0;

	if (t->overload == 0 && judged && rtt <= v->rtt_mean && t->inflight_max >= v->limit)
		return v->limit + 1;
	if (t->overload > 0 || (judged && rtt >= slow))
		return fmax(1, trunc(v->limit * v->backoff));
	return v->limit;
}

static void learn(struct vector *v, double rtt)
{
	const double difference = rtt - v->rtt_mean;

	if (v->rtt_mean == 0) {
		v->rtt_mean = rtt;
		return;
	}
	v->rtt_mean += v->smoothing * difference;
	v->rtt_variance = (1 - v->smoothing) *
			  (v->rtt_variance + v->smoothing * difference * difference);
}

static double vector_update(void *state, const struct weir_window *w)
{
	struct vector *v = state;
	double rtt;

	gather(&v->trip, w);
	if (v->trip.lasted < v->rtt_mean)
		return v->limit;

	rtt = v->trip.count > 0 ? v->trip.sum / v->trip.count : 0;
	v->limit = fmin(v->max, next_limit(v, rtt));
	if (rtt > 0)
		learn(v, rtt);
	v->trip = (struct gathered){.lasted = 0};
	return v->limit;
}

static const char *const vector_numbers[] = {"estimate", "rtt_mean", "rtt_deviation", NULL};

static void vector_observe(const void *state, double *values)
{
	const struct vector *v = state;

	values[0] = v->limit;
	values[1] = v->rtt_mean;
	values[2] = sqrt(v->rtt_variance);
}

#define OFFSET(field) offsetof(struct weir_vector_config, field)

static const struct weir_param vector_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "1", "limit at first"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "200", "highest limit"},
	{"backoff", WEIR_PARAM_DOUBLE, OFFSET(backoff), SMOOTHING_MIN, 0.999999999, "0.9",
	 "factor on backpressure"},
	{"smoothing", WEIR_PARAM_DOUBLE, OFFSET(smoothing), SMOOTHING_MIN, 1, "0.4",
	 "weight of the latency of the last round trip"},
	{"deviations", WEIR_PARAM_DOUBLE, OFFSET(deviations), SMOOTHING_MIN, 1e9, "2.5",
	 "standard deviations above the mean that count as backpressure"},
};

/* The resolution of a round trip. */
static const struct weir_sampling vector_sampling = {
	.windowing = WEIR_WINDOW_TIME,
	.window_min = 1 * WEIR_MS,
	.window_max = 1 * WEIR_MS,
	.window_samples = 1,
	.sparse = WEIR_SPARSE_EXTEND,
	.rtt = WEIR_RTT_MEAN,
};

_Static_assert(sizeof(struct vector) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_vector = {
	.size = sizeof(struct weir_limit_ops),
	.name = "vector",
	.about = "Vector's: one more a round trip, a tenth less on backpressure; for clients.",
	.version = 1,
	.state_size = sizeof(struct vector),
	.config_size = sizeof(struct weir_vector_config),
	.params = vector_params,
	.param_count = sizeof(vector_params) / sizeof(vector_params[0]),
	.init = vector_init,
	.update = vector_update,
	.numbers = vector_numbers,
	.observe = vector_observe,
	.sampling = &vector_sampling,
};
