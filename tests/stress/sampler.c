/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads record samples as fast as they can, and a thread that finds a window due closes it: every
 * sample is in exactly one window, count and sum together.
 *
 *   stress-sampler [SAMPLES [THREADS]]
 *
 * All latencies are equal, so a window in which one sample was counted and not summed, or the
 * reverse, has another mean. Delays of the backend's queue are reported beside: each is in exactly
 * one window, and every window with delays has exactly their lowest. The same holds for each call
 * that is no sample because it was cancelled.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/weir.h>

#include "check.h"

#define RTT 1234567

static struct weir_limiter *limiter;

/* Only the window's owner writes these. */
static uint64_t windows, counted, dropped, inflight_max, queued, cancelled;

/* Queue delays, in nanoseconds: at least this, at most twice this. */
#define DELAY 5000

/* Observers see windows without a sample only if these change the limit. */
static void count_window(void *arg, const struct weir_report *report)
{
	(void)arg;
	(void)report;
	windows++;
}

static double count_calls(void *state, const struct weir_window *w)
{
	counted += w->count;
	dropped += w->dropped;
	if (w->inflight_max > inflight_max)
		inflight_max = w->inflight_max;
	queued += w->queued;
	cancelled += w->cancelled;
	CHECK(w->queued > 0 ? w->queue_min >= DELAY && w->queue_min < 2 * DELAY
			    : w->queue_min == 0);
	CHECK(w->count == 0 || (uint64_t)w->rtt_mean == RTT);
	return weir_fixed.update(state, w);
}

struct recorder {
	_Alignas(128) uint64_t seed;
	bool plain; /* only samples */
	uint64_t samples, dropped, queued, cancelled;
};

static _Atomic uint64_t now;

static void *record(void *arg)
{
	struct recorder *r = arg;
	struct weir_token token;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	for (uint64_t i = 0; i < r->samples; i++) {
		uint64_t end = atomic_load_explicit(&now, memory_order_relaxed);
		bool drop = draw(&r->seed) % 16 == 0;

		if (i % 64 == 0)
			end = atomic_fetch_add_explicit(&now, WEIR_US, memory_order_relaxed);
		weir_sample_at(limiter, end - RTT, end, (uint32_t)(i % 1000),
			       drop ? WEIR_DROPPED : WEIR_SUCCESS);
		r->dropped += drop;
		if (!r->plain && draw(&r->seed) % 8 == 0) {
			weir_sample_at(limiter, end - RTT, end, 1, WEIR_CANCELLED);
			r->cancelled++;
		}
		if (!r->plain && i % 4 == 0) {
			weir_queued(limiter, &token, DELAY + draw(&r->seed) % DELAY);
			r->queued++;
		}
	}
	weir_release(limiter, &token, WEIR_IGNORE);
	return NULL;
}

static void run(enum weir_windowing windowing, enum weir_rtt rtt, bool plain, uint64_t samples,
		unsigned threads)
{
	static const struct weir_observer observer = {.window = count_window};
	static const struct weir_fixed_config room = {.limit = THREADS_MAX};
	static struct recorder recorders[THREADS_MAX];
	static struct weir_limit_ops asking;
	struct weir_config config;
	struct weir_snapshot s;
	struct crew crew;
	uint64_t drops = 0, delays = 0, given_up = 0;

	weir_config_init(&config);
	asking = weir_fixed;
	asking.flags |= WEIR_LIMIT_QUEUE | WEIR_LIMIT_CANCELLED;
	asking.update = count_calls;
	config.limit = &asking;
	config.limit_config = &room;
	config.windowing = windowing;
	config.window_min = 100 * WEIR_US;
	config.window_max = WEIR_MS;
	config.rtt = rtt;
	config.stripes = 4;
	config.observer = &observer;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	windows = counted = dropped = inflight_max = queued = cancelled = 0;
	atomic_store_explicit(&now, WEIR_S, memory_order_relaxed);

	for (unsigned i = 0; i < threads; i++) {
		recorders[i] = (struct recorder){
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.plain = plain,
			.samples = samples / threads,
		};
	}
	crew_start(&crew, threads, record, (char *)recorders, sizeof(recorders[0]));
	crew_join(&crew);

	/* One more sample, far in the future, closes the last window. */
	weir_sample_at(limiter, UINT64_C(1) << 60, (UINT64_C(1) << 60) + RTT, 1, WEIR_SUCCESS);
	for (unsigned i = 0; i < threads; i++) {
		drops += recorders[i].dropped;
		delays += recorders[i].queued;
		given_up += recorders[i].cancelled;
	}
	printf("%llu samples in %llu windows, %llu of them dropped\n", (unsigned long long)counted,
	       (unsigned long long)windows, (unsigned long long)dropped);
	CHECK(counted == samples / threads * threads + 1);
	CHECK(dropped == drops);
	CHECK(queued == delays);
	CHECK(cancelled == given_up);
	CHECK(inflight_max == 999);
	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.succeeded + s.dropped == counted && s.dropped == dropped);
	CHECK(s.windows == windows);
	weir_limiter_destroy(limiter);
}

int main(int argc, char **argv)
{
	uint64_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;

	if (threads < 1 || threads > THREADS_MAX || samples / 4 / threads < 1000) {
		fprintf(stderr, "stress-sampler: 1 to %d threads, at least 4000 samples each\n",
			THREADS_MAX);
		return 2;
	}
	run(WEIR_WINDOW_TIME, WEIR_RTT_MEAN, false, samples / 4, threads);
	run(WEIR_WINDOW_TIME, WEIR_RTT_QUANTILE, false, samples / 4, threads);
	run(WEIR_WINDOW_SAMPLE, WEIR_RTT_MEAN, false, samples / 4, threads);
	run(WEIR_WINDOW_SAMPLE, WEIR_RTT_MEAN, true, samples / 4, threads);
	return 0;
}
