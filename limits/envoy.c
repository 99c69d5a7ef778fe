/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Envoy: the limit times latency without load over present latency, plus the square root.
 *
 * In the form of the gradient controller of Envoy's adaptive concurrency filter
 * (source/extensions/filters/http/adaptive_concurrency). With r the median latency of a window
 * and r0 the one without load,
 *
 *     g = clamp(r0 * (1 + buffer) / r, 0.5, 2)
 *     n = limit * g
 *     limit = n + sqrt(n)
 *
 * so it settles where the root adds what g takes away: at about g = 1 - 1 / sqrt(limit).
 *
 * r0 is measured in probes; the first is at the start. The limit goes down to min until
 * probe_samples calls that began under it have ended, r0 is their median, and the limit returns to
 * its previous value. The next probe begins probe_interval later, or at once if five windows in a
 * row leave the limit at min.
 *
 * What it cannot do: leave the limit alone while it is not used; it grows to max while the backend
 * is idle, and a burst then meets no limit until the next window. A probe refuses calls however
 * well the backend does. Only its samples end it: where calls hang, min of them are an outage,
 * since a limit is updated only when calls end. probe_timeout bounds a probe that has few calls.
 *
 * It differs from the original in these ways:
 *   - a window closes with the first sample after its end, where the original has a timer;
 *   - a sample does not say which probe it began in. A window counts for a probe if its samples
 *     found no more in flight than the probe allows, or if none took longer than the probe was old
 *     when the window opened;
 *   - r0 is composed of the medians of the probe's windows, of the last PROBE_WINDOWS of them;
 *   - latencies are not rounded to microseconds;
 *   - a probe can have a timeout.
 *
 * Outcomes: the latency of successes, dropped and timed out calls counts alike; that a call was
 * dropped or timed out does not. (The original does not see the latency of a call that was reset.)
 * Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* Windows that a probe keeps: the default of probe_samples, so by default all of them. */
#define PROBE_WINDOWS 50

/* Windows in a row at min that mean that r0 is wrong; from Envoy. */
#define STUCK 5

struct probe_window {
	double rtt, count;
};

struct envoy {
	double limit;      /* whole */
	double deferred;   /* limit to return to after the probe; 0: there is no probe */
	double rtt_noload; /* r0, nanoseconds; 0: not known yet */
	double gradient;
	double at_min;    /* windows in a row that left the limit at min */
	double countdown; /* nanoseconds until the next probe */
	double probes;
	double age;     /* of the present probe, nanoseconds */
	double samples; /* of the present probe */
	double windows; /* that these samples came in */
	double min, max, buffer, probe_samples, probe_interval, probe_jitter, probe_timeout;
	double fixed; /* bool: r0 is configured, and there are no probes */
	struct probe_window seen[PROBE_WINDOWS];
};

static const char *envoy_check(const void *config)
{
	const struct weir_envoy_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static void begin_probe(struct envoy *e)
{
	e->deferred = e->limit;
	e->limit = e->min;
	e->at_min = 0;
	e->age = e->samples = e->windows = 0;
}

static double envoy_init(void *state, const void *config, double random)
{
	const struct weir_envoy_config *c = config;
	struct envoy *e = state;

	(void)random;
	*e = (struct envoy){
		.limit = c->initial,
		.rtt_noload = (double)c->rtt_noload,
		.min = c->min,
		.max = c->max,
		.buffer = c->buffer,
		.probe_samples = c->probe_samples,
		.probe_interval = (double)c->probe_interval,
		.probe_jitter = c->probe_jitter,
		.probe_timeout = (double)c->probe_timeout,
		.fixed = c->rtt_noload > 0,
	};
	if (e->fixed == 0)
		begin_probe(e);
	return e->limit;
}

/* Whether all calls of the window began in the probe, or cannot be distinguished from such. */
static bool began_in_probe(const struct envoy *e, const struct weir_window *w)
{
	return w->inflight_max <= fmax(e->min, w->limit) || w->rtt_max <= e->age;
}

static void remember(struct envoy *e, const struct weir_window *w)
{
	e->seen[(unsigned)fmod(e->windows, PROBE_WINDOWS)] = (struct probe_window){w->rtt,
										   w->count};
	e->samples += w->count;
	e->windows += 1;
}

/* Insertion sort: there are few windows, and one sort a probe. */
static void sort(struct probe_window *seen, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		const struct probe_window moved = seen[i];
		unsigned k = i;

		for (; k > 0 && seen[k - 1].rtt > moved.rtt; k--)
			seen[k] = seen[k - 1];
		seen[k] = moved;
	}
}

/*
 * Estimate the median of all samples from the medians of the windows: each median stands in the
 * middle of its window's samples, with linear interpolation between. Sorts e->seen.
 */
static double median_seen(struct envoy *e)
{
	const unsigned count = (unsigned)fmin(e->windows, PROBE_WINDOWS);
	double half = 0, below = 0, position = 0, last = 0;

	sort(e->seen, count);
	for (unsigned i = 0; i < count; i++)
		half += e->seen[i].count / 2;
	for (unsigned i = 0; i < count; i++) {
		const double rtt = e->seen[i].rtt, here = below + e->seen[i].count / 2;

		if (here >= half)
			return i == 0 ? rtt
				      : last + (rtt - last) * (half - position) / (here - position);
		below += e->seen[i].count;
		position = here;
		last = rtt;
	}
	return last;
}

static void end_probe(struct envoy *e, double random)
{
	if (e->samples > 0)
		e->rtt_noload = median_seen(e);
	e->limit = e->deferred;
	e->deferred = 0;
	e->countdown = e->probe_interval * (1 + e->probe_jitter * random);
	e->probes += 1;
}

static void probe(struct envoy *e, const struct weir_window *w)
{
	if (has_latency(w) && began_in_probe(e, w))
		remember(e, w);
	e->age += lasted(w);

	/* A probe does not time out while no latency is known at all. */
	if (e->samples >= e->probe_samples ||
	    (e->age >= e->probe_timeout && e->samples + e->rtt_noload > 0))
		end_probe(e, w->random);
}

static void follow_gradient(struct envoy *e, const struct weir_window *w)
{
	double next;

	e->gradient = clamp(e->rtt_noload * (1 + e->buffer) / w->rtt, 0.5, 2);
	next = e->limit * e->gradient;
	e->limit = clamp(trunc(next + sqrt(next)), e->min, e->max);
	e->at_min = e->limit <= e->min ? e->at_min + 1 : 0;
}

/* False only if the state was corrupted: it can come from a file or be shared with processes. */
static bool is_sound(const struct envoy *e)
{
	return e->windows >= 0 && e->windows < 0x1p53;
}

static double envoy_update(void *state, const struct weir_window *w)
{
	struct envoy *e = state;

	if (!is_sound(e))
		return w->limit;
	if (e->deferred > 0) {
		probe(e, w);
		return e->limit;
	}
	if (has_latency(w))
		follow_gradient(e, w);
	e->countdown -= lasted(w);
	if (e->fixed == 0 && (e->countdown <= 0 || e->at_min >= STUCK))
		begin_probe(e);
	return e->limit;
}

static const char *const envoy_numbers[] = {"estimate",  "rtt_noload", "gradient", "probing",
					    "countdown", "probes",     NULL};

static void envoy_observe(const void *state, double *values)
{
	const struct envoy *e = state;

	values[0] = e->limit;
	values[1] = e->rtt_noload;
	values[2] = e->gradient;
	values[3] = e->deferred > 0;
	values[4] = e->countdown;
	values[5] = e->probes;
}

#define OFFSET(field) offsetof(struct weir_envoy_config, field)

static const struct weir_param envoy_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "3",
	 "limit after the first probe"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "3",
	 "lowest limit, and the limit during a probe"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"buffer", WEIR_PARAM_DOUBLE, OFFSET(buffer), SMOOTHING_MIN, 100, "0.25",
	 "fraction by which latency may exceed the one without load"},
	{"probe_samples", WEIR_PARAM_U32, OFFSET(probe_samples), 1, 1e9, "50",
	 "samples that a probe takes"},
	{"probe_interval", WEIR_PARAM_DUR, OFFSET(probe_interval), 1, 1e18, "60s",
	 "shortest time between two probes"},
	{"probe_jitter", WEIR_PARAM_DOUBLE, OFFSET(probe_jitter), SMOOTHING_MIN, 1, "0.15",
	 "random addition to the interval, as a fraction of it"},
	{"probe_timeout", WEIR_PARAM_DUR, OFFSET(probe_timeout), 1, 1e18, "1000000000s",
	 "time after which a probe ends with the samples it has"},
	{"rtt_noload", WEIR_PARAM_DUR, OFFSET(rtt_noload), 0, 1e18, "0ns",
	 "latency without load, instead of probes; 0: measure it"},
};

/* Envoy has no default for its interval; all examples in its documentation use 100 ms. */
static const struct weir_sampling envoy_sampling = {
	.windowing = WEIR_WINDOW_TIME,
	.window_min = 100 * WEIR_MS,
	.window_max = 100 * WEIR_MS,
	.window_samples = 1,
	.sparse = WEIR_SPARSE_EXTEND,
	.rtt = WEIR_RTT_QUANTILE,
	.quantile = 0.5,
};

_Static_assert(sizeof(struct envoy) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_envoy = {
	.size = sizeof(struct weir_limit_ops),
	.name = "envoy",
	.about = "Envoy's: follows latency without load, measured in probes that refuse calls.",
	.version = 1,
	.state_size = sizeof(struct envoy),
	.config_size = sizeof(struct weir_envoy_config),
	.params = envoy_params,
	.param_count = sizeof(envoy_params) / sizeof(envoy_params[0]),
	.check = envoy_check,
	.init = envoy_init,
	.update = envoy_update,
	.numbers = envoy_numbers,
	.observe = envoy_observe,
	.sampling = &envoy_sampling,
};
