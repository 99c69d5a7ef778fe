/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.h - common parts of subjects: limiters that refuse no calls, and the usual loop.
 */
#ifndef RIG_H
#define RIG_H

#include "subjects.h"

#include <time.h>
#include <weir/weir.h>

/* More permits than all threads hold at once, so no call is refused. */
#define LIMIT 100000

/* The clock of all subjects, including the floor: weir_now() without a function call. */
static inline uint64_t clock_read(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * WEIR_S + (uint64_t)t.tv_nsec;
}

/* Return memory; exit if it is NULL. */
void *must(void *memory);

/* Exit with a message that names what, unless error is 0. */
void must_do(int error, const char *what);

/* A configuration of a limit (NULL: vegas) that stays at LIMIT or above. */
struct weir_config roomy(const struct weir_limit_ops *limit);

/* A configuration with a fixed limit of one permit. */
struct weir_config narrow(struct weir_fixed_config *fixed);

struct weir_limiter *limiter_of(const struct weir_config *config);

/* Pairs until the limiter has adapted its sampling to their rate. */
void settle(struct weir_limiter *limiter);

/* For struct subject: a limiter with the default limit and no features. */
void *plain_make(const struct subject *self, unsigned threads);
void limiter_unmake(void *shared);

/* For struct subject: weir_try_acquire() and weir_release(); shared is the limiter. */
uint64_t pair_loop(void *shared, struct worker *worker, uint64_t times);

#endif
