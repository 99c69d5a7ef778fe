/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording of samples and closing of windows. sampler.h has the ledger.
 */

#include "lib/sample/sampler.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

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

/*
 * The number of a stripe's queue delays, and the lowest of them in nanoseconds. A delay above
 * QUEUE_DELAY_MAX (18 minutes) counts as that. The number stops at DELAYS_MAX (16 million).
 */
#define QUEUE_BITS      40
#define QUEUE_DELAY_MAX ((UINT64_C(1) << QUEUE_BITS) - 1)
#define ONE_DELAY       (UINT64_C(1) << QUEUE_BITS)
#define DELAYS_MAX      (UINT64_MAX >> QUEUE_BITS)

/* A window with too few samples is checked again after 1/EXTENSION of its length. */
#define EXTENSION 4

/* Upper bound of latencies, in nanoseconds: 146 years. */
#define RTT_MAX (UINT64_C(1) << 62)

#define RELAXED memory_order_relaxed

size_t pool_size(uint32_t stripes)
{
	return sizeof(struct pool) + (size_t)stripes * LOG_MAX * sizeof(uint64_t);
}

void sampler_init(const struct sampling *s)
{
	/* The first sample opens the first window, and sets its length. */
	atomic_init(&s->sampler->due, DUE_AT_ONCE);
	atomic_init(&s->sampler->left, 0);
	s->sampler->start = 0;
	s->sampler->length = 0;
	s->sampler->rtt_smoothed = 0;
	s->sampler->cancelled = s->sampler->failed = 0;
	if (s->lanes != NULL)
		memset(&s->pool->histogram, 0, sizeof(s->pool->histogram));
	for (uint32_t i = 0; i < s->config.stripes; i++) {
		memset(&s->stripes[i], 0, sizeof(s->stripes[i]));
		atomic_init(&s->stripes[i].min, UINT64_MAX);
		if (s->lanes != NULL)
			memset(&s->lanes[i], 0, sizeof(s->lanes[i]));
	}
}

uint64_t sampler_total(const struct sampling *s, enum total which)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->config.stripes; i++)
		sum += atomic_load_explicit(&s->stripes[i].total[which], memory_order_acquire);
	return sum;
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

static void add_to_bucket(struct lane *lane, uint32_t bucket)
{
	const uint64_t octave = octave_of(bucket);

	atomic_fetch_add_explicit(&lane->bucket[bucket], 1, RELAXED);
	if (UNLIKELY((atomic_load_explicit(&lane->octaves, RELAXED) & octave) == 0))
		atomic_fetch_or_explicit(&lane->octaves, octave, RELAXED);
}

/*
 * If a thread is preempted between its addition and its store while the window is closed, its value
 * goes into the next window's log, and the quantiles of two windows are off by one sample.
 */
static void add_value(struct stripe *stripe, struct lane *lane, uint64_t rtt, uint64_t index)
{
	if (index < LOG_MAX && !began_anew(stripe))
		atomic_store_explicit(&lane->log[index], rtt, RELAXED);
	else
		add_to_bucket(lane, bucket_of(rtt));
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
		return kind != SERVED;
	}
	index = add_latency(stripe, rtt);
	lower_to(&stripe->min, rtt);
	raise_to(&stripe->max, rtt);
	if (s->lanes != NULL)
		add_value(stripe, &s->lanes[stripe - s->stripes], rtt, index);
	return true;
}

/* The word after one more delay. */
static uint64_t queue_after(uint64_t word, uint64_t delay)
{
	uint64_t count = word >> QUEUE_BITS, min = word & QUEUE_DELAY_MAX;

	if (count == 0 || delay < min)
		min = delay;
	return (count < DELAYS_MAX ? count + 1 : count) << QUEUE_BITS | min;
}

void sampler_queued(const struct sampling *s, struct stripe *stripe, uint64_t delay)
{
	uint64_t word = atomic_load_explicit(&stripe->queue, RELAXED);

	if (delay > QUEUE_DELAY_MAX)
		delay = QUEUE_DELAY_MAX;
	while (!atomic_compare_exchange_weak_explicit(&stripe->queue, &word,
						      queue_after(word, delay), RELAXED, RELAXED))
		;
	sampler_leave(s);
}

/* The sums of a window over all stripes. */
struct sums {
	uint64_t count, sum, min, max, dropped, timed_out;
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

/*
 * Exchange the word with none, its empty value. Most words of most windows are empty, and a load
 * costs less than an exchange. Acquire is needed for words that count samples; other numbers would
 * do without.
 */
static uint64_t take(_Atomic uint64_t *word, uint64_t none)
{
	if (atomic_load_explicit(word, RELAXED) == none)
		return none;
	return atomic_exchange_explicit(word, none, memory_order_acquire);
}

static uint32_t take_32(_Atomic uint32_t *word)
{
	if (atomic_load_explicit(word, RELAXED) == 0)
		return 0;
	return atomic_exchange_explicit(word, 0, RELAXED);
}

/* The latencies of a service are in few octaves: the buckets of the others are not read. */
static void collect_buckets(struct lane *lane, struct histogram *histogram)
{
	uint64_t left = atomic_load_explicit(&lane->octaves, RELAXED) & ALL_OCTAVES;

	for (; left != 0; left &= left - 1) {
		const uint32_t first = first_bucket(left);

		for (uint32_t i = first; i < first + BUCKETS_PER_OCTAVE; i++) {
			const uint32_t count = take_32(&lane->bucket[i]);

			if (count > 0)
				histogram_add(histogram, i, count);
		}
	}
}

static void collect_lane(struct lane *lane, uint64_t logged, struct pool *pool, uint32_t *known)
{
	for (uint32_t i = 0; i < LOG_MAX && i < logged; i++) {
		uint64_t rtt = atomic_exchange_explicit(&lane->log[i], 0, RELAXED);

		if (rtt == 0)
			continue; /* counted, but not stored yet */
		pool->value[(*known)++] = rtt;
		histogram_add(&pool->histogram, bucket_of(rtt), 1);
	}
	collect_buckets(lane, &pool->histogram);
}

/* Only the window's owner writes this word, so a load and a store are enough. */
static void count_collected(struct stripe *stripe, uint64_t count)
{
	_Atomic uint64_t *total = &stripe->total[TOTAL_COLLECTED];

	atomic_store_explicit(total, atomic_load_explicit(total, RELAXED) + count,
			      memory_order_release);
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
		count_collected(stripe, count);
	all->count += count;
	return logged;
}

/* Take everything out of the stripes. *known is the number of latencies known by value. */
static struct sums collect(const struct sampling *s, uint32_t *known)
{
	struct sums all = {.min = UINT64_MAX};

	*known = 0;
	if (s->lanes != NULL)
		histogram_clear(&s->pool->histogram);
	for (uint32_t i = 0; i < s->config.stripes; i++) {
		struct stripe *stripe = &s->stripes[i];
		uint64_t logged = take_sums(stripe, &all);
		uint64_t min = take(&stripe->min, UINT64_MAX);
		uint64_t max = take(&stripe->max, 0);
		uint32_t top = take_32(&stripe->inflight_max);

		all.dropped += take_32(&stripe->dropped);
		all.timed_out += take_32(&stripe->timed_out);
		all.min = min < all.min ? min : all.min;
		all.max = max > all.max ? max : all.max;
		all.inflight_max = top > all.inflight_max ? top : all.inflight_max;
		if (s->lanes != NULL)
			collect_lane(&s->lanes[i], logged, s->pool, known);
	}
	return all;
}

static uint32_t narrow(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Take the queue delays out of the stripes. Mostly there are none, as few limits use them. */
static void collect_queue(const struct sampling *s, struct weir_window *w)
{
	uint64_t count = 0, min = QUEUE_DELAY_MAX;

	for (uint32_t i = 0; i < s->config.stripes; i++) {
		uint64_t word = take(&s->stripes[i].queue, 0);

		if (word == 0)
			continue;
		count += word >> QUEUE_BITS;
		min = (word & QUEUE_DELAY_MAX) < min ? word & QUEUE_DELAY_MAX : min;
	}
	w->queued = narrow(count);
	w->queue_min = count > 0 ? (double)min : 0;
}

/* The rank is quantile * count, rounded to nearest, ties up, as Netflix's; at least 1. */
static double quantile_of(const struct sampling *s, uint32_t known)
{
	const struct histogram *h = &s->pool->histogram;
	uint64_t rank;

	if (h->count == 0)
		return 0;
	rank = (uint64_t)floor((double)h->count * s->config.quantile + 0.5);
	return histogram_at_rank(h, rank > 0 ? rank : 1, s->pool->value, known);
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
		return fmin(quantile_of(s, known), (double)RTT_MAX);
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

/* This thread, as the value of closing. */
static uintptr_t self(void)
{
	return (uintptr_t)pthread_self();
}

static void set_closing(const struct sampling *s, uintptr_t thread)
{
	atomic_store_explicit(s->closing, thread, memory_order_release);
}

/* Called after due gave the window to this thread. False: another thread of the process owns it. */
static bool is_ours(const struct sampling *s)
{
	uintptr_t none = 0;

	return LIKELY(s->owner == PRIVATE) ||
	       atomic_compare_exchange_strong_explicit(s->closing, &none, self(),
						       memory_order_acquire, RELAXED);
}

/* The word due while that process owns the window. */
static uint64_t busy(uint32_t owner)
{
	return (uint64_t)owner << 1 | DUE_BUSY;
}

/* This ends the ownership of the window. */
static void set_due(struct sampler *sampler, uint64_t due)
{
	atomic_store_explicit(&sampler->due, due, memory_order_release);
}

static void let_go(const struct sampling *s, uint64_t due)
{
	set_closing(s, 0);
	set_due(s->sampler, due);
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
		let_go(s, (now + sampler->length) << 1);
		return false;
	}
	age = now - sampler->start;
	if (age >= config->window_max)
		return true;
	rest = config->window_max - age;
	extension = sampler->length / EXTENSION;
	let_go(s, (now + (extension < rest ? extension : rest)) << 1);
	return false;
}

static void discard(const struct sampling *s, weir_time now)
{
	uint32_t known;
	struct sums sums = collect(s, &known);
	struct weir_window w;

	collect_queue(s, &w);
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

/* How much a total has grown since the last window. */
static uint32_t since(const struct sampling *s, enum total which, uint64_t *seen)
{
	uint64_t total = sampler_total(s, which), before = *seen;

	*seen = total;
	return narrow(total - before);
}

/* Own the window, if it is due and no other thread owns it. */
static bool claim(const struct sampling *s, weir_time now)
{
	uint64_t due = atomic_load_explicit(&s->sampler->due, RELAXED);

	/* Acquire: what the previous owner wrote. */
	return is_due(due, now) &&
	       atomic_compare_exchange_strong_explicit(&s->sampler->due, &due, busy(s->owner),
						       memory_order_acquire, RELAXED) &&
	       is_ours(s);
}

/* The window will be closed: set the length of the next one, and publish the owner in closing. */
static void close_as(const struct sampling *s, uint64_t rtt_min)
{
	s->sampler->length = length_for(&s->config, rtt_min);
	set_closing(s, self());
}

/* The start of the first window is not known; it has no length. */
static weir_time start_of(const struct sampler *sampler, weir_time now)
{
	return sampler->length > 0 ? sampler->start : now;
}

/* Fill *w from the stripes. False: they are empty, and the window has been let go. */
static bool close_all(const struct sampling *s, weir_time now, struct weir_window *w)
{
	struct sampler *sampler = s->sampler;
	struct sums sums;
	uint32_t known;

	sums = collect(s, &known);
	if (sums.count + sums.dropped + sums.timed_out == 0) {
		sampler_open(s, now); /* the previous owner has collected the caller's sample */
		return false;
	}
	*w = (struct weir_window){
		.start = start_of(sampler, now),
		.end = now,
		.count = narrow(sums.count),
		.dropped = narrow(sums.dropped),
		.timed_out = narrow(sums.timed_out),
		.cancelled = since(s, TOTAL_CANCELLED, &sampler->cancelled),
		.failed = since(s, TOTAL_FAILED, &sampler->failed),
		.inflight_max = sums.inflight_max,
	};
	collect_queue(s, w);
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
	return claim(s, now) && complete(s, now) && close_all(s, now, w);
}

/* Whether the stripes have anything for this window. Only the owner calls it. */
static bool take_left(struct sampler *sampler)
{
	return UNLIKELY(atomic_load_explicit(&sampler->left, RELAXED) != 0) &&
	       atomic_exchange_explicit(&sampler->left, 0, memory_order_acquire) != 0;
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
		count_collected(stripe, 1);
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
		.rtt = smoothed(s, rtt),
		.rtt_mean = rtt,
		.rtt_min = rtt,
		.rtt_max = rtt,
		.random = 0,
		.queued = 0,
		.inflight_now = 0,
		.queue_min = 0,
		.cpu = 0,
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
	if (UNLIKELY(!claim(s, now))) {
		(void)record(s, stripe, sample);
		sampler_leave(s);
		return sampler_close(s, now, w);
	}
	if (UNLIKELY(take_left(s->sampler))) {
		(void)record(s, stripe, sample);
		return close_all(s, now, w);
	}
	close_one(s, stripe, now, sample, w);
	return true;
}

void sampler_open(const struct sampling *s, weir_time now)
{
	s->sampler->start = now;
	let_go(s, s->config.each_sample ? DUE_AT_ONCE : (now + s->sampler->length) << 1);
}

bool sampler_recover(const struct sampling *s, uint32_t dead)
{
	uint64_t due = busy(dead);

	return atomic_compare_exchange_strong_explicit(&s->sampler->due, &due, busy(s->owner),
						       memory_order_acquire, RELAXED) &&
	       is_ours(s);
}

bool sampler_hold(const struct sampling *s, uint64_t *due, uint32_t *owner)
{
	struct sampler *sampler = s->sampler;

	*due = atomic_load_explicit(&sampler->due, RELAXED);
	if (atomic_load_explicit(s->closing, RELAXED) == self()) {
		*due |= DUE_BUSY; /* even if another process has stored that it has no owner */
		return true;
	}
	do {
		*owner = (uint32_t)(*due >> 1);
		if ((*due & DUE_BUSY) != 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&sampler->due, due, busy(s->owner),
							memory_order_acquire, RELAXED));
	if (!is_ours(s)) {
		*owner = s->owner;
		return false;
	}
	set_closing(s, self());
	return true;
}

void sampler_let_go(const struct sampling *s, uint64_t due)
{
	if ((due & DUE_BUSY) != 0)
		return; /* it was this thread's before */
	let_go(s, due);
}
