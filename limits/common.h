/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arithmetic that several limits share. Pure functions of their arguments.
 */
#ifndef WEIR_LIMITS_COMMON_H
#define WEIR_LIMITS_COMMON_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/limit.h>

/* Highest limit that a parameter may set, calls: INT_MAX, as in Netflix's limits. */
#define LIMIT_TOP 2147483647.0

/* Lowest weight of a new value: a lower one would change nothing within a program's life. */
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

/* A limit in whole calls; safe for values that only a corrupted state can contain. */
static inline uint64_t whole_limit(double limit)
{
	return limit > 0 ? (uint64_t)fmin(limit, LIMIT_TOP) : 0;
}

/* The value of a scale at this limit, calls. */
static inline double scale_at(const struct weir_scale *scale, double limit)
{
	uint64_t whole = whole_limit(limit);
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
		return limit + step->by * (double)whole_log10(whole_limit(limit));
	case WEIR_STEP_MUL:
		return limit * step->by;
	case WEIR_STEP_ADD:
	case WEIR_STEP_DEFAULT:
		break;
	}
	return limit + step->by;
}

/* Whether less than half the limit was used: the window then carries no information about it. */
static inline bool mostly_unused(const struct weir_window *w, double limit)
{
	return 2.0 * w->inflight_max < limit;
}

/* Calls whose outcome signals overload, whatever their latency. */
static inline uint64_t overloads(const struct weir_window *w)
{
	return (uint64_t)w->dropped + w->timed_out;
}

/* The samples of a window, with a latency or without. */
static inline double samples_of(const struct weir_window *w)
{
	return fmax(w->count, (double)overloads(w));
}

/* The calls that they stand for. */
static inline double calls_of(const struct weir_window *w)
{
	return fmax(w->calls, samples_of(w));
}

/* The calls that each of them stands for, on average. */
static inline double each_of(const struct weir_window *w)
{
	return samples_of(w) > 0 ? calls_of(w) / samples_of(w) : 1;
}

/* Whether the window has a usable latency; 0 means that the clock did not advance. */
static inline bool has_latency(const struct weir_window *w)
{
	return w->count > 0 && w->rtt > 0;
}

static inline double clamp(double value, double min, double max)
{
	return fmax(min, fmin(max, value));
}

/* How long the window was open, in nanoseconds; 0 if the clock went back. */
static inline double lasted(const struct weir_window *w)
{
	return fmax(0, (double)(int64_t)(w->end - w->start));
}

/* Several windows gathered to one, for limits that choose the length of their windows. */
struct gathered {
	double lasted;   /* nanoseconds */
	double calls;    /* that the samples stand for */
	double overload; /* of these, dropped or timed out */
	double count;    /* of these, with a latency */
	double sum;      /* of the latencies, nanoseconds */
	double inflight_max;
};

static inline void gather(struct gathered *g, const struct weir_window *w)
{
	const double count = has_latency(w) ? w->count * each_of(w) : 0;

	g->lasted += lasted(w);
	g->calls += fmax(count, (double)overloads(w));
	g->overload += (double)overloads(w);
	g->count += count;
	g->sum += count * w->rtt;
	g->inflight_max = fmax(g->inflight_max, w->inflight_max);
}

/* An exponential moving average; a plain mean until it has seen EMA_WARMUP values. */
struct ema {
	double value;
	double sum;   /* of the first EMA_WARMUP values */
	double count; /* values so far, up to EMA_WARMUP */
};

/* Values that the plain mean covers: as in Netflix's ExpAvgMeasurement. */
#define EMA_WARMUP 10

/* Add a value to an average over `over` values. */
static inline void ema_add(struct ema *e, double value, double over)
{
	if (e->count < EMA_WARMUP) {
		e->count += 1;
		e->sum += value;
		e->value = e->sum / e->count;
	} else {
		double factor = 2.0 / (over + 1);

		e->value = e->value * (1 - factor) + value * factor;
	}
}

#endif
