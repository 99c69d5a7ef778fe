/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vegas: keep the queue at the backend between alpha and beta calls.
 *
 * After L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance
 * on a Global Internet", IEEE JSAC 13(8), 1995, in the form of Netflix's
 * VegasLimit. If a window of limit L shows latency r where an idle backend would
 * show r0, then L * r0 / r calls would have kept it as busy, and the rest,
 *
 *     q = L * (1 - r0 / r),
 *
 * waited in its queue.
 *
 * It differs from the paper in these ways:
 *   - alpha, beta and the steps grow with log10(L): a large limit tolerates, and
 *     needs, a longer queue;
 *   - it grows by beta at once while there is almost no queue, in place of a slow start;
 *   - r0 is discarded from time to time; otherwise the limit could not follow a backend
 *     that has become slower for good. A factor drawn at random each time keeps the
 *     members of a fleet from discarding it together.
 *
 * What it cannot do: distinguish a backend that has become slower from one that has a
 * queue at the moment it discards r0. A probe under lasting overload takes the queue for the
 * baseline, and the limit settles a little higher each time.
 *
 * Outcomes: a dropped or timed out call makes the limit shrink, used or not. Its
 * latency counts as any other; that of a timeout is only a lower bound, and counts too.
 * A window that sets r0, by a probe or by a new minimum, only sets r0: its drops are
 * ignored. Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct vegas {
	double limit;
	double rtt_noload; /* r0, nanoseconds; 0: not known yet */
	double jitter;     /* 0.5 to 1; random factor on the interval to the next probe */
	double age;        /* windows since the last probe */
	double probes;
	double max, smoothing, probe;
	struct weir_scale alpha, beta, threshold;
	struct weir_step increase, decrease;
};

static const char *vegas_check(const void *config)
{
	const struct weir_vegas_config *c = config;

	if (c->alpha.kind == c->beta.kind && c->alpha.k > c->beta.k)
		return "alpha is above beta";
	if (c->decrease.kind == WEIR_STEP_MUL ? c->decrease.by > 1 : c->decrease.by > 0)
		return "decrease does not decrease";
	if (c->increase.kind == WEIR_STEP_MUL ? c->increase.by < 1 : c->increase.by < 0)
		return "increase does not increase";
	return NULL;
}

static double jitter_from(double random)
{
	return 0.5 + random / 2;
}

static double vegas_init(void *state, const void *config, double random)
{
	const struct weir_vegas_config *c = config;
	struct vegas *v = state;

	/* One by one: assigning whole structs could copy padding into a state that is saved. */
	v->limit = c->initial;
	v->jitter = jitter_from(random);
	v->max = c->max;
	v->smoothing = c->smoothing;
	v->probe = c->probe;
	v->alpha = c->alpha;
	v->beta = c->beta;
	v->threshold = c->threshold;
	v->increase.kind = c->increase.kind;
	v->increase.by = c->increase.by;
	v->decrease.kind = c->decrease.kind;
	v->decrease.by = c->decrease.by;
	return v->limit;
}

/* Returns true if the window set r0, and must not be used otherwise. */
static bool set_baseline(struct vegas *v, const struct weir_window *w)
{
	v->age += 1;
	if (v->jitter * v->probe * v->limit <= v->age) {
		v->jitter = jitter_from(w->random);
		v->age = 0;
		v->probes += 1;
		v->rtt_noload = w->rtt;
		return true;
	}
	if (v->rtt_noload == 0 || w->rtt < v->rtt_noload) {
		v->rtt_noload = w->rtt;
		return true;
	}
	return false;
}

/* Compute the target, before bounds and smoothing. Returns false if the limit should stay. */
static bool vegas_target(const struct vegas *v, const struct weir_window *w, double *target)
{
	double queue;

	if (overloads(w) > 0) {
		*target = step_from(&v->decrease, v->limit);
		return true;
	}
	if (mostly_unused(w, v->limit))
		return false;

	queue = ceil(v->limit * (1 - v->rtt_noload / w->rtt));
	if (queue <= scale_at(&v->threshold, v->limit))
		*target = v->limit + scale_at(&v->beta, v->limit);
	else if (queue < scale_at(&v->alpha, v->limit))
		*target = step_from(&v->increase, v->limit);
	else if (queue > scale_at(&v->beta, v->limit))
		*target = step_from(&v->decrease, v->limit);
	else
		return false;
	return true;
}

static double vegas_update(void *state, const struct weir_window *w)
{
	struct vegas *v = state;
	double target;

	if (has_latency(w) ? set_baseline(v, w) : overloads(w) == 0)
		return v->limit;
	if (!vegas_target(v, w, &target))
		return v->limit;

	target = clamp(target, 1, v->max);
	v->limit = (1 - v->smoothing) * v->limit + v->smoothing * target;
	return v->limit;
}

static const char *const vegas_numbers[] = {"estimate", "rtt_noload", "jitter", "probes", NULL};

static void vegas_observe(const void *state, double *values)
{
	const struct vegas *v = state;

	values[0] = v->limit;
	values[1] = v->rtt_noload;
	values[2] = v->jitter;
	values[3] = v->probes;
}

#define OFFSET(field) offsetof(struct weir_vegas_config, field)

static const struct weir_param vegas_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"smoothing", WEIR_PARAM_DOUBLE, OFFSET(smoothing), SMOOTHING_MIN, 1, "1",
	 "weight of the new value"},
	{"alpha", WEIR_PARAM_SCALE, OFFSET(alpha), 0, LIMIT_TOP, "log10:3",
	 "queue below which the limit grows"},
	{"beta", WEIR_PARAM_SCALE, OFFSET(beta), 0, LIMIT_TOP, "log10:6",
	 "queue above which it shrinks"},
	{"threshold", WEIR_PARAM_SCALE, OFFSET(threshold), 0, LIMIT_TOP, "log10:1",
	 "queue up to which it grows by beta at once"},
	{"increase", WEIR_PARAM_STEP, OFFSET(increase), -LIMIT_TOP, LIMIT_TOP, "add_log10:1",
	 "step up"},
	{"decrease", WEIR_PARAM_STEP, OFFSET(decrease), -LIMIT_TOP, LIMIT_TOP, "sub_log10:1",
	 "step down"},
	{"probe", WEIR_PARAM_U32, OFFSET(probe), 1, LIMIT_TOP, "30",
	 "windows between two probes of the lowest latency, for each call of limit"},
};

_Static_assert(sizeof(struct vegas) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_vegas = {
	.size = sizeof(struct weir_limit_ops),
	.name = "vegas",
	.about = "Keeps a short queue at the backend: where its latency without load is steady.",
	.version = 1,
	.state_size = sizeof(struct vegas),
	.config_size = sizeof(struct weir_vegas_config),
	.params = vegas_params,
	.param_count = sizeof(vegas_params) / sizeof(vegas_params[0]),
	.check = vegas_check,
	.init = vegas_init,
	.update = vegas_update,
	.numbers = vegas_numbers,
	.observe = vegas_observe,
};
