/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bad.c - plugins that are not valid; macros select the defect.
 */
#include <math.h>
#include <stdint.h>
#include <weir/weir.h>

static double init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return BEGIN;
}

static double update(void *state, const struct weir_window *w)
{
	(void)state;
	(void)w;
	return ANSWER;
}

static void observe(const void *state, double *values)
{
	(void)state;
	values[0] = 1;
}

static const char *check(const void *config)
{
	(void)config;
	return "it never fits";
}

static const char *const one[] = {"one", NULL};
static const char *const nine[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", NULL};

static const struct weir_param params[] = {
	{"far", WEIR_PARAM_U32, 4096, 1, 2, "1", "too far out"},
	{"odd", WEIR_PARAM_U32, 0, 1, 2, "one", "its default is none"},
	{"out", WEIR_PARAM_U32, 0, 1, 2, "3", "its default is out of range"},
};

static const struct weir_sampling never = {.window_min = 2 * WEIR_S, .window_max = WEIR_S};

static const struct weir_limit_ops bad = {
	.size = sizeof(struct weir_limit_ops),
	.name = "bad",
	.state_size = 8,
	.config_size = 8,
	.init = init,
	.update = update,
	HOW,
};

/* Some variants do not use all of these. */
const void *const others[] = {(const void *)params,
			      (const void *)&never,
			      (const void *)one,
			      (const void *)nine,
			      (const void *)(uintptr_t)observe,
			      (const void *)(uintptr_t)check};

#ifdef LIMITS
const struct weir_limit_ops *const weir_plugin[] = {LIMITS};
#endif
