/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter from the command line.
 *
 * "none" is a limiter that is never reached, so that both runs of a comparison execute the same
 * code and have the same counters.
 */
#include "gate.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

static struct weir_limiter *create(const struct weir_config *config)
{
	struct weir_limiter *limiter;
	char why[200] = "out of memory";

	if (weir_limiter_create(config, &limiter) == 0)
		return limiter;
	weir_config_check(config, why, sizeof(why));
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	return NULL;
}

struct weir_limiter *gate_create(const char *text, unsigned queue)
{
	alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX] = {0};
	struct weir_config config;
	const struct weir_limit_ops *ops;
	char why[200];

	if (strcmp(text, "none") == 0)
		text = "fixed:limit=8388607";
	if (weir_limit_from_text(text, &ops, limit_config, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
		return NULL;
	}
	weir_config_init(&config);
	config.limit = ops;
	config.limit_config = limit_config;
	config.limit_config_size = ops->config_size;
	config.queue = queue;
	return create(&config);
}
