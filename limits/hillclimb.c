/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hill climbing: move the limit up and down on purpose, and go where the throughput follows.
 *
 * After the .NET thread pool (J. Hellerstein, V. Morrison, E. Eilebrecht, "Optimizing Concurrency
 * Levels in the .NET ThreadPool", FeBID 2008; PortableThreadPool.HillClimbing). The limit is a
 * square wave on top of a control setting: half a period at the setting, half a period above it.
 * Samples of limit and throughput are kept for some periods, and Goertzel's algorithm finds the
 * component of each at the wave's frequency, W and T, as fractions of their means. The components
 * of the throughput at the neighbouring frequencies are noise. Then
 *
 *     ratio = Re(T / W) - bias,  confidence = |W| / noise / snr,
 *     move = sign * |clamp(ratio, -1, 1) * clamp(confidence, 0, 1)|^gain_exponent * change * time
 *
 * with change in calls a second and a bound on each move. The wave is made higher where there is
 * noise, up to wave_max. Latencies are not compared: nothing drifts, and no queue is learned.
 *
 * A sample lasts for a random time from sample_min to sample_max, drawn at each change of the
 * limit, and longer until it has enough calls to measure the limit by:
 * (limit - 1) / calls < sample_error. At the minimum, where more calls reduce throughput, it lasts
 * up to ten times as long.
 *
 * It differs from the original in these ways:
 *   - a sample without any call waits for one;
 *   - the time of a sample that was too short continues in the next window;
 *   - the processors hold it back only if there is a CPU gauge.
 *
 * What it cannot do, and neither can the original: it moves by at most change_per_second, 4 calls,
 * and usually by much less, so it does not follow a load that changes in seconds. It does not know
 * whether the limit was used: without load the throughput does not follow, so the limit sinks, by
 * at most a tenth a second, until calls are refused. A thread pool has a queue for them, and a
 * program that uses this limit should have one too: weir_config.queue. Calls that differ much are
 * noise, and the limit then stays where it is.
 *
 * Outcomes: a call that ended with a latency, dropped or timed out too, counts as done.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* Most samples kept, period times history: what fits in the state. */
#define SAMPLES_MAX 64

#define PI 3.14159265358979323846

struct hillclimb {
	double limit;   /* the last answer, whole */
	double control; /* control setting: the base of the wave */
	double noise;   /* smoothed, as a fraction of the throughput */
	double ratio, confidence;
	double elapsed;   /* time in the present sample, nanoseconds */
	double completed; /* calls in the present sample */
	double interval;  /* length of the present sample, nanoseconds */
	double drawn;     /* its random length, before any extension, nanoseconds */
	uint64_t total;   /* samples so far */
	uint32_t period;
	uint32_t kept; /* length of the rings, samples */
	double min, max, bias, snr, magnitude, wave_max;
	double change_per_second, change_per_sample, sample_min, sample_max;
	double sample_error, error_smoothing, gain_exponent, cpu;
	double throughput[SAMPLES_MAX]; /* calls a second */
	double level[SAMPLES_MAX];      /* the limit */
};

/* The component of a series at one frequency: a complex number. */
struct wave {
	double re, im;
};

static const char *hillclimb_check(const void *config)
{
	const struct weir_hillclimb_config *c = config;

	if (c->min > c->max)
		return "min is above max";
	if (c->sample_min > c->sample_max)
		return "sample_min is above sample_max";
	if (c->period % 2 != 0)
		return "period is odd";
	if (c->period * c->history > SAMPLES_MAX)
		return "period times history is above 64";
	return NULL;
}

static void draw_interval(struct hillclimb *h, double random)
{
	h->drawn = h->sample_min + random * (h->sample_max - h->sample_min);
	h->interval = h->drawn;
}

static double hillclimb_init(void *state, const void *config, double random)
{
	const struct weir_hillclimb_config *c = config;
	struct hillclimb *h = state;

	*h = (struct hillclimb){
		.limit = c->initial,
		.control = c->initial,
		.period = c->period,
		.kept = c->period * c->history,
		.min = c->min,
		.max = c->max,
		.bias = c->bias,
		.snr = c->snr,
		.magnitude = c->magnitude,
		.wave_max = c->wave_max,
		.change_per_second = c->change_per_second,
		.change_per_sample = c->change_per_sample,
		.sample_min = (double)c->sample_min,
		.sample_max = (double)c->sample_max,
		.sample_error = c->sample_error,
		.error_smoothing = c->error_smoothing,
		.gain_exponent = c->gain_exponent,
		.cpu = c->cpu,
	};
	draw_interval(h, random);
	return h->limit;
}

/* The i-th of the latest `count` samples of a series, oldest first. */
static double sample_at(const struct hillclimb *h, const double *series, uint32_t count, uint32_t i)
{
	return series[(h->total - count + i) % h->kept];
}

static double mean_of(const struct hillclimb *h, const double *series, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += sample_at(h, series, count, i);
	return sum / count;
}

/* G. Goertzel, "An Algorithm for the Evaluation of Finite Trigonometric Series", 1958. */
static struct wave wave_of(const struct hillclimb *h, const double *series, uint32_t count,
			   double period)
{
	const double angle = 2 * PI / period;
	double s, s1 = 0, s2 = 0;

	for (uint32_t i = 0; i < count; i++) {
		s = sample_at(h, series, count, i) + 2 * cos(angle) * s1 - s2;
		s2 = s1;
		s1 = s;
	}
	return (struct wave){.re = (s1 - s2 * cos(angle)) / count, .im = s2 * sin(angle) / count};
}

static double size_of(struct wave wave)
{
	return hypot(wave.re, wave.im);
}

/*
 * Amplitude of the throughput at the neighbouring frequencies, as a fraction of its mean. There are
 * at least two periods.
 */
static double noise_beside(const struct hillclimb *h, uint32_t count, double mean)
{
	const double periods = (double)count / h->period;
	const struct wave more = wave_of(h, h->throughput, count, count / (periods + 1));
	const struct wave fewer = wave_of(h, h->throughput, count, count / (periods - 1));

	return fmax(size_of(more), size_of(fewer)) / mean;
}

/* Compute ratio and confidence from the samples. */
static void correlate(struct hillclimb *h)
{
	const uint64_t usable = h->total - 1 < h->kept ? h->total - 1 : h->kept;
	const uint32_t count = (uint32_t)(usable / h->period) * h->period;
	double mean, level, noise, square;
	struct wave t, w;

	h->ratio = h->confidence = 0;
	if (count <= h->period)
		return;
	mean = mean_of(h, h->throughput, count);
	level = mean_of(h, h->level, count);
	t = wave_of(h, h->throughput, count, h->period);
	w = wave_of(h, h->level, count, h->period);
	noise = noise_beside(h, count, mean);
	h->noise = h->noise == 0 ? noise : h->noise + h->error_smoothing * (noise - h->noise);

	square = w.re * w.re + w.im * w.im;
	if (square > 0)
		h->ratio = (t.re * w.re + t.im * w.im) / square * level / mean - h->bias;
	noise = fmax(noise, h->noise);
	h->confidence = noise > 0 ? size_of(w) / level / noise / h->snr : 1;
}

static double move_for(const struct hillclimb *h, const struct weir_window *w)
{
	const double gain = h->change_per_second * h->elapsed / 1e9;
	const double pull = clamp(h->ratio, -1, 1) * clamp(h->confidence, 0, 1);
	const double move = fmin(pow(fabs(pull), h->gain_exponent) * gain, h->change_per_sample);

	if (pull < 0)
		return -move;
	return w->cpu > h->cpu ? 0 : move;
}

/* The limit for the next sample: the control setting, plus the wave in every other half period. */
static double next_limit(struct hillclimb *h)
{
	const double wanted = floor(0.5 + h->control * h->noise * h->snr * h->magnitude * 2);
	const double wave = clamp(wanted, 1, h->wave_max);
	const bool high = h->total % h->period >= h->period / 2;

	h->control = clamp(h->control, h->min, fmax(h->min, h->max - wave));
	return clamp(floor(h->control + (high ? wave : 0)), h->min, h->max);
}

static bool enough(const struct hillclimb *h)
{
	if (h->elapsed < h->interval || h->completed == 0)
		return false;
	return h->total == 0 || h->limit - 1 < h->sample_error * h->completed;
}

/* False only if the state was corrupted: it can come from a file or be shared with processes. */
static bool is_sound(const struct hillclimb *h)
{
	return h->period >= 2 && h->kept >= h->period && h->kept <= SAMPLES_MAX;
}

static double hillclimb_update(void *state, const struct weir_window *w)
{
	struct hillclimb *h = state;
	double limit;

	if (!is_sound(h))
		return w->limit;
	/* The limiter has bounds of its own; keep the setting within them. */
	h->control = fmax(1, h->control + (w->limit - h->limit));
	h->limit = w->limit;
	h->elapsed += lasted(w);
	h->completed += w->count * each_of(w);
	if (!enough(h))
		return h->limit;

	h->throughput[h->total % h->kept] = h->completed / (h->elapsed / 1e9);
	h->level[h->total % h->kept] = h->limit;
	h->total++;
	correlate(h);
	h->control += move_for(h, w);
	limit = next_limit(h);

	if (limit != h->limit)
		draw_interval(h, w->random);
	h->interval = h->drawn;
	if (h->ratio < 0 && limit == h->min)
		h->interval *= 10 * fmin(-h->ratio, 1);
	h->limit = limit;
	h->elapsed = h->completed = 0;
	return h->limit;
}

static const char *const hillclimb_numbers[] = {"estimate", "ratio", "confidence", "noise", NULL};

static void hillclimb_observe(const void *state, double *values)
{
	const struct hillclimb *h = state;

	values[0] = h->control;
	values[1] = h->ratio;
	values[2] = h->confidence;
	values[3] = h->noise;
}

#define OFFSET(field) offsetof(struct weir_hillclimb_config, field)

static const struct weir_param hillclimb_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"period", WEIR_PARAM_U32, OFFSET(period), 2, 32, "4", "samples of a wave; even"},
	{"history", WEIR_PARAM_U32, OFFSET(history), 2, 32, "8", "waves that are kept"},
	{"bias", WEIR_PARAM_DOUBLE, OFFSET(bias), 1e-6, 1, "0.15",
	 "fraction by which throughput must follow the limit for it to grow"},
	{"snr", WEIR_PARAM_DOUBLE, OFFSET(snr), 0.1, 100, "3",
	 "ratio of wave to noise for full confidence"},
	{"magnitude", WEIR_PARAM_DOUBLE, OFFSET(magnitude), 0.01, 100, "1",
	 "factor on the height of the wave"},
	{"wave_max", WEIR_PARAM_U32, OFFSET(wave_max), 1, LIMIT_TOP, "20",
	 "greatest height of the wave, calls"},
	{"change_per_second", WEIR_PARAM_DOUBLE, OFFSET(change_per_second), 0.01, 1e6, "4",
	 "most calls that the limit moves by in a second"},
	{"change_per_sample", WEIR_PARAM_DOUBLE, OFFSET(change_per_sample), 0.01, 1e6, "20",
	 "most calls that it moves by at once"},
	{"sample_min", WEIR_PARAM_DUR, OFFSET(sample_min), 1e3, 60e9, "10ms", "shortest sample"},
	{"sample_max", WEIR_PARAM_DUR, OFFSET(sample_max), 1e3, 60e9, "200ms",
	 "longest sample, if it has enough calls"},
	{"sample_error", WEIR_PARAM_DOUBLE, OFFSET(sample_error), 1e-3, 1e6, "0.15",
	 "ratio of limit to calls below which a sample has enough calls"},
	{"error_smoothing", WEIR_PARAM_DOUBLE, OFFSET(error_smoothing), SMOOTHING_MIN, 1, "0.01",
	 "weight of the noise of a new sample"},
	{"gain_exponent", WEIR_PARAM_DOUBLE, OFFSET(gain_exponent), 0.5, 4, "2",
	 "exponent on moves: above 1, small moves become smaller"},
	{"cpu", WEIR_PARAM_DOUBLE, OFFSET(cpu), 0.01, 1, "0.95",
	 "CPU use, 0 to 1, above which it does not grow"},
};

_Static_assert(sizeof(struct hillclimb) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling hillclimb_sampling = {
	.window_min = 10 * WEIR_MS,
	.window_max = 10 * WEIR_MS,
	.window_samples = 1,
};

const struct weir_limit_ops weir_hillclimb = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_CPU,
	.name = "hillclimb",
	.about = "Varies and goes where throughput follows: for steady load with a queue in front.",
	.version = 1,
	.state_size = sizeof(struct hillclimb),
	.config_size = sizeof(struct weir_hillclimb_config),
	.params = hillclimb_params,
	.param_count = sizeof(hillclimb_params) / sizeof(hillclimb_params[0]),
	.check = hillclimb_check,
	.init = hillclimb_init,
	.update = hillclimb_update,
	.numbers = hillclimb_numbers,
	.observe = hillclimb_observe,
	.sampling = &hillclimb_sampling,
};
