/*
 * rig.h - what subjects are made of: limiters that refuse nobody, and the usual loop.
 */
#ifndef RIG_H
#define RIG_H

#include "subjects.h"

#include <time.h>
#include <weir/weir.h>

/* More than there are threads, and than any of them holds at once: nobody is refused. */
#define LIMIT 100000

/* Each subject's clock, the floor's too: what weir_now() reads, without the call. */
static inline uint64_t clock_read(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * WEIR_S + (uint64_t)t.tv_nsec;
}

/* The memory; exits if there is none. */
void *must(void *memory);

/* What must not fail here: 0, or it exits and names it. */
void must_do(int error, const char *what);

/* A configuration of that limit, NULL being vegas, which stays at LIMIT or above. */
struct weir_config roomy(const struct weir_limit_ops *limit);

/* The same with one permit, for good. */
struct weir_config narrow(struct weir_fixed_config *fixed);

struct weir_limiter *limiter_of(const struct weir_config *config);

/* For struct subject: the default limit, and nothing else. */
void *plain_make(const struct subject *self, unsigned threads);
void limiter_unmake(void *shared);

/* weir_try_acquire() and weir_release() of the limiter shared. */
uint64_t pair_loop(void *shared, struct worker *worker, uint64_t times);

#endif
