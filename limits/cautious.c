/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cautious: one more for as many successes as the limit, a tenth less for every drop.
 *
 * After the limiter of Palantir's dialogue (CautiousIncreaseAggressiveDecrease), an HTTP client. It
 * sees each call: a success that found the limit nearly used adds 1 / limit; a drop multiplies the
 * limit by backoff and rounds down. Its authors arrived at it after other limits: latency proved a
 * poor signal, windows were too slow for a burst of refusals, and one more a window grew too fast.
 * So latency is ignored.
 *
 * A window of several samples is treated as that many windows of one sample, successes first, each
 * with as much in flight as the one that found the most. The window does not say how many found
 * that much, so where single calls follow a burst, the limit grows a little faster.
 *
 * What it cannot do: notice a backend that becomes slow and refuses nothing. The limit then grows
 * to max. And a burst of refusals at one moment is many drops: eleven of them reduce it to a third.
 *
 * Outcomes: a dropped or timed out call shrinks the limit, used or not; the other samples are
 * successes. Ignored, cancelled and failed calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct cautious {
	double limit;
	double min, max, backoff, usage;
};

static const char *cautious_check(const void *config)
{
	const struct weir_cautious_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static double cautious_init(void *state, const void *config, double random)
{
	const struct weir_cautious_config *c = config;
	struct cautious *l = state;

	(void)random;
	*l = (struct cautious){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.backoff = c->backoff,
		.usage = c->usage,
	};
	return l->limit;
}

/* Drops after which the limit is at any minimum: each takes at least a hundredth of it, or one. */
#define DROPS_MAX 4096

/*
 * The limit after n successes. Each adds 1 / limit, so the square of the limit grows by 2 and a
 * negligible rest; the rest is kept for the first success only.
 */
static double grown(double limit, double n)
{
	limit += 1 / limit;
	return n > 1 ? sqrt(limit * limit + 2 * (n - 1)) : limit;
}

static double cautious_update(void *state, const struct weir_window *w)
{
	struct cautious *l = state;
	uint64_t drops = overloads(w);

	if (w->count == 0 && drops == 0)
		return l->limit;
	if (w->count > drops && w->inflight_max >= floor(l->limit * l->usage))
		l->limit = grown(l->limit, w->count * each_of(w) - (double)drops);
	drops = drops < DROPS_MAX ? drops : DROPS_MAX;
	for (; drops > 0 && l->limit > l->min; drops--)
		l->limit = floor(l->limit * l->backoff);
	l->limit = clamp(l->limit, l->min, l->max);
	return l->limit;
}

static const char *const cautious_numbers[] = {"estimate", NULL};

static void cautious_observe(const void *state, double *values)
{
	const struct cautious *l = state;

	values[0] = l->limit;
}

#define OFFSET(field) offsetof(struct weir_cautious_config, field)

static const struct weir_param cautious_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000000", "highest limit"},
	{"backoff", WEIR_PARAM_DOUBLE, OFFSET(backoff), 0.1, 0.99, "0.9", "factor on a drop"},
	{"usage", WEIR_PARAM_DOUBLE, OFFSET(usage), 0.01, 1, "0.9",
	 "fraction of the limit that must be in use for it to grow"},
};

static const struct weir_sampling cautious_sampling = {.windowing = WEIR_WINDOW_SAMPLE};

const struct weir_limit_ops weir_cautious = {
	.size = sizeof(struct weir_limit_ops),
	.name = "cautious",
	.about = "Grows by 1 / limit a success, shrinks by a tenth a drop: for shared backends.",
	.version = 1,
	.state_size = sizeof(struct cautious),
	.config_size = sizeof(struct weir_cautious_config),
	.params = cautious_params,
	.param_count = sizeof(cautious_params) / sizeof(cautious_params[0]),
	.check = cautious_check,
	.init = cautious_init,
	.update = cautious_update,
	.numbers = cautious_numbers,
	.observe = cautious_observe,
	.sampling = &cautious_sampling,
};
