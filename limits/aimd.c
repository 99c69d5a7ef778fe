/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AIMD: one more while all goes well, a fraction less on every sign of overload.
 *
 * After D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms
 * for Congestion Avoidance in Computer Networks", Computer Networks and ISDN
 * Systems 17, 1989, in the form of Netflix's AIMDLimit.
 *
 * Outcomes: a dropped or timed out call is overload, whether the limit was used or not; so is a
 * success that took longer than the timeout. There is one decrease a window, however many calls in
 * it were dropped: all of them are signs of the same queue. Ignored, cancelled and failed calls are
 * not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct aimd {
	double limit; /* whole */
	double min, max, backoff, timeout;
};

static const char *aimd_check(const void *config)
{
	const struct weir_aimd_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static double aimd_init(void *state, const void *config, double random)
{
	const struct weir_aimd_config *c = config;
	struct aimd *a = state;

	(void)random;
	*a = (struct aimd){
		.limit = c->initial,
		.min = c->min,
		.max = c->max,
		.backoff = c->backoff,
		.timeout = (double)c->timeout,
	};
	return a->limit;
}

static double aimd_update(void *state, const struct weir_window *w)
{
	struct aimd *a = state;

	if (w->count == 0 && overloads(w) == 0)
		return a->limit;

	if (overloads(w) > 0 || w->rtt > a->timeout)
		a->limit = trunc(a->limit * a->backoff);
	else if (!mostly_unused(w, a->limit))
		a->limit += 1;

	a->limit = clamp(a->limit, a->min, a->max);
	return a->limit;
}

#define OFFSET(field) offsetof(struct weir_aimd_config, field)

static const struct weir_param aimd_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "20", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "200", "highest limit"},
	{"backoff", WEIR_PARAM_DOUBLE, OFFSET(backoff), 0.5, 0.999999999, "0.9",
	 "factor on overload"},
	{"timeout", WEIR_PARAM_DUR, OFFSET(timeout), 1, 1e18, "5s",
	 "latency above which a call counts as dropped"},
};

const struct weir_limit_ops weir_aimd = {
	.size = sizeof(struct weir_limit_ops),
	.name = "aimd",
	.about = "Grows by one, shrinks by a tenth on drops: for backends that signal overload.",
	.version = 1,
	.state_size = sizeof(struct aimd),
	.config_size = sizeof(struct weir_aimd_config),
	.params = aimd_params,
	.param_count = sizeof(aimd_params) / sizeof(aimd_params[0]),
	.check = aimd_check,
	.init = aimd_init,
	.update = aimd_update,
};
