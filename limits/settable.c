/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settable: a constant that the program changes with weir_limit_set(), where
 * something else knows the capacity: an operator, a quota, a controller.
 *
 * The limiter keeps the present value, since a change must take effect at
 * once and from any thread; a limit only sees closed windows.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

static double settable_init(void *state, const void *config, double random)
{
	const struct weir_settable_config *c = config;

	(void)state;
	(void)random;
	return c->initial;
}

/* Every limit must have one; the limiter does not call that of a settable limit. */
static double settable_update(void *state, const struct weir_window *w)
{
	(void)state;
	return w->limit;
}

static const struct weir_param settable_params[] = {
	{"initial", WEIR_PARAM_U32, offsetof(struct weir_settable_config, initial), 1, LIMIT_TOP,
	 "20", "limit until it is set"},
};

const struct weir_limit_ops weir_settable = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_SETTABLE,
	.name = "settable",
	.about = "A constant that you change at run time: where the limit is decided elsewhere.",
	.version = 1,
	.config_size = sizeof(struct weir_settable_config),
	.params = settable_params,
	.param_count = sizeof(settable_params) / sizeof(settable_params[0]),
	.init = settable_init,
	.update = settable_update,
};
