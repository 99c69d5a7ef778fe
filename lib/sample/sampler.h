/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampler: calls record their latencies in stripes, one for each CPU. From time to time one
 * thread closes the window and collects what the stripes contain.
 *
 * word          written by                          order    pairs with
 * ------------  ----------------------------------  -------  --------------------------
 * due           close, hold: CAS, busy bit set      acquire  open, let go: the owner's
 *                                                            plain fields, and the limit's
 *                                                            state, pass from owner to
 *                                                            owner
 * due           open, extend, let go: busy bit      release  close, hold, recover
 *               cleared
 * due           recover: CAS of the owner           acquire  open, let go
 * left          leave: or 1, after what it          release  take left: a thread that sees it sees
 *               stands for                                   what was left in the stripes
 * left          take left: exchange 0               acquire  leave
 * closing       close, hold: store, CAS from 0      acquire  open: what this process's owner
 *               where the limiter is shared                  of the window left in its scratch
 * closing       open, extend, let go: store 0       release  close, hold, recover
 * packed        record: add one sample              release  sampler_samples(): a call that
 *                                                            is counted has left the gate
 * packed        spill, collect: exchange 0          acquire  record: carries that on to the
 *                                                            reader of where it goes
 * spilled[i]    spill: CAS from 0                   release  sampler_samples(): packed, as it
 *                                                            was emptied
 * spilled[i]    collect: exchange 0                 acquire  as packed
 * wide_count    record, spill: add                  release  as packed and spilled
 * wide_count    collect: exchange 0                 acquire  as packed
 * wide_sum      record, spill: add                  relaxed  nothing: a number
 *               collect: exchange 0
 * min, max,     record: CAS when beaten             relaxed  nothing: a number
 * inflight_max  collect: exchange
 * dropped,      record: add; collect: exchange 0    relaxed  nothing: a number
 * timed_out
 * queue         queued: CAS; collect: exchange 0    relaxed  nothing: a number
 * log[i]        record: store; collect: exchange    relaxed  nothing: a number
 * bucket[i]     record: add; collect: exchange 0    relaxed  nothing: a number
 * octaves       record: or, for good                relaxed  nothing: an owner that misses a bit
 *                                                            sees it in the next window
 * total[i]      anyone: add                         release  sampler_total(): as packed
 *               collect: store, of COLLECTED
 * cached        lib/admission/permit_cache.h
 *
 * Why no sample is lost or counted twice: a sample enters count and sum by one addition to one
 * word, and every word that is collected is collected by an exchange with zero, so each addition is
 * seen by exactly one collector. A word that looks empty is left alone: what is added to it
 * meanwhile is for the next owner. A sample recorded while a window is being collected is counted
 * completely in this window or the next one. Its minimum, maximum and value for the quantile are in
 * words of their own and may be counted in the neighbouring window. Delays of the backend's queue
 * are counted in one word with their minimum: a window with delays has exactly their minimum. They
 * belong to no sample, and close no window.
 *
 * Why windows of one sample need not read the stripes: the thread that owns such a window has the
 * sample in hand. Only a thread that finds the window owned records its sample in a stripe, and
 * then sets left, as does every thread that has something else for the next window. Setting left
 * and taking it are read-modify-writes of one word, so several threads that set it continue one
 * release sequence. What is set before the owner takes it is seen by the owner; after that, left
 * stays set for the next owner.
 *
 * Why no thread waits: the window is owned through a bit in its deadline. A thread that finds the
 * window due sets the bit or, if it is set already, leaves: the owner, or the next sample after it,
 * sees the same words. A thread that needs what was learned, and not a window, has to try again
 * (sampler_hold()). Its caller decides how often, and what to do if the owner is stopped or dead
 * (lib/process/owner_wait.h). The owner runs callbacks, and a callback may need what was learned; a
 * thread that waited for itself would wait for ever. Hence the word closing, which names the owning
 * thread. It is private to the process, because it names one of its threads.
 *
 * Why two threads of one process never own the window, whatever the block contains. In a shared
 * limiter, another process may store anything in due, and so give the window to a thread while it
 * has an owner. What the owner works on (the pool, the copy of the limit's state, the observer) is
 * private to the process, out of reach of others. So the owner must also take closing, which is
 * private as well. A thread that finds closing taken leaves due to the thread that has it.
 */
#ifndef WEIR_LIB_SAMPLER_H
#define WEIR_LIB_SAMPLER_H

#include <stdbool.h>

#include "lib/base/current_cpu.h"
#include "lib/sample/histogram.h"
#include "lib/base/layout.h"

/* The word due: in the upper 63 bits a time or the window's owner; bit 0 says which. */
#define DUE_BUSY    UINT64_C(1)
#define DUE_AT_ONCE UINT64_C(0)

/* Latencies of a window that a stripe stores by value; further ones are only counted in buckets. */
#define LOG_MAX 256

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
	_Atomic uint64_t queue; /* delays reported:24 | lowest, in nanoseconds:40 */
	_Atomic uint32_t inflight_max, dropped, timed_out;
	_Alignas(LINE) _Atomic uint64_t total[TOTALS];
};
_Static_assert(sizeof(struct stripe) == (size_t)2 * LINE, "what a success writes is one line");

/* The latencies of a stripe's window, kept only for limiters with a quantile. */
struct lane {
	_Alignas(LINE) _Atomic uint64_t log[LOG_MAX];
	_Atomic uint64_t octaves; /* octaves ever used, one bit each */
	_Atomic uint32_t bucket[BUCKETS];
};

/* Where the owner merges the lanes. Private to the process, as it is indexed without checks. */
struct pool {
	struct histogram histogram;
	uint64_t value[]; /* LOG_MAX for each stripe */
};

/* Constant. */
struct sampler_config {
	weir_dur window_min, window_max, rtt_threshold;
	uint32_t window_samples;
	uint32_t stripes; /* a power of two */
	uint32_t each_sample, discard, rtt;
	double quantile, rtt_smoothing;
};

struct sampler {
	/* When the window may close << 1, or its owner << 1 | 1. */
	_Alignas(LINE) _Atomic uint64_t due;
	_Atomic uint32_t left; /* windows of one sample: 1: stripes have samples */

	/* Written by the window's owner only. */
	_Alignas(LINE) weir_time start;
	weir_dur length;            /* intended length of the window */
	double rtt_smoothed;        /* in nanoseconds; 0: none yet */
	uint64_t cancelled, failed; /* totals when the last window was closed */
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

size_t pool_size(uint32_t stripes);

void sampler_init(const struct sampling *s);

/* The stripe of the current CPU. A thread that moves meanwhile shares it with another. */
static inline struct stripe *sampler_stripe(const struct sampling *s)
{
	return &s->stripes[current_cpu() & (s->config.stripes - 1)];
}

static inline void stripe_count(struct stripe *stripe, enum total which)
{
	atomic_fetch_add_explicit(&stripe->total[which], 1, memory_order_release);
}

enum kind { SERVED, DROPPED, TIMED_OUT };

struct sample {
	uint64_t rtt; /* latency in nanoseconds; 0: none */
	uint32_t inflight;
	enum kind kind;
};

/* The sum of one total over the stripes. */
uint64_t sampler_total(const struct sampling *s, enum total which);

/*
 * Samples with a latency over the life of the limiter. While a window is being collected it may be
 * too low, never too high.
 */
uint64_t sampler_samples(const struct sampling *s);

/*
 * Count a sample. A latency of zero or below the threshold is not recorded, but the drop or timeout
 * still is. False: nothing was added to the window.
 */
bool sampler_record(const struct sampling *s, struct stripe *stripe, uint64_t rtt,
		    uint32_t inflight, enum kind kind);

/*
 * Note that a stripe has something for the next window. Only windows of one sample need this; they
 * do not read the stripes otherwise.
 */
static inline void sampler_leave(const struct sampling *s)
{
	if (UNLIKELY(s->config.each_sample))
		atomic_fetch_or_explicit(&s->sampler->left, 1, memory_order_release);
}

/* Count a delay of the backend's queue, for a call that is still in flight. */
void sampler_queued(const struct sampling *s, struct stripe *stripe, uint64_t delay);

/* Times are compared by difference, because a clock may start anywhere and wrap. */
static inline bool is_due(uint64_t due, weir_time now)
{
	return due == DUE_AT_ONCE || ((due & DUE_BUSY) == 0 && (int64_t)((now << 1) - due) > 0);
}

/* Whether the window is due and has no owner. Inline, because every sample checks it. */
static inline bool sampler_due(const struct sampling *s, weir_time now)
{
	return is_due(atomic_load_explicit(&s->sampler->due, memory_order_relaxed), now);
}

/*
 * Close the window if it is due, has no owner, and has enough samples. True: *w is filled except
 * for limit and random, and the caller owns the window until it calls sampler_open().
 */
bool sampler_close(const struct sampling *s, weir_time now, struct weir_window *w);

/*
 * The same for windows of one sample: count the sample, and close the window with it, or leave it
 * to the thread that owns the window.
 */
bool sampler_close_with(const struct sampling *s, struct stripe *stripe, weir_time now,
			const struct sample *sample, struct weir_window *w);
void sampler_open(const struct sampling *s, weir_time now);

/*
 * Own the window for a moment, to read or replace what was learned. The window is not closed, and
 * its deadline stays. A thread that owns it already, in a callback, goes on owning it. Pass *due to
 * sampler_let_go(). False: another thread owns it, of process *owner.
 */
bool sampler_hold(const struct sampling *s, uint64_t *due, uint32_t *owner);
void sampler_let_go(const struct sampling *s, uint64_t due);

/* Take over a dead process's window. True: call sampler_open() then. False: it owned none. */
bool sampler_recover(const struct sampling *s, uint32_t dead);

#endif
