/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open-loop load for programs that limit their own calls (scripts/overload.sh): each call has a
 * start time that does not depend on earlier calls, and its result is recorded.
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

/* A call: its phase, and its intended start. Times are microseconds since the epoch. */
struct plan_call {
	unsigned phase;
	uint64_t at;
};

/* The result of a call, as an HTTP status. */
enum {
	PLAN_UNANSWERED = 0,
	PLAN_ANSWERED = 200,
	PLAN_REFUSED = 503,
};

/*
 * Read a plan: lines of phase, start, seconds, calls per second. Start times are random (Poisson),
 * and the same in each run. NULL on failure, after an error message. Free with plan_free().
 */
struct plan *plan_read(const char *path);
void plan_free(struct plan *plan);

/* The next call. False after the last one. */
bool plan_next(struct plan *plan, struct plan_call *call);

/* Write a line about a call that has ended. Its latency counts from its intended start. */
void plan_report(const struct plan *plan, const struct plan_call *call, unsigned status,
		 uint64_t latency, FILE *file);

/* Now, in microseconds since the epoch. */
uint64_t plan_now(void);

#ifdef __cplusplus
}
#endif
#endif
