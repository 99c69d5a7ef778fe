/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failsafe: Vegas with recent over long-term latency, and a check that more in flight helps.
 *
 * In the form of failsafe-go's AdaptiveLimiter (adaptivelimiter/adaptivelimiter.go). A
 * window's latency goes through a median of five and an average over recent windows, r, and that
 * through an average over baseline windows, b. The queue is estimated as
 *
 *     q = L * (1 - b / r)
 *
 * and the limit shrinks where q is above beta, or where the limit was reached and the history of
 * windows shows that more in flight no longer helps:
 *   - throughput falls as more are in flight; or
 *   - it hardly grows, or hardly varies at all, while latency grows with what is in flight.
 * Otherwise it grows where q is below alpha. A step is log10(L). A limit above factor times what is
 * in flight is led back to it, one step a window.
 *
 * What it cannot do:
 *   - measure throughput: it uses calls in flight over latency instead, so its view of throughput
 *     is latency once more;
 *   - remember what latency was before an overload: b follows r within some ten windows, and the
 *     limit then drifts up to max;
 *   - move fast: it moves one step a window, and a window of 50 samples lasts at least a second.
 *
 * It differs from the original in these ways:
 *   - a window is closed after 30 s with fewer samples than 50, where the original waits for
 *     them indefinitely;
 *   - the limit counts as reached if a call of the window found it so, not if it is reached at the
 *     moment the window closes;
 *   - the factor does not decay with the limit, and what was in flight is not remembered beyond its
 *     window: both are options of the original, and off by default;
 *   - a latency of zero, which no clock measures, is not used.
 *
 * Outcomes: the latency of successes, dropped and timed out calls counts alike; that a call was
 * dropped or timed out does not. (The original leaves dropped calls out, and so can be blind.)
 * Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* Latencies that the median is taken over: it removes single slow windows; from failsafe-go. */
#define MEDIAN 5

/* Most windows that are kept: the default of history, and what fits in the state. */
#define HISTORY 50
/* Fewest windows for a correlation: fewer give mostly noise. */
#define HISTORY_MIN 10

/* Variation, as a fraction of the mean, below which a series correlates with nothing. */
#define STEADY 0.01

/* Correlation of throughput with calls in flight, below which throughput is at its maximum. */
#define WEAK 0.3
/* Variation of throughput, as a fraction of its mean, below which it is at its maximum. */
#define VARIES 0.2
/* Correlation of latency with calls in flight, above which additional calls only wait. */
#define STRONG 0.5

struct failsafe {
	double limit;
	struct ema recent, baseline; /* nanoseconds */
	double queue;
	double with_throughput, with_latency; /* correlations with calls in flight */
	double throughput_varies;             /* standard deviation over mean */
	double windows;
	double min, max, factor, recent_windows, baseline_windows, history;
	struct weir_scale alpha, beta;
	double raw[MEDIAN];       /* the last latencies, a ring */
	double inflight[HISTORY]; /* of the last windows, a ring */
	double latency[HISTORY];
};

static const char *failsafe_check(const void *config)
{
	const struct weir_failsafe_config *c = config;

	if (c->min > c->max)
		return "min is above max";
	if (c->alpha.kind == c->beta.kind && c->alpha.k > c->beta.k)
		return "alpha is above beta";
	return NULL;
}

static double failsafe_init(void *state, const void *config, double random)
{
	const struct weir_failsafe_config *c = config;
	struct failsafe *f = state;

	(void)random;
	*f = (struct failsafe){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.factor = c->factor,
		.recent_windows = c->recent,
		.baseline_windows = c->baseline,
		.history = c->history,
		.alpha = c->alpha,
		.beta = c->beta,
	};
	return f->limit;
}

/* The length of a ring of this size after `added` values. */
static unsigned kept(double added, double size)
{
	return (unsigned)fmin(added, size);
}

/* The median of the last latencies; the higher of the two middle ones. */
static double median_latency(const struct failsafe *f)
{
	const unsigned count = kept(f->windows, MEDIAN);
	double sorted[MEDIAN] = {0};

	for (unsigned i = 0; i < count; i++) {
		unsigned k = i;

		for (; k > 0 && sorted[k - 1] > f->raw[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = f->raw[i];
	}
	return sorted[count / 2];
}

static double mean_of(const double *series, unsigned count)
{
	double sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += series[i];
	return sum / count;
}

static double covariance(const double *a, const double *b, unsigned count)
{
	const double mean_a = mean_of(a, count), mean_b = mean_of(b, count);
	double sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += (a[i] - mean_a) * (b[i] - mean_b);
	return sum / count;
}

static double variation(const double *series, unsigned count)
{
	const double mean = mean_of(series, count);

	return mean > 0 ? sqrt(covariance(series, series, count)) / mean : 0;
}

static double correlation(const double *a, const double *b, unsigned count)
{
	if (variation(a, count) < STEADY || variation(b, count) < STEADY)
		return 0;
	return covariance(a, b, count) / sqrt(covariance(a, a, count) * covariance(b, b, count));
}

static void correlate(struct failsafe *f)
{
	const unsigned count = kept(f->windows, f->history);
	double throughput[HISTORY];

	if (count < HISTORY_MIN)
		return;
	for (unsigned i = 0; i < count; i++)
		throughput[i] = f->inflight[i] / f->latency[i];
	f->with_throughput = correlation(f->inflight, throughput, count);
	f->with_latency = correlation(f->inflight, f->latency, count);
	f->throughput_varies = variation(throughput, count);
}

static void learn(struct failsafe *f, const struct weir_window *w)
{
	const unsigned at = (unsigned)fmod(f->windows, f->history);

	f->raw[(unsigned)fmod(f->windows, MEDIAN)] = w->rtt;
	f->windows += 1;
	ema_add(&f->recent, median_latency(f), f->recent_windows);
	ema_add(&f->baseline, f->recent.value, f->baseline_windows);
	f->inflight[at] = w->inflight_max;
	f->latency[at] = f->recent.value;
	correlate(f);
	f->queue = ceil(f->limit * (1 - f->baseline.value / f->recent.value));
}

/* Whether the history shows that additional calls would only wait. */
static bool is_saturated(const struct failsafe *f)
{
	if (f->with_throughput < 0)
		return true;
	return f->with_latency > STRONG &&
	       (f->with_throughput < WEAK || f->throughput_varies < VARIES);
}

/* The next move in steps: 1, -1 or 0. */
static double direction(const struct failsafe *f, const struct weir_window *w)
{
	const bool reached = w->inflight_max >= trunc(f->limit);

	if (f->queue > scale_at(&f->beta, f->limit) || (reached && is_saturated(f)))
		return -1;
	return f->queue < scale_at(&f->alpha, f->limit) ? 1 : 0;
}

/* False only if the state was corrupted: it can come from a file or be shared with processes. */
static bool is_sound(const struct failsafe *f)
{
	return f->windows >= 0 && f->windows < 0x1p53 && f->history >= HISTORY_MIN &&
	       f->history <= HISTORY;
}

static double failsafe_update(void *state, const struct weir_window *w)
{
	struct failsafe *f = state;
	const double step = (double)whole_log10(whole_limit(f->limit));
	const double cap = f->factor * w->inflight_max;
	double next;

	if (!is_sound(f))
		return w->limit;
	if (!has_latency(w))
		return f->limit;

	learn(f, w);
	next = f->limit + step * direction(f, w);
	if (next > cap)
		next = fmax(cap, f->limit - step);
	f->limit = clamp(next, f->min, f->max);
	return f->limit;
}

static const char *const failsafe_numbers[] = {
	"estimate",        "rtt_recent",   "rtt_baseline",      "queue",
	"with_throughput", "with_latency", "throughput_varies", NULL};

static void failsafe_observe(const void *state, double *values)
{
	const struct failsafe *f = state;

	values[0] = f->limit;
	values[1] = f->recent.value;
	values[2] = f->baseline.value;
	values[3] = f->queue;
	values[4] = f->with_throughput;
	values[5] = f->with_latency;
	values[6] = f->throughput_varies;
}

#define OFFSET(field) offsetof(struct weir_failsafe_config, field)

static const struct weir_param failsafe_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "200", "highest limit"},
	{"factor", WEIR_PARAM_DOUBLE, OFFSET(factor), 1, 1e9, "5",
	 "multiple of the calls in flight that the limit is led back to"},
	{"alpha", WEIR_PARAM_SCALE, OFFSET(alpha), 0, LIMIT_TOP, "log10:3",
	 "queue below which the limit grows"},
	{"beta", WEIR_PARAM_SCALE, OFFSET(beta), 0, LIMIT_TOP, "log10:6",
	 "queue above which it shrinks"},
	{"recent", WEIR_PARAM_U32, OFFSET(recent), 1, 1e9, "5",
	 "windows that recent latency averages"},
	{"baseline", WEIR_PARAM_U32, OFFSET(baseline), 1, 1e9, "10",
	 "windows that long-term latency averages"},
	{"history", WEIR_PARAM_U32, OFFSET(history), HISTORY_MIN, HISTORY, "50",
	 "windows that correlations are taken over"},
};

static const struct weir_sampling failsafe_sampling = {
	.windowing = WEIR_WINDOW_TIME,
	.window_min = 1 * WEIR_S,
	.window_max = 30 * WEIR_S,
	.window_samples = 50,
	.sparse = WEIR_SPARSE_EXTEND,
	.rtt = WEIR_RTT_QUANTILE,
	.quantile = 0.9,
};

_Static_assert(sizeof(struct failsafe) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_failsafe = {
	.size = sizeof(struct weir_limit_ops),
	.name = "failsafe",
	.about = "failsafe-go's: recent over long-term latency, and whether more in flight helps.",
	.version = 1,
	.state_size = sizeof(struct failsafe),
	.config_size = sizeof(struct weir_failsafe_config),
	.params = failsafe_params,
	.param_count = sizeof(failsafe_params) / sizeof(failsafe_params[0]),
	.check = failsafe_check,
	.init = failsafe_init,
	.update = failsafe_update,
	.numbers = failsafe_numbers,
	.observe = failsafe_observe,
	.sampling = &failsafe_sampling,
};
