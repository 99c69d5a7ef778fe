/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/sample/thinning.h"

#include <math.h>

#include "lib/sample/sampler.h"

void thinning_init(const struct sampling *s)
{
	atomic_init(&s->sampler->each, EACH_ONE);
	atomic_init(&s->sampler->paced, 0);
	atomic_init(&s->sampler->ended, 0);
}

/*
 * A number in (0, 1] from the time of a sample and its stripe: the last digits of a clock in
 * nanoseconds are random enough, and in virtual time the number is the same in each run. The mixing
 * function is that of splitmix64 by S. Vigna (public domain).
 */
static double chance(const struct sampling *s, const struct stripe *stripe, weir_time now)
{
	uint64_t z = now * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(stripe - s->stripes);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)(((z ^ z >> 31) >> 11) + 1) * 0x1p-53;
}

void thinning_draw_next(const struct sampling *s, struct stripe *stripe, weir_time now)
{
	const double each = thinning_each(s) / (double)EACH_ONE;
	const double skip = log(chance(s, stripe, now)) / log1p(-1 / each);

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

/* A clock that went back, or the first call, measures nothing, and begins anew. */
void thinning_measure(const struct sampling *s, weir_time now, weir_time before)
{
	const int64_t elapsed = (int64_t)(now - before);
	uint64_t ended, since;

	if (!atomic_compare_exchange_strong_explicit(&s->sampler->paced, &before, now,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	ended = sampler_ended(s);
	since = atomic_exchange_explicit(&s->sampler->ended, ended, memory_order_relaxed);
	if (before == 0 || elapsed <= 0 || ended < since)
		return;
	atomic_store_explicit(&s->sampler->each,
			      each_for(s, (double)(ended - since), (double)elapsed),
			      memory_order_relaxed);
}
