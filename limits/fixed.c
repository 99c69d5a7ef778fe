/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed: a constant. The baseline that other limits are compared with, and the smallest example of
 * a limit: a configuration, a state, two functions and a table.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct fixed {
	double limit;
};

static double fixed_init(void *state, const void *config, double random)
{
	const struct weir_fixed_config *c = config;
	struct fixed *f = state;

	(void)random;
	f->limit = c->limit;
	return f->limit;
}

static double fixed_update(void *state, const struct weir_window *w)
{
	const struct fixed *f = state;

	(void)w;
	return f->limit;
}

static const struct weir_param fixed_params[] = {
	{"limit", WEIR_PARAM_U32, offsetof(struct weir_fixed_config, limit), 1, LIMIT_TOP, "20",
	 "calls in flight"},
};

const struct weir_limit_ops weir_fixed = {
	.size = sizeof(struct weir_limit_ops),
	.name = "fixed",
	.about = "A constant: when you have measured your capacity and it does not change.",
	.version = 1,
	.state_size = sizeof(struct fixed),
	.config_size = sizeof(struct weir_fixed_config),
	.params = fixed_params,
	.param_count = sizeof(fixed_params) / sizeof(fixed_params[0]),
	.init = fixed_init,
	.update = fixed_update,
};
