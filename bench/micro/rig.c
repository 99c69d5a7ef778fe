/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.c - create limiters to measure.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several times as long as the limiter takes to measure the rate of calls. */
#define SETTLING (20 * WEIR_MS)

void *must(void *memory)
{
	if (memory == NULL) {
		perror("weir-micro");
		exit(EXIT_FAILURE);
	}
	return memory;
}

void must_do(int error, const char *what)
{
	if (error == 0)
		return;
	fprintf(stderr, "weir-micro: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

/*
 * limit_min keeps the limit up, whatever the algorithm does. The default algorithm uses windows of
 * time, so that mostly the limiter itself is measured.
 */
struct weir_config roomy(const struct weir_limit_ops *limit)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = limit != NULL ? limit : &weir_vegas;
	config.limit_min = LIMIT;
	return config;
}

struct weir_config narrow(struct weir_fixed_config *fixed)
{
	struct weir_config config;

	weir_config_init(&config);
	*fixed = (struct weir_fixed_config){.limit = 1};
	config.limit = &weir_fixed;
	config.limit_config = fixed;
	return config;
}

struct weir_limiter *limiter_of(const struct weir_config *config)
{
	struct weir_limiter *limiter;
	char why[160];

	if (weir_config_check(config, why, sizeof(why)) != 0) {
		fprintf(stderr, "weir-micro: %s\n", why);
		exit(EXIT_FAILURE);
	}
	must_do(weir_limiter_create(config, &limiter), "weir_limiter_create");
	return limiter;
}

void settle(struct weir_limiter *limiter)
{
	const weir_time until = weir_now() + SETTLING;

	while (weir_now() < until)
		pair_loop(limiter, NULL, 1000);
}

void *plain_make(const struct subject *self, unsigned threads)
{
	struct weir_config config = roomy(self->limit);
	struct weir_limiter *limiter = limiter_of(&config);

	(void)threads;
	settle(limiter);
	return limiter;
}

void limiter_unmake(void *shared)
{
	weir_limiter_destroy(shared);
}

uint64_t pair_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_token token;
	uint64_t refused = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		if (weir_try_acquire(shared, &token) != 0)
			refused++;
		else
			weir_release(shared, &token, WEIR_SUCCESS);
	}
	return refused;
}
