/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampler: calls record their latencies in stripes, one for each CPU. From time to time one
 * thread closes the window and collects what the stripes contain. window_owner.h says which, and
 * sampling.h where the other words are.
 *
 * word          written by                          order    pairs with
 * ------------  ----------------------------------  -------  --------------------------
 * left          leave: or 1, after what it          release  take left: a thread that sees it sees
 *               stands for                                   what was left in the stripes
 * left          take left: exchange 0               acquire  leave
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
 * others,       note, put back: add;                relaxed  nothing: a number
 * others_time   collect: exchange 0
 *
 * Why no sample is lost or counted twice: a sample enters count and sum by one addition to one
 * word, and every word that is collected is collected by an exchange with zero, so each addition is
 * seen by exactly one collector. A word that looks empty is left alone: what is added to it
 * meanwhile is for the next owner. A sample recorded while a window is being collected is counted
 * completely in this window or the next one. Its minimum, maximum and value for the quantile are in
 * words of their own and may be counted in the neighbouring window.
 *
 * Why windows of one sample need not read the stripes: the thread that owns such a window has the
 * sample in hand. Only a thread that finds the window owned records its sample in a stripe, and
 * then sets left, as does every thread that has something else for the next window. Setting left
 * and taking it are read-modify-writes of one word, so several threads that set it continue one
 * release sequence. What is set before the owner takes it is seen by the owner; after that, left
 * stays set for the next owner. An owner that finds calls that are no samples, and no sample, puts
 * them back and sets left again.
 */
#ifndef WEIR_LIB_SAMPLER_H
#define WEIR_LIB_SAMPLER_H

#include "lib/sample/quantile.h"
#include "lib/sample/queue_delay.h"
#include "lib/sample/sampling.h"
#include "lib/sample/thinning.h"
#include "lib/sample/totals.h"
#include "lib/sample/window_owner.h"

void sampler_init(const struct sampling *s);

enum kind { SERVED, DROPPED, TIMED_OUT };

struct sample {
	uint64_t rtt; /* latency in nanoseconds; 0: none */
	uint32_t inflight;
	enum kind kind;
	bool drawn; /* it stands for calls that are no samples too */
};

/*
 * Samples with a latency over the life of the limiter. While a window is being collected it may be
 * too low, never too high.
 */
uint64_t sampler_samples(const struct sampling *s);

/* Successes that were no samples, and all calls that have ended. As above, never too high. */
uint64_t sampler_counted(const struct sampling *s);
uint64_t sampler_ended(const struct sampling *s);

/* Count a call that ended without a latency that counts, for the next window. */
void sampler_note(const struct sampling *s, struct stripe *stripe, uint64_t time);

/*
 * Count a sample. A latency of zero or below the threshold is not recorded, but the drop or timeout
 * still is. False: it is no sample, and waits for the next window.
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
static inline void sampler_queued(const struct sampling *s, struct stripe *stripe, uint64_t delay)
{
	stripe_queued(stripe, delay);
	sampler_leave(s);
}

/*
 * Close the window if it is due, has no owner, and has enough samples. True: *w is filled except
 * for limit and random, and the caller owns the window until it calls sampler_open().
 */
bool sampler_close(const struct sampling *s, weir_time now, struct weir_window *w);

/* The same for windows of one sample, after sampler_note(): with what there is, even no sample. */
bool sampler_close_bare(const struct sampling *s, weir_time now, struct weir_window *w);

/*
 * The same for windows of one sample: count the sample, and close the window with it, or leave it
 * to the thread that owns the window.
 */
bool sampler_close_with(const struct sampling *s, struct stripe *stripe, weir_time now,
			const struct sample *sample, struct weir_window *w);

#endif
