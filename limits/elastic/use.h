/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * use.h - how much of the limit is in use, and how many calls end.
 *
 * By Little's law, the time that all calls were in flight is the mean number in flight times the
 * time that has passed. So the load needs no clock of its own, and counts every call, sample or
 * not.
 *
 * The rate at which calls end, whatever their outcome, is known before their latencies are: calls
 * that were admitted before a collapse began do not show it, but far fewer of them end.
 */
#ifndef WEIR_LIMITS_USE_H
#define WEIR_LIMITS_USE_H

#include <weir/limit.h>

/* All zero at first. */
struct use {
	double since;    /* when the epoch began, nanoseconds */
	double busy;     /* time in flight of the calls that have ended since, nanoseconds */
	float ended;     /* these calls */
	float full;      /* nanoseconds since then, times the fraction of the limit in use */
	float at, used;  /* at the last window: time since then, and that fraction */
	float load;      /* fraction of the limit in use, of the last epochs */
	float rate;      /* calls that ended in a nanosecond, in the epoch before */
	float rate_used; /* the same, in a nanosecond of full */
	float before;    /* calls that ended in the epoch before */
};

/*
 * Count the calls that have ended, the time that they were in flight, and that the limit was in
 * use.
 */
void use_add(struct use *u, const struct weir_window *w, double limit);

/*
 * An epoch ends. Returns the change of the rate at which calls end, in ln X, since the epoch
 * before. Between two bunches few calls end because there are few: so the rate in the time that
 * the limit was in use counts if it has fallen less. A fall counts less by two standard errors of
 * the two numbers of calls: of few calls, fewer may have ended by chance.
 */
double use_change(struct use *u, double now);

/*
 * Then the next epoch begins. limit: the calls that could have been in flight, on average. Returns
 * how many were; below 0 if no time has passed.
 */
double use_begin(struct use *u, double limit, double now);

#endif
