/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/sample/thinning.h"

#include <math.h>

#include "lib/base/splitmix.h"
#include "lib/sample/sampler.h"

void thinning_init(const struct sampling *s)
{
	atomic_init(&s->sampler->each, EACH_ONE);
	atomic_init(&s->sampler->paced, 0);
	atomic_init(&s->sampler->ended, 0);
}

/*
 * The counter of the random number is the time of the sample, whose last digits in nanoseconds are
 * random enough, and the stripe. In virtual time the numbers are the same in each run.
 */
void thinning_draw_next(const struct sampling *s, struct stripe *stripe, weir_time now)
{
	const double random = splitmix(now * SPLITMIX_STEP + (uint64_t)(stripe - s->stripes));
	const double each = thinning_each(s) / (double)EACH_ONE;
	const double skip = log1p(-random) / log1p(-1 / each);

	atomic_store_explicit(&stripe->skip, skip < SKIP_MAX ? (uint32_t)skip : SKIP_MAX,
			      memory_order_relaxed);
}

static uint32_t each_for(const struct sampling *s, double calls, double elapsed)
{
	const double each = calls / elapsed * (double)s->config.interval;

	if (!(each > 1))
		return EACH_ONE;
	return each < EACH_MAX ? (uint32_t)(each * EACH_ONE) : EACH_MAX * EACH_ONE;
}

/*
 * Drop the countdowns that were drawn for a much higher rate: a stripe with few calls would take
 * long to get through its own, and its next sample would stand for fewer calls than it skipped.
 */
static void drop_countdowns(const struct sampling *s)
{
	for (uint32_t i = 0; i < s->config.stripes; i++)
		atomic_store_explicit(&s->stripes[i].skip, 0, memory_order_relaxed);
}

/* A clock that went back, or the first call, measures nothing, and begins anew. */
void thinning_measure(const struct sampling *s, weir_time now, weir_time before)
{
	const int64_t elapsed = (int64_t)(now - before);
	const uint32_t old = thinning_each(s);
	uint64_t ended, since;
	uint32_t each;

	if (!atomic_compare_exchange_strong_explicit(&s->sampler->paced, &before, now,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	ended = sampler_ended(s);
	since = atomic_exchange_explicit(&s->sampler->ended, ended, memory_order_relaxed);
	if (before == 0 || elapsed <= 0 || ended < since)
		return;
	each = each_for(s, (double)(ended - since), (double)elapsed);
	atomic_store_explicit(&s->sampler->each, each, memory_order_relaxed);
	if (each < old / 2 || (each == EACH_ONE && old > EACH_ONE))
		drop_countdowns(s);
}
