/*
 * The load of a program that limits its own calls, for scripts/overload.sh: when each call is meant
 * to begin, whatever becomes of those before it, and how it went.
 */
#ifndef ADAPTERS_PLAN_H
#define ADAPTERS_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct plan;

/* A call: its phase, and when it is meant to begin. Times are microseconds of the epoch. */
struct plan_call {
	unsigned phase;
	uint64_t at;
};

/* What a call was answered with, in numbers of HTTP's. */
enum {
	PLAN_UNANSWERED = 0,
	PLAN_ANSWERED = 200,
	PLAN_REFUSED = 503,
};

/*
 * Read a plan: lines of phase, start, seconds, calls a second. Calls begin at random, as those of
 * many callers do, and at the same moments in each run. NULL after saying why not. End with
 * plan_free().
 */
struct plan *plan_read(const char *path);
void plan_free(struct plan *plan);

/* The next call. False: that was the last one. */
bool plan_next(struct plan *plan, struct plan_call *call);

/* A line on a call that has ended. Its latency is from when it was meant to begin. */
void plan_tell(const struct plan *plan, const struct plan_call *call, unsigned status,
	       uint64_t latency, FILE *file);

/* Now, in microseconds of the epoch. */
uint64_t plan_now(void);

#ifdef __cplusplus
}
#endif
#endif
