/*
 * The sampler: latencies go into stripes, one a CPU; now and then one thread
 * closes the window and reads what came together.
 *
 * word          written by                          order    pairs with
 * ------------  ----------------------------------  -------  --------------------------
 * due           close, hold: CAS, busy bit set      acquire  open, let go: the owner's
 *                                                            plain fields, and the limit's
 *                                                            state, pass from owner to
 *                                                            owner
 * due           open, extend, let go: busy bit      release  close, hold, inherit
 *               cleared
 * due           inherit: CAS of the owner           acquire  open, let go
 * left          leave: or 1, after what it is       release  take one: a thread that sees it sees
 *               about                                        what was left in the stripes
 * left          take one: exchange 0                acquire  leave
 * closing       close, hold: store, CAS from 0      acquire  open: what this process's owner
 *               where the limiter is shared                  of the window left in its scratch
 * closing       open, extend, let go: store 0       release  close, hold, inherit
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
 * octaves       record: or, for good                relaxed  nothing: who misses a bit sees it in
 *                                                            the next window
 * total[i]      anyone: add                         release  sampler_total(): as packed
 *               collect: store, of COLLECTED
 * credits       lib/admission/permit_cache.h
 *
 * Why no sample is lost or counted twice: a sample enters count and sum by one
 * add of one word, and every word that is taken is taken by an exchange with
 * zero, so each add is seen by exactly one taker. A word that looks empty is left: what
 * comes into it meanwhile is for the next owner. A sample recorded while a window is
 * being collected falls in this one or the next, whole; its minimum, maximum
 * and value for the quantile are words of their own and may fall in the neighbour.
 * Delays of the callee's queue are counted in one word with their minimum: a window with
 * some has the lowest of just these. They belong to no sample, and close no window.
 *
 * Why windows of one sample need not look at the stripes: who gets such a window has its sample
 * in hand. Only a thread that finds the window taken records its sample, and then says so in left,
 * as does every thread that has something else for the next window. Setting left and taking it are
 * read-modify-writes of one word, so several threads that set it continue one release sequence.
 * What is set before the owner takes it is seen by the owner; after that, left stays set for the
 * next owner.
 *
 * Why no thread waits: the window is owned through a bit in its deadline. A thread that finds the
 * window due sets the bit or, if it is set already, leaves: the owner, or the next sample after it,
 * sees the same words. A thread that wants what was learned, and no window, has to ask again
 * (sampler_hold()); its caller decides how often, and what to do if the owner is stopped or dead
 * (lib/process/owner_wait.h). A thread that waited for itself would wait for ever, hence the word closing: the
 * owner runs callbacks, and a callback may want what was learned. closing names a thread of this
 * process, so it is the process's own.
 *
 * Why two threads of one process never own the window, whatever is in the block. Where the limiter
 * is shared, another process may store anything in due, and so give the window to a thread while
 * it has an owner. What the owner works on (the pool, the copy of the limit's state, the observer)
 * is the process's own, and out of reach of others. So the owner needs closing too, which is the
 * process's own as well. A thread that finds closing taken leaves due to the thread that has it.
 */
#ifndef WEIR_LIB_SAMPLER_H
#define WEIR_LIB_SAMPLER_H

#include <stdbool.h>

#include "lib/base/current_cpu.h"
#include "lib/sample/histogram.h"
#include "lib/base/layout.h"

/* The word due: a time, or who owns the window, in 63 bits, and which of the two it is. */
#define DUE_BUSY    UINT64_C(1)
#define DUE_AT_ONCE UINT64_C(0)

/* Latencies of a window that a stripe remembers by value; further ones only by bucket. */
#define LOG_MAX 256

/* Full words that a stripe can put aside in a window before count and sum part. */
#define SPILLS 3

/*
 * What a stripe counts for as long as the limiter lives. Admissions and successes
 * are not here: they follow from the rest (lib/limiter/observe.c), and counting them would
 * cost each call two more atomic additions.
 */
enum total {
	TOTAL_COLLECTED,  /* samples with a latency, in windows that are closed */
	TOTAL_UNMEASURED, /* successes, drops and timeouts without a latency */
	TOTAL_DROPPED,    /* with or without */
	TOTAL_TIMED_OUT,  /* with or without */
	TOTAL_IGNORED,
	TOTAL_CANCELLED,
	TOTAL_FAILED,
	TOTAL_REJECTED, /* with those shed */
	TOTAL_SHED,
	TOTAL_ABANDONED,
	TOTAL_BYPASSED,
	TOTAL_WOULD_REJECT,
	TOTAL_PASSED, /* let through, and ended */
	TOTAL_DETACHED,
	TOTAL_DOUBLE_RELEASED,
	TOTAL_REAPED, /* calls that ended with their process */
	TOTALS,
};

struct stripe {
	_Alignas(LINE) _Atomic uint64_t packed; /* count:20 | sum of nanoseconds:44 */
	_Atomic uint64_t cached;                /* lib/admission/permit_cache.h */
	_Atomic uint64_t spilled[SPILLS];       /* the same, put aside; 0: none */
	_Atomic uint64_t wide_count, wide_sum;  /* what does not fit there */
	_Atomic uint64_t min, max;
	_Atomic uint64_t queue; /* delays told:24 | the lowest, in nanoseconds:40 */
	_Atomic uint32_t inflight_max, dropped, timed_out;
	_Alignas(LINE) _Atomic uint64_t total[TOTALS];
};
_Static_assert(sizeof(struct stripe) == (size_t)2 * LINE, "what a success writes is one line");

/* The latencies of a stripe's window, kept if a quantile is asked for. */
struct lane {
	_Alignas(LINE) _Atomic uint64_t log[LOG_MAX];
	_Atomic uint64_t octaves; /* in which there ever was anything, a bit each */
	_Atomic uint32_t bucket[BUCKETS];
};

/* Where the owner puts the lanes together. It is the process's own, as places are counted in it. */
struct pool {
	struct histogram histogram;
	uint64_t value[]; /* LOG_MAX a stripe */
};

/* What never changes. */
struct sampler_config {
	weir_dur window_min, window_max, rtt_threshold;
	uint32_t window_samples;
	uint32_t stripes; /* a power of two */
	uint32_t each_sample, discard, rtt;
	double quantile, rtt_smoothing;
};

struct sampler {
	_Alignas(LINE) _Atomic uint64_t
		due;           /* when the window may close << 1, or its owner << 1 | 1 */
	_Atomic uint32_t left; /* windows of one sample: 1: the stripes have more */

	/* The owner's. */
	_Alignas(LINE) weir_time start;
	weir_dur length;            /* that the window is meant to have */
	double rtt_smoothed;        /* 0: none yet */
	uint64_t cancelled, failed; /* totals, as far as windows have shown them */
};

/* A sampler with its arrays, which lie elsewhere; and what is this process's own. */
struct sampling {
	struct sampler_config config;
	uint32_t owner;             /* this process's number (lib/base/layout.h) */
	_Atomic uintptr_t *closing; /* the thread that has the window; 0: none of this process */
	struct sampler *sampler;
	struct stripe *stripes;
	struct lane *lanes; /* NULL: no quantile is asked for */
	struct pool *pool;
};

size_t pool_size(uint32_t stripes);

void sampler_init(const struct sampling *s);

/* The stripe of the CPU that runs this. Another thread may share it after all: it may move. */
static inline struct stripe *sampler_stripe(const struct sampling *s)
{
	return &s->stripes[processor_now() & (s->config.stripes - 1)];
}

static inline void stripe_count(struct stripe *stripe, enum total which)
{
	atomic_fetch_add_explicit(&stripe->total[which], 1, memory_order_release);
}

enum kind { SERVED, DROPPED, TIMED_OUT };

struct sample {
	uint64_t rtt; /* 0: there is no latency */
	uint32_t inflight;
	enum kind kind;
};

/* The sum of one total over the stripes. */
uint64_t sampler_total(const struct sampling *s, enum total which);

/* Samples with a latency since the beginning: too few while a window is being collected, never too
 * many. */
uint64_t sampler_samples(const struct sampling *s);

/*
 * Count a sample. A latency of zero, or below the threshold, is none, but a drop is a drop
 * all the same, and a timeout too. False if the window has nothing of it.
 */
bool sampler_record(const struct sampling *s, struct stripe *stripe, uint64_t rtt,
		    uint32_t inflight, enum kind kind);

/*
 * Say that a stripe has something for the next window. Windows of one sample do not look there
 * otherwise; for all others it is nothing to do.
 */
static inline void sampler_leave(const struct sampling *s)
{
	if (UNLIKELY(s->config.each_sample))
		atomic_fetch_or_explicit(&s->sampler->left, 1, memory_order_release);
}

/* Count a delay of the callee's queue, of a call that is still in flight. */
void sampler_queued(const struct sampling *s, struct stripe *stripe, uint64_t delay);

/* Times are compared by their difference: a clock may begin anywhere, and wrap. */
static inline bool is_due(uint64_t due, weir_time now)
{
	return due == DUE_AT_ONCE || ((due & DUE_BUSY) == 0 && (int64_t)((now << 1) - due) > 0);
}

/* Whether the window is due and has no owner. Asked by each sample, so it is answered in place. */
static inline bool sampler_due(const struct sampling *s, weir_time now)
{
	return is_due(atomic_load_explicit(&s->sampler->due, memory_order_relaxed), now);
}

/*
 * Close the window if it is due, and nobody else is at it, and it has what it
 * needs. True: *w is filled, but for limit and random, and the caller owns the window
 * until he calls sampler_open().
 */
bool sampler_close(const struct sampling *s, weir_time now, struct weir_window *w);

/*
 * The same where each sample is a window: count it, and close the window with it, or leave it to
 * whoever is at it.
 */
bool sampler_close_with(const struct sampling *s, struct stripe *stripe, weir_time now,
			const struct sample *sample, struct weir_window *w);
void sampler_open(const struct sampling *s, weir_time now);

/*
 * Own the window for an instant, to see or replace what was learned. The window is not closed, and
 * its deadline stays. A thread that owns it already, in a callback, goes on owning it. *due is for
 * sampler_let_go(). False: another thread has it, of the process *owner.
 */
bool sampler_hold(const struct sampling *s, uint64_t *due, uint32_t *owner);
void sampler_let_go(const struct sampling *s, uint64_t due);

/* Own the window that a dead process owned. False: it owned none. Then sampler_open(). */
bool sampler_inherit(const struct sampling *s, uint32_t dead);

#endif
