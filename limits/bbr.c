/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BBR: while the processors are busy, the highest throughput times the lowest latency.
 *
 * After the limiter of kratos (aegis, ratelimit/bbr) and Sentinel's system rule, which are named
 * after TCP's BBR. A window of 10 s is kept in buckets. The most calls that ended in one bucket,
 * times the lowest of the buckets' mean latencies, would be in flight by Little's law if both
 * occurred together,
 *
 *     estimate = floor(pass_max * rtt_min / bucket + 0.5),
 *
 * with rtt_min rounded up to a multiple of resolution. The open bucket does not count. A call is
 * refused if it finds more than one in flight and more than the estimate, so one more than the
 * estimate is admitted. This holds only while the processors are busier than threshold, or if they
 * were, with the limit reached, less than hold ago. Otherwise there is no limit.
 *
 * It differs from the original in these ways:
 *   - it decides once a window, 100 ms by default, not for every call;
 *   - a window that is longer than a bucket, or lies across two, is spread over them evenly, as
 *     single calls are not seen;
 *   - refusals are not seen either: the limit having been reached stands for them;
 *   - calls that failed fast, were cancelled or ignored do not count as passed;
 *   - a window without calls gives no estimate, and then there is no limit.
 *
 * What it cannot do, and neither can the original: it never probes as TCP's BBR does. So a queue
 * that existed before the processors were seen to be busy is part of rtt_min, and the estimate is
 * many times too high; afterwards rtt_min stays that high for the length of the window. The
 * estimate is also too high when the most calls come from a burst and the latency from another
 * bucket. A latency below resolution counts as resolution. And a backend that waits, for a disk or
 * for other services, is never limited at all.
 *
 * Outcomes: successes, dropped and timed out calls count alike, by their latency.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* Buckets that the window is kept in: tenths of a second by default, as in the original. */
#define BUCKETS 100

struct bucket {
	double passed; /* calls that ended */
	double time;   /* sum of their latencies, nanoseconds */
};

struct bbr {
	double pass_max, rtt_min; /* over the buckets; 0: no call has passed */
	double estimate;
	double cpu;      /* CPU use in the last window, 0 to 1 */
	double limiting; /* bool: the estimate is in force */
	double rest;     /* what is left of hold, nanoseconds */
	double into;     /* elapsed part of the open bucket, nanoseconds */
	double max, threshold, length, hold, resolution;
	uint32_t open; /* index of the open bucket */
	struct bucket bucket[BUCKETS];
};

static double bbr_init(void *state, const void *config, double random)
{
	const struct weir_bbr_config *c = config;
	struct bbr *b = state;

	(void)random;
	b->max = c->max;
	b->threshold = c->threshold;
	b->length = floor((double)c->window / BUCKETS);
	b->hold = (double)c->hold;
	b->resolution = (double)c->resolution;
	return b->max;
}

static void begin_bucket(struct bbr *b)
{
	b->into = 0;
	b->open = (b->open + 1) % BUCKETS;
	b->bucket[b->open] = (struct bucket){.passed = 0};
}

static void add_calls(struct bbr *b, double calls, double rtt)
{
	b->bucket[b->open].passed += calls;
	b->bucket[b->open].time += calls * rtt;
}

/* Spread a window's calls over the buckets that it covers; older calls are lost. */
static void spread(struct bbr *b, const struct weir_window *w)
{
	double left = fmin(lasted(w), b->length * BUCKETS);
	const double calls = w->count * each_of(w);
	const double rate = calls / fmax(1, lasted(w));

	if (left == 0)
		add_calls(b, calls, w->rtt);
	while (left > 0) {
		const double part = fmin(left, b->length - b->into);

		add_calls(b, rate * part, w->rtt);
		left -= part;
		b->into += part;
		if (b->into >= b->length)
			begin_bucket(b);
	}
}

static void update_estimate(struct bbr *b)
{
	double pass_max = 0, rtt_min = INFINITY;

	for (uint32_t i = 0; i < BUCKETS; i++) {
		const struct bucket *bucket = &b->bucket[i];

		if (i == b->open || !(bucket->passed > 0))
			continue;
		pass_max = fmax(pass_max, bucket->passed);
		rtt_min = fmin(rtt_min, bucket->time / bucket->passed);
	}
	b->pass_max = pass_max > 0 ? fmax(1, pass_max) : 0;
	b->rtt_min = pass_max > 0 ? ceil(rtt_min / b->resolution) * b->resolution : 0;
	b->estimate = floor(b->pass_max * b->rtt_min / b->length + 0.5);
}

/* Whether the processors are busy, or were less than hold ago. */
static bool is_busy(struct bbr *b, const struct weir_window *w)
{
	b->cpu = w->cpu;
	if (b->cpu >= b->threshold) {
		if (w->inflight_max >= w->limit)
			b->rest = b->hold;
		return true;
	}
	b->rest = fmax(0, b->rest - lasted(w));
	return b->rest > 0;
}

/* False only if the state was corrupted: it can come from a file or be shared with processes. */
static bool is_sound(const struct bbr *b)
{
	return b->open < BUCKETS && b->into >= 0 && b->into <= b->length;
}

static double bbr_update(void *state, const struct weir_window *w)
{
	struct bbr *b = state;

	if (!is_sound(b))
		return w->limit;
	spread(b, w);
	update_estimate(b);
	b->limiting = is_busy(b, w) && b->pass_max > 0;
	return b->limiting > 0 ? clamp(fmax(1, b->estimate) + 1, 1, b->max) : b->max;
}

static const char *const bbr_numbers[] = {"estimate", "pass_max", "rtt_min",
					  "cpu",      "limiting", NULL};

static void bbr_observe(const void *state, double *values)
{
	const struct bbr *b = state;

	values[0] = b->estimate;
	values[1] = b->pass_max;
	values[2] = b->rtt_min;
	values[3] = b->cpu;
	values[4] = b->limiting;
}

#define OFFSET(field) offsetof(struct weir_bbr_config, field)

static const struct weir_param bbr_params[] = {
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "8388607",
	 "highest limit, and the limit while the processors are not busy"},
	{"threshold", WEIR_PARAM_DOUBLE, OFFSET(threshold), 0.01, 1, "0.8",
	 "CPU use, 0 to 1, from which the processors are busy"},
	{"window", WEIR_PARAM_DUR, OFFSET(window), 1e6, 3600e9, "10s",
	 "time over which the most calls and the lowest latency are taken"},
	{"hold", WEIR_PARAM_DUR, OFFSET(hold), 1, 3600e9, "1s",
	 "time that it goes on limiting when the processors are no longer busy"},
	{"resolution", WEIR_PARAM_DUR, OFFSET(resolution), 1, 60e9, "1ms",
	 "unit to whose multiples the lowest latency is rounded up"},
};

_Static_assert(sizeof(struct bbr) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling bbr_sampling = {
	.window_min = 100 * WEIR_MS,
	.window_max = 100 * WEIR_MS,
	.window_samples = 1,
};

const struct weir_limit_ops weir_bbr = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_CPU,
	.name = "bbr",
	.about = "Most calls passed times lowest latency, while CPUs are busy; needs a CPU gauge.",
	.version = 1,
	.state_size = sizeof(struct bbr),
	.config_size = sizeof(struct weir_bbr_config),
	.params = bbr_params,
	.param_count = sizeof(bbr_params) / sizeof(bbr_params[0]),
	.init = bbr_init,
	.update = bbr_update,
	.numbers = bbr_numbers,
	.observe = bbr_observe,
	.sampling = &bbr_sampling,
};
