/*
 * Arithmetic that several limits share. Pure functions of their arguments.
 */
#ifndef WEIR_LIMITS_COMMON_H
#define WEIR_LIMITS_COMMON_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/limit.h>

/* What every limit of Netflix's accepts as an int. */
#define LIMIT_TOP 2147483647.0

/* The least weight that still moves something within a program's life. */
#define SMOOTHING_MIN 1e-9

/* max(1, floor(log10(limit))), exact. */
static inline uint64_t whole_log10(uint64_t limit)
{
	uint64_t digits = 1;

	for (limit /= 100; limit != 0; limit /= 10)
		digits++;
	return digits;
}

/* max(1, floor(sqrt(limit))), exact: below 2^52 a rounded root has the right floor. */
static inline uint64_t whole_sqrt(uint64_t limit)
{
	return limit < 1 ? 1 : (uint64_t)sqrt((double)limit);
}

/* The allowance that a scale grants at this limit. */
static inline double scale_at(const struct weir_scale *scale, double limit)
{
	uint64_t whole = limit > 0 ? (uint64_t)limit : 0;
	uint64_t k = scale->k, value = k;

	switch (scale->kind) {
	case WEIR_SCALE_LOG10:
		value = k * whole_log10(whole);
		break;
	case WEIR_SCALE_LOG10_PLUS:
		value = k + whole_log10(whole);
		break;
	case WEIR_SCALE_SQRT:
		value = k > whole_sqrt(whole) ? k : whole_sqrt(whole);
		break;
	case WEIR_SCALE_PERCENT:
		value = whole * scale->percent / 100;
		value = k > value ? k : value;
		break;
	case WEIR_SCALE_CONST:
	case WEIR_SCALE_DEFAULT:
		break;
	}
	return (double)value;
}

/* The limit after one step. */
static inline double step_from(const struct weir_step *step, double limit)
{
	switch (step->kind) {
	case WEIR_STEP_ADD_LOG10:
		return limit + step->by * (double)whole_log10(limit > 0 ? (uint64_t)limit : 0);
	case WEIR_STEP_MUL:
		return limit * step->by;
	case WEIR_STEP_ADD:
	case WEIR_STEP_DEFAULT:
		break;
	}
	return limit + step->by;
}

/* Less than half the limit was used: the window says nothing about the limit. */
static inline bool mostly_unused(const struct weir_window *w, double limit)
{
	return 2.0 * w->inflight_max < limit;
}

/* Calls that say overload: nobody had to guess it from their latency. */
static inline uint64_t overloads(const struct weir_window *w)
{
	return (uint64_t)w->dropped + w->timed_out;
}

/* A latency to reckon with: a clock that did not move measured nothing. */
static inline bool has_latency(const struct weir_window *w)
{
	return w->count > 0 && w->rtt > 0;
}

static inline double clamp(double value, double min, double max)
{
	return fmax(min, fmin(max, value));
}

#endif
