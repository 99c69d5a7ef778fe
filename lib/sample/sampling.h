/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of a sampler: a stripe for each CPU, and what is there once. Each part has its own
 * functions, and the ledger of its words: sampler.h (samples and windows), thinning.h, totals.h,
 * quantile.h, queue_delay.h and window_owner.h. The word cached belongs to
 * lib/admission/permit_cache.h.
 */
#ifndef WEIR_LIB_SAMPLING_H
#define WEIR_LIB_SAMPLING_H

#include <stdbool.h>

#include <weir/limit.h>

#include "lib/base/current_cpu.h"
#include "lib/base/layout.h"

/* Full words that a stripe can put aside in a window before count and sum must be split. */
#define SPILLS 3

/*
 * Totals that a stripe counts over the life of the limiter. Admissions and successes are not among
 * them: they follow from the others (lib/limiter/observe.c), and counting them would cost each call
 * two more atomic additions.
 */
enum total {
	TOTAL_COLLECTED,  /* samples with a latency, in closed windows */
	TOTAL_UNMEASURED, /* successes, drops and timeouts without a latency */
	TOTAL_DROPPED,    /* with or without a latency */
	TOTAL_TIMED_OUT,  /* with or without a latency */
	TOTAL_IGNORED,
	TOTAL_CANCELLED,
	TOTAL_FAILED,
	TOTAL_REJECTED, /* including those shed */
	TOTAL_SHED,
	TOTAL_ABANDONED,
	TOTAL_BYPASSED,
	TOTAL_WOULD_REJECT,
	TOTAL_PASSED, /* let through without a permit, and ended */
	TOTAL_DETACHED,
	TOTAL_DOUBLE_RELEASED,
	TOTAL_REAPED, /* calls that ended with their process */
	TOTALS,
};

struct stripe {
	_Alignas(LINE) _Atomic uint64_t packed; /* count:20 | sum of nanoseconds:44 */
	_Atomic uint64_t cached;                /* lib/admission/permit_cache.h */
	_Atomic uint64_t spilled[SPILLS];       /* packed words put aside; 0: none */
	_Atomic uint64_t wide_count, wide_sum;  /* samples that do not fit there */
	_Atomic uint64_t min, max;
	_Atomic uint64_t queue;       /* delays reported:24 | lowest, in nanoseconds:40 */
	_Atomic uint64_t others_time; /* of calls that ended and are no samples, nanoseconds */
	_Atomic uint64_t counted;     /* successes that were no samples; only grows */
	_Atomic uint32_t others;      /* number of calls in others_time */
	_Atomic uint32_t inflight_max, dropped, timed_out;
	_Atomic uint32_t skip; /* calls until the next sample (lib/sample/thinning.h) */
	_Alignas(LINE) _Atomic uint64_t total[TOTALS];
};
_Static_assert(sizeof(struct stripe) == (size_t)2 * LINE, "what a success writes is one line");

/* Constant. */
struct sampler_config {
	weir_dur window_min, window_max, rtt_threshold;
	uint32_t window_samples;
	uint32_t stripes; /* a power of two */
	uint32_t each_sample, discard, rtt;
	double quantile, rtt_smoothing;
	weir_dur interval;    /* between two samples, on average, at least; 0: each call is one */
	uint32_t thins_given; /* bool: also calls for which the program reads the clock */
};

struct sampler {
	/* When the window may close << 1, or its owner << 1 | 1. */
	_Alignas(LINE) _Atomic uint64_t due;
	_Atomic uint32_t left;         /* windows of one sample: 1: stripes have samples */
	_Atomic uint32_t each;         /* calls that a sample stands for (lib/sample/thinning.h) */
	_Atomic uint64_t paced, ended; /* when they were last counted, and their number */

	/* Written by the window's owner only. */
	_Alignas(LINE) weir_time start;
	weir_dur length;            /* intended length of the window */
	double rtt_smoothed;        /* in nanoseconds; 0: none yet */
	uint64_t cancelled, failed; /* totals when the last window was closed */
	uint64_t counted;           /* likewise, the sum over the stripes */
};

/* A process's view of a sampler: pointers to its arrays, and what is private to the process. */
struct sampling {
	struct sampler_config config;
	uint32_t owner;             /* this process's number (lib/base/layout.h) */
	_Atomic uintptr_t *closing; /* thread that owns the window; 0: none here */
	struct sampler *sampler;
	struct stripe *stripes;
	struct lane *lanes; /* NULL: no quantile is needed */
	struct pool *pool;
};

/* The stripe of the current CPU. A thread that moves meanwhile shares it with another. */
static inline struct stripe *sampler_stripe(const struct sampling *s)
{
	return &s->stripes[current_cpu() & (s->config.stripes - 1)];
}

#endif
