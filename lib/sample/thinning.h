/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thinning: where calls are many, only some of them are samples. An estimator needs a number of
 * samples a second, not all there are. The other calls are counted, and read no clock.
 *
 * While the limiter's calls stay below weir_config.sample_rate, each is a sample. Above it, each is
 * one with the same probability, so that samples come at about that rate. Which calls are samples
 * is left to chance, as every k-th call of a loop may meet every k-th request. Each stripe counts
 * down to its next sample. The countdown is drawn from the geometric distribution, which makes it
 * the same as drawing for each call.
 *
 * The probability follows the rate of calls, measured over PACE or longer by one of the threads
 * that bring a sample. Where it rises much, the countdowns that were drawn before are dropped.
 *
 * word     written by                          order    pairs with
 * -------  ----------------------------------  -------  -----------------------------------
 * skip     thinning_skips(): load, store;      relaxed  nothing. If two threads write at once, one
 *          draw, measure: store                         decrement is lost, or one draw: one of the
 *                                                       next samples comes a little later or sooner
 * counted  a call that is no sample: add       release  sampler_counted(): it has left the gate
 * each     measure: store                      relaxed  nothing: a number
 * paced    measure: CAS; the winner measures   relaxed  nothing: a time
 * ended    the winner: exchange                relaxed  nothing: a number
 */
#ifndef WEIR_LIB_THINNING_H
#define WEIR_LIB_THINNING_H

#include "lib/sample/sampling.h"

/* Calls that a sample stands for, as a fixed-point number with this one. */
#define EACH_ONE (UINT32_C(1) << 8)

/*
 * Calls that a sample stands for at most, on average. Should the backend slow down a thousandfold,
 * that is how many of the slow calls pass before the next sample.
 */
#define EACH_MAX 256

/* Longest countdown: one in ten million draws is cut here. A longer one is another process's. */
#define SKIP_MAX (EACH_MAX * 16)

/* Time between two measurements of the rate of calls. */
#define PACE (5 * WEIR_MS)

void thinning_init(const struct sampling *s);

/* Whether the next call of this stripe is no sample. Counts down. */
static inline bool thinning_skips(struct stripe *stripe)
{
	const uint32_t left = atomic_load_explicit(&stripe->skip, memory_order_relaxed);

	if (left - 1 >= SKIP_MAX) /* zero, or invalid */
		return false;
	atomic_store_explicit(&stripe->skip, left - 1, memory_order_relaxed);
	return true;
}

/* The number of calls that a sample stands for now, in EACH_ONE. */
static inline uint32_t thinning_each(const struct sampling *s)
{
	const uint32_t each = atomic_load_explicit(&s->sampler->each, memory_order_relaxed);

	return LIKELY(each - EACH_ONE <= (EACH_MAX - 1) * EACH_ONE) ? each : EACH_ONE;
}

/* Count a success that is no sample. */
static inline void stripe_count_served(struct stripe *stripe)
{
	atomic_fetch_add_explicit(&stripe->counted, 1, memory_order_release);
}

/* After a call of this stripe became a sample at that time: how many the stripe skips next. */
void thinning_draw_next(const struct sampling *s, struct stripe *stripe, weir_time now);

static inline void thinning_draw(const struct sampling *s, struct stripe *stripe, weir_time now)
{
	if (UNLIKELY(thinning_each(s) > EACH_ONE))
		thinning_draw_next(s, stripe, now);
}

/* Measure the rate of calls, and adapt to it. */
void thinning_measure(const struct sampling *s, weir_time now, weir_time before);

/* After a sample that stands for other calls: from time to time, measure. */
static inline void thinning_pace(const struct sampling *s, weir_time now)
{
	const weir_time paced = atomic_load_explicit(&s->sampler->paced, memory_order_relaxed);

	if (UNLIKELY(now - paced >= PACE)) /* also if the clock went back */
		thinning_measure(s, now, paced);
}

#endif
