/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording of samples and closing of windows. sampler.h has the ledger.
 */

#include "lib/sample/sampler.h"

#include <math.h>
#include <string.h>

#include "lib/sample/take.h"

/*
 * A stripe's count and sum share a word, 20 bits and 44 bits, so that no window sees one without
 * the other. A thread that finds either of them half full puts the whole word aside and begins a
 * new one. If there is no slot left for it, after two million samples of one CPU in one window,
 * count and sum go into wide words of their own. Samples above WIDE_RTT (8.6 s) go there at once,
 * so that after half full it takes over a thousand threads, all between their addition and their
 * spill on one stripe, to overflow. What the wide words hold may be split, with the count in one
 * window and the sum in the next; it is never lost.
 */
#define SUM_BITS   44
#define SUM_MASK   ((UINT64_C(1) << SUM_BITS) - 1)
#define ONE_SAMPLE (UINT64_C(1) << SUM_BITS)
#define HALF_FULL  ((UINT64_C(1) << 63) | (UINT64_C(1) << (SUM_BITS - 1)))
#define WIDE_RTT   (UINT64_C(1) << 33)

/* A window with too few samples is checked again after 1/EXTENSION of its length. */
#define EXTENSION 4

/* Upper bound of latencies, in nanoseconds: 146 years. */
#define RTT_MAX (UINT64_C(1) << 62)

#define RELAXED memory_order_relaxed

void sampler_init(const struct sampling *s)
{
	/* The first sample opens the first window, and sets its length. */
	atomic_init(&s->sampler->due, DUE_AT_ONCE);
	atomic_init(&s->sampler->left, 0);
	s->sampler->start = 0;
	s->sampler->length = 0;
	s->sampler->rtt_smoothed = 0;
	s->sampler->cancelled = s->sampler->failed = s->sampler->counted = 0;
	thinning_init(s);
	if (s->lanes != NULL)
		pool_init(s->pool);
	for (uint32_t i = 0; i < s->config.stripes; i++) {
		memset(&s->stripes[i], 0, sizeof(s->stripes[i]));
		atomic_init(&s->stripes[i].min, UINT64_MAX);
		if (s->lanes != NULL)
			lane_init(&s->lanes[i]);
	}
}

/*
 * Samples in the stripe's open window. The words are read against the direction in which samples
 * move, from packed to where it spills: a sample on its way may be missed, but is never counted
 * twice.
 */
static uint64_t open_samples(const struct stripe *stripe)
{
	uint64_t count = atomic_load_explicit(&stripe->wide_count, memory_order_acquire);

	for (uint32_t k = 0; k < SPILLS; k++)
		count += atomic_load_explicit(&stripe->spilled[k], memory_order_acquire) >>
			 SUM_BITS;
	return count + (atomic_load_explicit(&stripe->packed, memory_order_acquire) >> SUM_BITS);
}

/* In the same order: a collected sample moves on from the window's words to the total. */
uint64_t sampler_samples(const struct sampling *s)
{
	uint64_t count = sampler_total(s, TOTAL_COLLECTED);

	for (uint32_t i = 0; i < s->config.stripes; i++)
		count += open_samples(&s->stripes[i]);
	return count;
}

uint64_t sampler_counted(const struct sampling *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->config.stripes; i++)
		sum += atomic_load_explicit(&s->stripes[i].counted, memory_order_acquire);
	return sum;
}

uint64_t sampler_ended(const struct sampling *s)
{
	return sampler_samples(s) + sampler_counted(s) + sampler_total(s, TOTAL_UNMEASURED) +
	       sampler_total(s, TOTAL_IGNORED) + sampler_total(s, TOTAL_CANCELLED) +
	       sampler_total(s, TOTAL_FAILED);
}

static void lower_to(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t old = atomic_load_explicit(word, RELAXED);

	while (value < old &&
	       !atomic_compare_exchange_weak_explicit(word, &old, value, RELAXED, RELAXED))
		;
}

static void raise_to(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t old = atomic_load_explicit(word, RELAXED);

	while (value > old &&
	       !atomic_compare_exchange_weak_explicit(word, &old, value, RELAXED, RELAXED))
		;
}

static void raise_to_32(_Atomic uint32_t *word, uint32_t value)
{
	uint32_t old = atomic_load_explicit(word, RELAXED);

	while (value > old &&
	       !atomic_compare_exchange_weak_explicit(word, &old, value, RELAXED, RELAXED))
		;
}

static void add_wide(struct stripe *stripe, uint64_t count, uint64_t sum)
{
	atomic_fetch_add_explicit(&stripe->wide_count, count, memory_order_release);
	atomic_fetch_add_explicit(&stripe->wide_sum, sum, RELAXED);
}

static void spill(struct stripe *stripe)
{
	uint64_t word = atomic_exchange_explicit(&stripe->packed, 0, memory_order_acquire);

	for (uint32_t i = 0; i < SPILLS; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong_explicit(&stripe->spilled[i], &none, word,
							    memory_order_release, RELAXED))
			return;
	}
	add_wide(stripe, word >> SUM_BITS, word & SUM_MASK);
}

/* The index of this sample in the stripe's window, from 0; or at least LOG_MAX. */
static uint64_t add_latency(struct stripe *stripe, uint64_t rtt)
{
	uint64_t before;

	if (UNLIKELY(rtt >= WIDE_RTT)) {
		add_wide(stripe, 1, rtt);
		return LOG_MAX;
	}
	before = atomic_fetch_add_explicit(&stripe->packed, ONE_SAMPLE + rtt, memory_order_release);
	if (UNLIKELY(((before + ONE_SAMPLE + rtt) & HALF_FULL) != 0))
		spill(stripe);
	return before >> SUM_BITS;
}

/* Whether a word was put aside, so that the count in packed began anew in this window. */
static bool began_anew(const struct stripe *stripe)
{
	return atomic_load_explicit(&stripe->spilled[0], RELAXED) != 0;
}

static void add_value(struct stripe *stripe, struct lane *lane, uint64_t rtt, uint64_t index)
{
	if (index < LOG_MAX && !began_anew(stripe))
		lane_log(lane, index, rtt);
	else
		lane_count(lane, rtt);
}

static enum total total_of(enum kind kind)
{
	return kind == DROPPED ? TOTAL_DROPPED : TOTAL_TIMED_OUT;
}

static void count_overload(struct stripe *stripe, enum kind kind)
{
	stripe_count(stripe, total_of(kind));
	atomic_fetch_add_explicit(kind == DROPPED ? &stripe->dropped : &stripe->timed_out, 1,
				  RELAXED);
}

static bool is_measured(const struct sampling *s, uint64_t rtt)
{
	return rtt > 0 && rtt >= s->config.rtt_threshold;
}

void sampler_note(const struct sampling *s, struct stripe *stripe, uint64_t time)
{
	atomic_fetch_add_explicit(&stripe->others, 1, RELAXED);
	atomic_fetch_add_explicit(&stripe->others_time, time, RELAXED);
	sampler_leave(s);
}

bool sampler_record(const struct sampling *s, struct stripe *stripe, uint64_t rtt,
		    uint32_t inflight, enum kind kind)
{
	const bool measured = is_measured(s, rtt);
	uint64_t index;

	/* First, so that a snapshot that has this call as a sample has it as a drop too. */
	if (UNLIKELY(kind != SERVED))
		count_overload(stripe, kind);
	if (kind != SERVED || measured)
		raise_to_32(&stripe->inflight_max, inflight);
	if (UNLIKELY(!measured)) {
		stripe_count(stripe, TOTAL_UNMEASURED);
		if (kind == SERVED)
			sampler_note(s, stripe, rtt);
		return kind != SERVED;
	}
	index = add_latency(stripe, rtt);
	lower_to(&stripe->min, rtt);
	raise_to(&stripe->max, rtt);
	if (s->lanes != NULL)
		add_value(stripe, &s->lanes[stripe - s->stripes], rtt, index);
	return true;
}

/* The sums of a window over all stripes. */
struct sums {
	uint64_t count, sum, min, max, dropped, timed_out, others, others_time;
	uint32_t inflight_max;
};

/* Read the stripes without changing them. */
static struct sums peek(const struct sampling *s)
{
	struct sums all = {.min = UINT64_MAX};

	for (uint32_t i = 0; i < s->config.stripes; i++) {
		const struct stripe *stripe = &s->stripes[i];
		uint64_t min = atomic_load_explicit(&stripe->min, RELAXED);

		all.count += open_samples(stripe);
		if (min < all.min)
			all.min = min;
	}
	return all;
}

/* Take count and sum out of a stripe. Returns how many of its samples may be in the log. */
static uint64_t take_sums(struct stripe *stripe, struct sums *all)
{
	uint64_t logged = began_anew(stripe) ? LOG_MAX : 0;
	uint64_t packed = take(&stripe->packed, 0);
	uint64_t count = packed >> SUM_BITS;

	logged += count;
	all->sum += packed & SUM_MASK;
	for (uint32_t k = 0; k < SPILLS; k++) {
		uint64_t word = take(&stripe->spilled[k], 0);

		count += word >> SUM_BITS;
		all->sum += word & SUM_MASK;
	}
	count += take(&stripe->wide_count, 0);
	all->sum += take(&stripe->wide_sum, 0);
	if (count > 0)
		stripe_collected(stripe, count);
	all->count += count;
	return logged;
}

/* Take everything out of the stripes. *known is the number of latencies known by value. */
static struct sums collect(const struct sampling *s, uint32_t *known)
{
	struct sums all = {.min = UINT64_MAX};

	*known = 0;
	if (s->lanes != NULL)
		pool_clear(s->pool);
	for (uint32_t i = 0; i < s->config.stripes; i++) {
		struct stripe *stripe = &s->stripes[i];
		uint64_t logged = take_sums(stripe, &all);
		uint64_t min = take(&stripe->min, UINT64_MAX);
		uint64_t max = take(&stripe->max, 0);
		uint32_t top = take_32(&stripe->inflight_max);

		all.dropped += take_32(&stripe->dropped);
		all.timed_out += take_32(&stripe->timed_out);
		all.others += take_32(&stripe->others);
		all.others_time += take(&stripe->others_time, 0);
		all.min = min < all.min ? min : all.min;
		all.max = max > all.max ? max : all.max;
		all.inflight_max = top > all.inflight_max ? top : all.inflight_max;
		if (s->lanes != NULL)
			pool_collect(s->pool, &s->lanes[i], logged, known);
	}
	return all;
}

/* A latency for a window, bounded even if the words it comes from are corrupt. */
static double shown(uint64_t rtt)
{
	return (double)(rtt < RTT_MAX ? rtt : RTT_MAX);
}

static double smoothed(const struct sampling *s, double rtt)
{
	struct sampler *sampler = s->sampler;
	const double weight = s->config.rtt_smoothing;
	double value = sampler->rtt_smoothed;

	if (rtt == 0 || weight == 1)
		return rtt;
	if (!(value > 0 && value <= (double)RTT_MAX))
		value = rtt;
	value += weight * (rtt - value);
	sampler->rtt_smoothed = value;
	return value;
}

static double statistic(const struct sampling *s, const struct weir_window *w, uint32_t known)
{
	switch ((enum weir_rtt)s->config.rtt) {
	case WEIR_RTT_MIN:
		return w->rtt_min;
	case WEIR_RTT_QUANTILE:
		return fmin(pool_quantile(s->pool, s->config.quantile, known), (double)RTT_MAX);
	case WEIR_RTT_DEFAULT:
	case WEIR_RTT_MEAN:
		break;
	}
	return w->rtt_mean;
}

static weir_dur length_for(const struct sampler_config *config, uint64_t rtt_min)
{
	if (rtt_min > config->window_max / 2)
		return config->window_max;
	return rtt_min * 2 < config->window_min ? config->window_min : rtt_min * 2;
}

/* Too few samples: extend the window. True: it has reached window_max and must be closed. */
static bool overdue(const struct sampling *s, weir_time now, const struct sums *sums)
{
	struct sampler *sampler = s->sampler;
	const struct sampler_config *config = &s->config;
	weir_dur age, rest, extension;

	if (sampler->length == 0 || (int64_t)(now - sampler->start) < 0) {
		sampler->start = now;
		sampler->length = length_for(config, sums->min);
		window_let_go(s, (now + sampler->length) << 1);
		return false;
	}
	age = now - sampler->start;
	if (age >= config->window_max)
		return true;
	rest = config->window_max - age;
	extension = sampler->length / EXTENSION;
	window_let_go(s, (now + (extension < rest ? extension : rest)) << 1);
	return false;
}

static void discard(const struct sampling *s, weir_time now)
{
	uint32_t known;
	struct sums sums = collect(s, &known);
	struct weir_window w;

	sampler_collect_queue(s, &w);
	s->sampler->counted = sampler_counted(s);
	s->sampler->length = length_for(&s->config, sums.min);
	sampler_open(s, now);
}

/* Whether the owned window is complete. If not, it has been extended or discarded, and let go. */
static bool complete(const struct sampling *s, weir_time now)
{
	const struct sampler_config *config = &s->config;
	struct sums sums;

	if (config->each_sample)
		return true;
	sums = peek(s);
	if (sums.count >= config->window_samples)
		return true;
	if (!config->discard)
		return overdue(s, now, &sums);
	discard(s, now);
	return false;
}

/* The window will be closed: set the length of the next one, and publish the owner in closing. */
static void close_as(const struct sampling *s, uint64_t rtt_min)
{
	s->sampler->length = length_for(&s->config, rtt_min);
	window_set_closing(s, window_thread());
}

/*
 * A window has no length if its start is not known, as that of the first, or if the clock has gone
 * back beyond it.
 */
static weir_time start_of(const struct sampler *sampler, weir_time now)
{
	const bool known = sampler->length > 0 && (int64_t)(now - sampler->start) > 0;

	return known ? sampler->start : now;
}

/*
 * The calls that a window's samples stand for. Each overload is in a window, so only samples that
 * were served stand for others. A window of time knows the number of these. A window of samples
 * does not, and takes the mean.
 */
static double calls_in(const struct sampling *s, const struct sums *sums, double each)
{
	const uint64_t overloads = sums->dropped + sums->timed_out;
	const uint64_t served = sums->count > overloads ? sums->count - overloads : 0;
	uint64_t before = s->sampler->counted;

	if (s->config.each_sample)
		return (double)overloads + (double)served * each;
	s->sampler->counted = sampler_counted(s);
	return (double)(overloads + served + (s->sampler->counted - before));
}

/* Calls that are no samples wait for the next window. */
static void put_back_others(const struct sampling *s, const struct sums *sums)
{
	atomic_fetch_add_explicit(&s->stripes->others, (uint32_t)sums->others, RELAXED);
	atomic_fetch_add_explicit(&s->stripes->others_time, sums->others_time, RELAXED);
	sampler_leave(s);
}

/*
 * Fill *w from the stripes. False: they are empty, and the window has been let go. bare: a call that is
 * no sample is enough.
 */
static bool close_all(const struct sampling *s, weir_time now, bool bare, struct weir_window *w)
{
	const double each = thinning_each(s) / (double)EACH_ONE;
	struct sampler *sampler = s->sampler;
	struct sums sums;
	uint32_t known;

	sums = collect(s, &known);
	if (sums.count + sums.dropped + sums.timed_out + (bare ? sums.others : 0) == 0) {
		if (sums.others > 0)
			put_back_others(s, &sums);
		sampler_open(s, now); /* the previous owner has collected the caller's sample */
		return false;
	}
	*w = (struct weir_window){
		.start = start_of(sampler, now),
		.end = now,
		.count = narrow(sums.count),
		.dropped = narrow(sums.dropped),
		.timed_out = narrow(sums.timed_out),
		.cancelled = narrow(sampler_total_since(s, TOTAL_CANCELLED, &sampler->cancelled)),
		.failed = narrow(sampler_total_since(s, TOTAL_FAILED, &sampler->failed)),
		.inflight_max = sums.inflight_max,
		.others = narrow((uint64_t)((double)sums.others * each)),
		.others_time = shown(sums.others_time) * each,
		.calls = calls_in(s, &sums, each),
	};
	sampler_collect_queue(s, w);
	if (sums.count > 0) {
		w->rtt_mean = shown(sums.sum / sums.count);
		w->rtt_min = sums.min == UINT64_MAX ? 0 : shown(sums.min);
		w->rtt_max = shown(sums.max);
		w->rtt = smoothed(s, statistic(s, w, known));
	}
	close_as(s, sums.min);
	return true;
}

bool sampler_close(const struct sampling *s, weir_time now, struct weir_window *w)
{
	return window_claim(s, now) && complete(s, now) && close_all(s, now, false, w);
}

/* Whether the stripes have anything for this window. Only the owner calls it. */
static bool take_left(struct sampler *sampler)
{
	return UNLIKELY(atomic_load_explicit(&sampler->left, RELAXED) != 0) &&
	       atomic_exchange_explicit(&sampler->left, 0, memory_order_acquire) != 0;
}

bool sampler_close_bare(const struct sampling *s, weir_time now, struct weir_window *w)
{
	if (!window_claim(s, now))
		return false;
	(void)take_left(s->sampler);
	return close_all(s, now, true, w);
}

/*
 * Fill *w with this one sample. The totals are counted as by record and collect. All fields are
 * named, because compilers clear the whole structure first if some are not, which costs time.
 */
static void close_one(const struct sampling *s, struct stripe *stripe, weir_time now,
		      const struct sample *sample, struct weir_window *w)
{
	struct sampler *sampler = s->sampler;
	const bool measured = is_measured(s, sample->rtt);
	const double rtt = measured ? (double)sample->rtt : 0;

	if (UNLIKELY(sample->kind != SERVED))
		stripe_count(stripe, total_of(sample->kind));
	if (LIKELY(measured))
		stripe_collected(stripe, 1);
	else
		stripe_count(stripe, TOTAL_UNMEASURED);
	*w = (struct weir_window){
		.start = start_of(sampler, now),
		.end = now,
		.count = measured,
		.dropped = sample->kind == DROPPED,
		.timed_out = sample->kind == TIMED_OUT,
		.cancelled = 0,
		.failed = 0,
		.inflight_max = sample->inflight,
		.limit = 0,
		.others = 0,
		.rtt = smoothed(s, rtt),
		.rtt_mean = rtt,
		.rtt_min = rtt,
		.rtt_max = rtt,
		.random = 0,
		.queued = 0,
		.inflight_now = 0,
		.queue_min = 0,
		.cpu = 0,
		.others_time = 0,
		.calls = sample->drawn && sample->kind == SERVED
				 ? thinning_each(s) / (double)EACH_ONE
				 : 1,
	};
	close_as(s, measured ? sample->rtt : UINT64_MAX);
}

static bool record(const struct sampling *s, struct stripe *stripe, const struct sample *sample)
{
	return sampler_record(s, stripe, sample->rtt, sample->inflight, sample->kind);
}

bool sampler_close_with(const struct sampling *s, struct stripe *stripe, weir_time now,
			const struct sample *sample, struct weir_window *w)
{
	if (UNLIKELY(sample->kind == SERVED && !is_measured(s, sample->rtt)))
		return record(s, stripe, sample);
	if (UNLIKELY(!window_claim(s, now))) {
		(void)record(s, stripe, sample);
		sampler_leave(s);
		return sampler_close(s, now, w);
	}
	if (UNLIKELY(take_left(s->sampler))) {
		(void)record(s, stripe, sample);
		return close_all(s, now, false, w);
	}
	close_one(s, stripe, now, sample, w);
	return true;
}
