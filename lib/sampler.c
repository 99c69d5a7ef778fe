/*
 * Recording samples, and closing windows. sampler.h has the ledger.
 */

#include "lib/sampler.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/*
 * A stripe's count and sum share a word, so that no window sees one without the
 * other: 20 bits and 44 bits. Whoever sees either half full puts the word aside,
 * whole, and begins a new one. Where there is no place for it any more, after two million
 * samples of one CPU in one window, count and sum go into wide words of their
 * own; and so do samples above WIDE_RTT (8.6 s) at once, so that from half full it takes over a
 * thousand threads, all between their add and their spill on one stripe, to overflow.
 * What the wide words count may be split, count in one window and sum in the next;
 * it is never lost.
 */
#define SUM_BITS   44
#define SUM_MASK   ((UINT64_C(1) << SUM_BITS) - 1)
#define ONE_SAMPLE (UINT64_C(1) << SUM_BITS)
#define HALF_FULL  ((UINT64_C(1) << 63) | (UINT64_C(1) << (SUM_BITS - 1)))
#define WIDE_RTT   (UINT64_C(1) << 33)

/*
 * A stripe's delays and the lowest of them. One above QUEUE_DELAY_MAX (18 minutes) counts as
 * that, and as many as the word holds (16 million) as just so many.
 */
#define QUEUE_BITS      40
#define QUEUE_DELAY_MAX ((UINT64_C(1) << QUEUE_BITS) - 1)
#define ONE_DELAY       (UINT64_C(1) << QUEUE_BITS)
#define DELAYS_MAX      (UINT64_MAX >> QUEUE_BITS)

/* A window that lacks samples is looked at again after this part of its length. */
#define EXTENSION 4

/* The word due: a time in 63 bits, and whether somebody is closing the window. */
#define BUSY    UINT64_C(1)
#define AT_ONCE UINT64_C(0)

#define RELAXED memory_order_relaxed

size_t pool_size(uint32_t stripes)
{
	return sizeof(struct pool) + (size_t)stripes * LOG_MAX * sizeof(uint64_t);
}

void sampler_init(const struct sampling *s, const struct sampler_config *config)
{
	/* The first sample opens the first window, and sets its length. */
	atomic_init(&s->sampler->due, AT_ONCE);
	atomic_init(&s->sampler->owner, 0);
	s->sampler->config = *config;
	s->sampler->start = 0;
	s->sampler->length = 0;
	s->sampler->rtt_smoothed = 0;
	s->sampler->cancelled = s->sampler->failed = 0;
	for (uint32_t i = 0; i < config->stripes; i++) {
		memset(&s->stripes[i], 0, sizeof(s->stripes[i]));
		atomic_init(&s->stripes[i].min, UINT64_MAX);
		if (s->lanes != NULL)
			memset(&s->lanes[i], 0, sizeof(s->lanes[i]));
	}
}

uint64_t sampler_total(const struct sampling *s, enum total which)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->sampler->config.stripes; i++)
		sum += atomic_load_explicit(&s->stripes[i].total[which], memory_order_acquire);
	return sum;
}

/*
 * Samples in the stripe's open window. Read against the way they go, from packed to
 * where it spills: a sample on its way is missed, but never seen twice.
 */
static uint64_t open_samples(const struct stripe *stripe)
{
	uint64_t count = atomic_load_explicit(&stripe->wide_count, memory_order_acquire);

	for (uint32_t k = 0; k < SPILLS; k++)
		count += atomic_load_explicit(&stripe->spilled[k], memory_order_acquire) >>
			 SUM_BITS;
	return count + (atomic_load_explicit(&stripe->packed, memory_order_acquire) >> SUM_BITS);
}

/* As above: what is collected moves on from the window's words to the total. */
uint64_t sampler_samples(const struct sampling *s)
{
	uint64_t count = sampler_total(s, TOTAL_COLLECTED);

	for (uint32_t i = 0; i < s->sampler->config.stripes; i++)
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

/* Which sample of the stripe's window this is, from 0; or LOG_MAX and more. */
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

/* A word was put aside: the count in packed began anew in this window. */
static bool began_anew(const struct stripe *stripe)
{
	return atomic_load_explicit(&stripe->spilled[0], RELAXED) != 0;
}

/*
 * A thread that is stopped between its add and its store, while the window is
 * closed, puts its value into the next window's log: the quantile is then off by
 * one sample in two windows.
 */
static void add_value(struct stripe *stripe, struct lane *lane, uint64_t rtt, uint64_t index)
{
	if (index < LOG_MAX && !began_anew(stripe))
		atomic_store_explicit(&lane->log[index], rtt, RELAXED);
	else
		atomic_fetch_add_explicit(&lane->bucket[bucket_of(rtt)], 1, RELAXED);
}

static void count_overload(struct stripe *stripe, enum kind kind)
{
	stripe_count(stripe, kind == DROPPED ? TOTAL_DROPPED : TOTAL_TIMED_OUT);
	atomic_fetch_add_explicit(kind == DROPPED ? &stripe->dropped : &stripe->timed_out, 1,
				  RELAXED);
}

bool sampler_record(const struct sampling *s, struct stripe *stripe, uint64_t rtt,
		    uint32_t inflight, enum kind kind)
{
	bool measured = rtt > 0 && rtt >= s->sampler->config.rtt_threshold;
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

/* One more, of that delay. */
static uint64_t queue_after(uint64_t word, uint64_t delay)
{
	uint64_t count = word >> QUEUE_BITS, min = word & QUEUE_DELAY_MAX;

	if (count == 0 || delay < min)
		min = delay;
	return (count < DELAYS_MAX ? count + 1 : count) << QUEUE_BITS | min;
}

void sampler_queued(struct stripe *stripe, uint64_t delay)
{
	uint64_t word = atomic_load_explicit(&stripe->queue, RELAXED);

	if (delay > QUEUE_DELAY_MAX)
		delay = QUEUE_DELAY_MAX;
	while (!atomic_compare_exchange_weak_explicit(&stripe->queue, &word,
						      queue_after(word, delay), RELAXED, RELAXED))
		;
}

/* What a window adds up to. */
struct sums {
	uint64_t count, sum, min, max, dropped, timed_out;
	uint32_t inflight_max;
};

/* Look at the stripes and leave them as they are. */
static struct sums peek(const struct sampling *s)
{
	struct sums all = {.min = UINT64_MAX};

	for (uint32_t i = 0; i < s->sampler->config.stripes; i++) {
		const struct stripe *stripe = &s->stripes[i];
		uint64_t min = atomic_load_explicit(&stripe->min, RELAXED);

		all.count += open_samples(stripe);
		if (min < all.min)
			all.min = min;
	}
	return all;
}

static void collect_lane(struct lane *lane, uint64_t logged, struct pool *pool, uint32_t *known)
{
	for (uint32_t i = 0; i < LOG_MAX && i < logged; i++) {
		uint64_t rtt = atomic_exchange_explicit(&lane->log[i], 0, RELAXED);

		if (rtt == 0)
			continue; /* counted, but not yet stored */
		pool->value[(*known)++] = rtt;
		pool->bucket[bucket_of(rtt)]++;
	}
	for (uint32_t i = 0; i < BUCKETS; i++)
		if (atomic_load_explicit(&lane->bucket[i], RELAXED) != 0)
			pool->bucket[i] += atomic_exchange_explicit(&lane->bucket[i], 0, RELAXED);
}

/* Take count and sum out of a stripe; how many of its samples may be in the log. */
static uint64_t take_sums(struct stripe *stripe, struct sums *all)
{
	uint64_t logged = began_anew(stripe) ? LOG_MAX : 0;
	uint64_t packed = atomic_exchange_explicit(&stripe->packed, 0, memory_order_acquire);
	uint64_t count = packed >> SUM_BITS;

	logged += count;
	all->sum += packed & SUM_MASK;
	for (uint32_t k = 0; k < SPILLS; k++) {
		uint64_t word = atomic_exchange_explicit(&stripe->spilled[k], 0,
							 memory_order_acquire);

		count += word >> SUM_BITS;
		all->sum += word & SUM_MASK;
	}
	count += atomic_exchange_explicit(&stripe->wide_count, 0, memory_order_acquire);
	all->sum += atomic_exchange_explicit(&stripe->wide_sum, 0, RELAXED);
	atomic_fetch_add_explicit(&stripe->total[TOTAL_COLLECTED], count, memory_order_release);
	all->count += count;
	return logged;
}

/* Take all there is out of the stripes; how many latencies are known by value goes to *known. */
static struct sums collect(const struct sampling *s, uint32_t *known)
{
	struct sums all = {.min = UINT64_MAX};

	*known = 0;
	if (s->lanes != NULL)
		memset(s->pool->bucket, 0, sizeof(s->pool->bucket));
	for (uint32_t i = 0; i < s->sampler->config.stripes; i++) {
		struct stripe *stripe = &s->stripes[i];
		uint64_t logged = take_sums(stripe, &all);
		uint64_t min = atomic_exchange_explicit(&stripe->min, UINT64_MAX, RELAXED);
		uint64_t max = atomic_exchange_explicit(&stripe->max, 0, RELAXED);
		uint32_t top = atomic_exchange_explicit(&stripe->inflight_max, 0, RELAXED);

		all.dropped += atomic_exchange_explicit(&stripe->dropped, 0, RELAXED);
		all.timed_out += atomic_exchange_explicit(&stripe->timed_out, 0, RELAXED);
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

/* Take the delays out of the stripes. Few limits want them: mostly there are none. */
static void collect_queue(const struct sampling *s, struct weir_window *w)
{
	uint64_t count = 0, min = QUEUE_DELAY_MAX;

	for (uint32_t i = 0; i < s->sampler->config.stripes; i++) {
		uint64_t word = atomic_load_explicit(&s->stripes[i].queue, RELAXED);

		if (word == 0)
			continue;
		word = atomic_exchange_explicit(&s->stripes[i].queue, 0, RELAXED);
		count += word >> QUEUE_BITS;
		min = (word & QUEUE_DELAY_MAX) < min ? word & QUEUE_DELAY_MAX : min;
	}
	w->queued = narrow(count);
	w->queue_min = count > 0 ? (double)min : 0;
}

/* The rank is the nearest to quantile * count, ties up, as Netflix's; the lowest is the first. */
static double quantile_of(const struct sampling *s, uint32_t known)
{
	uint64_t count = 0, rank;

	for (uint32_t i = 0; i < BUCKETS; i++)
		count += s->pool->bucket[i];
	if (count == 0)
		return 0;
	rank = (uint64_t)floor((double)count * s->sampler->config.quantile + 0.5);
	return histogram_at_rank(s->pool->bucket, rank > 0 ? rank : 1, s->pool->value, known);
}

static double smoothed(struct sampler *sampler, double rtt)
{
	double weight = sampler->config.rtt_smoothing;

	if (rtt == 0 || weight == 1)
		return rtt;
	if (sampler->rtt_smoothed == 0)
		sampler->rtt_smoothed = rtt;
	sampler->rtt_smoothed += weight * (rtt - sampler->rtt_smoothed);
	return sampler->rtt_smoothed;
}

static double statistic(const struct sampling *s, const struct weir_window *w, uint32_t known)
{
	switch ((enum weir_rtt)s->sampler->config.rtt) {
	case WEIR_RTT_MIN:
		return w->rtt_min;
	case WEIR_RTT_QUANTILE:
		return quantile_of(s, known);
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

/* This thread, as owner. */
static uintptr_t self(void)
{
	return (uintptr_t)pthread_self();
}

static void set_owner(struct sampler *sampler, uintptr_t owner)
{
	atomic_store_explicit(&sampler->owner, owner, RELAXED);
}

/* Lets go of the window as well. */
static void set_due(struct sampler *sampler, uint64_t due)
{
	atomic_store_explicit(&sampler->due, due, memory_order_release);
}

/* Too few samples. True if the window is to close all the same; else it has a new deadline. */
static bool overdue(const struct sampling *s, weir_time now, const struct sums *sums)
{
	struct sampler *sampler = s->sampler;
	const struct sampler_config *config = &sampler->config;
	weir_dur age, rest, extension;

	if (sampler->length == 0 || (int64_t)(now - sampler->start) < 0) {
		sampler->start = now;
		sampler->length = length_for(config, sums->min);
		set_due(sampler, (now + sampler->length) << 1);
		return false;
	}
	age = now - sampler->start;
	if (age >= config->window_max)
		return true;
	rest = config->window_max - age;
	extension = sampler->length / EXTENSION;
	set_due(sampler, (now + (extension < rest ? extension : rest)) << 1);
	return false;
}

static void discard(const struct sampling *s, weir_time now)
{
	uint32_t known;
	struct sums sums = collect(s, &known);
	struct weir_window w;

	collect_queue(s, &w);
	s->sampler->length = length_for(&s->sampler->config, sums.min);
	sampler_open(s, now);
}

/* Whether the window has what it needs; if not, it has been seen to. The caller owns it. */
static bool complete(const struct sampling *s, weir_time now)
{
	const struct sampler_config *config = &s->sampler->config;
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

/* Times are compared by their difference: a clock may begin anywhere, and wrap. */
static bool is_due(uint64_t due, weir_time now)
{
	return due == AT_ONCE || ((due & BUSY) == 0 && (int64_t)((now << 1) - due) > 0);
}

/* How much a total has grown since it was last asked. */
static uint32_t since(const struct sampling *s, enum total which, uint64_t *seen)
{
	uint64_t total = sampler_total(s, which), before = *seen;

	*seen = total;
	return narrow(total - before);
}

bool sampler_close(const struct sampling *s, weir_time now, struct weir_window *w)
{
	struct sampler *sampler = s->sampler;
	uint64_t due = atomic_load_explicit(&sampler->due, RELAXED);
	struct sums sums;
	uint32_t known;

	if (!is_due(due, now))
		return false;
	/* Acquire: what the previous owner left. Who loses the race leaves. */
	if (!atomic_compare_exchange_strong_explicit(&sampler->due, &due, due | BUSY,
						     memory_order_acquire, RELAXED))
		return false;
	if (!complete(s, now))
		return false;

	sums = collect(s, &known);
	if (sums.count + sums.dropped + sums.timed_out == 0) {
		sampler_open(s, now); /* the previous owner took our sample along */
		return false;
	}
	*w = (struct weir_window){
		/* Nobody was told when the first began: it has no length. */
		.start = sampler->length > 0 ? sampler->start : now,
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
		uint64_t mean = sums.sum / sums.count;

		w->rtt_mean = (double)mean;
		w->rtt_min = (double)(sums.min == UINT64_MAX ? 0 : sums.min);
		w->rtt_max = (double)sums.max;
		w->rtt = smoothed(sampler, statistic(s, w, known));
	}
	sampler->length = length_for(&sampler->config, sums.min);
	set_owner(sampler, self());
	return true;
}

void sampler_open(const struct sampling *s, weir_time now)
{
	s->sampler->start = now;
	set_owner(s->sampler, 0);
	set_due(s->sampler,
		s->sampler->config.each_sample ? AT_ONCE : (now + s->sampler->length) << 1);
}

uint64_t sampler_hold(const struct sampling *s)
{
	struct sampler *sampler = s->sampler;
	uint64_t due = atomic_load_explicit(&sampler->due, RELAXED);

	if (atomic_load_explicit(&sampler->owner, RELAXED) == self())
		return due;
	do {
		while ((due & BUSY) != 0) {
			sched_yield();
			due = atomic_load_explicit(&sampler->due, RELAXED);
		}
	} while (!atomic_compare_exchange_weak_explicit(&sampler->due, &due, due | BUSY,
							memory_order_acquire, RELAXED));
	set_owner(sampler, self());
	return due;
}

void sampler_let_go(const struct sampling *s, uint64_t due)
{
	if ((due & BUSY) != 0)
		return; /* it was this thread's before */
	set_owner(s->sampler, 0);
	set_due(s->sampler, due);
}
