/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random samples into a limiter. Each window is compared with a simple reference model (the twin)
 * that keeps every sample of the window, and every delay of the backend's queue, in an array.
 */

#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS   40
#define SAMPLES 3000
#define KEPT    20000

struct twin {
	struct weir_config config;
	weir_time start, due;
	weir_dur length;
	bool opened;
	uint64_t rtt[KEPT];
	uint32_t count, dropped, timed_out, inflight_max;
	uint32_t cancelled, failed; /* since the last window */
	uint64_t delay[KEPT];
	uint32_t queued;
	double smoothed;
	bool rough; /* smoothed includes a quantile that is approximate */
	uint64_t windows;
};

static struct weir_report seen;
static uint64_t seen_windows;

static void see(void *arg, const struct weir_report *report)
{
	(void)arg;
	seen = *report;
	seen_windows++;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static weir_dur length_for(const struct weir_config *c, uint64_t rtt_min)
{
	if (rtt_min > c->window_max / 2)
		return c->window_max;
	return rtt_min * 2 > c->window_min ? rtt_min * 2 : c->window_min;
}

/* The window expected by the twin; its samples get sorted. */
static double rtt_of(struct twin *t, bool *exact)
{
	uint64_t sum = 0;
	uint32_t rank;

	*exact = true;
	qsort(t->rtt, t->count, sizeof(t->rtt[0]), by_value);
	switch (t->config.rtt) {
	case WEIR_RTT_MIN:
		return (double)t->rtt[0];
	case WEIR_RTT_QUANTILE:
		rank = (uint32_t)floor(t->count * t->config.quantile + 0.5);
		rank = rank > 0 ? rank - 1 : 0;
		*exact = t->count <= 256 && t->rtt[rank] < WEIR_S;
		return (double)t->rtt[rank];
	case WEIR_RTT_DEFAULT:
	case WEIR_RTT_MEAN:
		break;
	}
	for (uint32_t i = 0; i < t->count; i++)
		sum += t->rtt[i];
	return (double)(sum / t->count);
}

static void compare(struct twin *t, weir_time end, uint64_t seed)
{
	const struct weir_window *w = &seen.window;
	bool exact;
	double rtt;

	t->windows++;
	cr_assert_eq(seen_windows, t->windows, "seed %lu: %lu windows for %lu", (unsigned long)seed,
		     (unsigned long)seen_windows, (unsigned long)t->windows);
	cr_assert_eq(w->start, t->opened ? t->start : end);
	cr_assert_eq(w->end, end);
	cr_assert_eq(w->count, t->count, "seed %lu", (unsigned long)seed);
	cr_assert_eq(w->dropped, t->dropped);
	cr_assert_eq(w->timed_out, t->timed_out);
	cr_assert_eq(w->cancelled, t->cancelled);
	cr_assert_eq(w->failed, t->failed);
	t->cancelled = t->failed = 0;
	cr_assert_eq(w->inflight_max, t->inflight_max);
	qsort(t->delay, t->queued, sizeof(t->delay[0]), by_value);
	cr_assert_eq(w->queued, t->queued, "seed %lu", (unsigned long)seed);
	cr_assert_eq(w->queue_min, t->queued > 0 ? (double)t->delay[0] : 0);
	if (t->count == 0) {
		cr_assert(w->rtt == 0 && w->rtt_mean == 0 && w->rtt_min == 0 && w->rtt_max == 0);
		return;
	}
	rtt = rtt_of(t, &exact);
	cr_assert_eq(w->rtt_min, (double)t->rtt[0]);
	cr_assert_eq(w->rtt_max, (double)t->rtt[t->count - 1]);
	if (t->config.rtt_smoothing < 1) {
		if (t->smoothed == 0)
			t->smoothed = rtt;
		t->smoothed += t->config.rtt_smoothing * (rtt - t->smoothed);
		rtt = t->smoothed;
		t->rough |= !exact;
		exact = !t->rough;
	}
	if (exact)
		cr_assert_eq(w->rtt, rtt, "seed %lu: %f for %f", (unsigned long)seed, w->rtt, rtt);
	else
		cr_assert(fabs(w->rtt - rtt) <= rtt / 16, "seed %lu: %f for %f",
			  (unsigned long)seed, w->rtt, rtt);
}

static void clear(struct twin *t, weir_time start)
{
	t->start = start;
	t->count = t->dropped = t->timed_out = t->inflight_max = t->queued = 0;
}

static uint64_t lowest(const struct twin *t)
{
	uint64_t min = UINT64_MAX;

	for (uint32_t i = 0; i < t->count; i++)
		min = t->rtt[i] < min ? t->rtt[i] : min;
	return min;
}

static void close_if_due(struct twin *t, weir_time end, uint64_t seed)
{
	const struct weir_config *c = &t->config;
	weir_dur length = length_for(c, lowest(t));

	if (end <= t->due)
		return;
	if (c->windowing == WEIR_WINDOW_TIME && t->count < c->window_samples) {
		if (c->sparse == WEIR_SPARSE_DISCARD) {
			clear(t, end);
			t->opened = true;
			t->length = length;
			t->due = end + length;
			return;
		}
		if (!t->opened || end < t->start) {
			t->opened = true;
			t->start = end;
			t->length = length;
			t->due = end + length;
			return;
		}
		if (end - t->start < c->window_max) {
			weir_dur rest = c->window_max - (end - t->start);

			t->due = end + (t->length / 4 < rest ? t->length / 4 : rest);
			return;
		}
	}
	compare(t, end, seed);
	clear(t, end);
	t->opened = true;
	t->length = length;
	t->due = c->windowing == WEIR_WINDOW_SAMPLE ? 0 : end + length;
}

static void add(struct twin *t, weir_time start, weir_time end, uint32_t inflight,
		enum weir_outcome outcome, uint64_t seed)
{
	uint64_t rtt = end - start; /* also when the clock wraps */
	bool measured = rtt > 0 && rtt >= t->config.rtt_threshold;

	t->cancelled += outcome == WEIR_CANCELLED;
	t->failed += outcome == WEIR_FAILED;
	if (outcome != WEIR_DROPPED && outcome != WEIR_TIMED_OUT &&
	    (outcome != WEIR_SUCCESS || !measured))
		return;
	t->dropped += outcome == WEIR_DROPPED;
	t->timed_out += outcome == WEIR_TIMED_OUT;
	t->inflight_max = inflight > t->inflight_max ? inflight : t->inflight_max;
	if (measured)
		t->rtt[t->count++] = rtt;
	close_if_due(t, end, seed);
}

/* A fixed limit that asks for queue delays, or does not. */
static const struct weir_limit_ops *some_limit(uint64_t *random)
{
	static struct weir_limit_ops asking;

	asking = weir_fixed;
	asking.flags |= WEIR_LIMIT_QUEUE;
	return below(random, 4) == 0 ? &weir_fixed : &asking;
}

static struct weir_config some_config(uint64_t *random)
{
	static const struct weir_observer observer = {.window = see};
	struct weir_config c;

	weir_config_init(&c);
	c.limit = some_limit(random);
	c.windowing = below(random, 8) == 0 ? WEIR_WINDOW_SAMPLE : WEIR_WINDOW_TIME;
	c.window_min = (1 + below(random, 20)) * WEIR_MS;
	c.window_max = c.window_min + below(random, 100) * WEIR_MS;
	c.window_samples = 1 + below(random, 400);
	c.sparse = below(random, 2) != 0 ? WEIR_SPARSE_EXTEND : WEIR_SPARSE_DISCARD;
	c.rtt_threshold = below(random, 3) == 0 ? 100 * WEIR_US : 0;
	c.rtt = (enum weir_rtt)below(random, 4);
	c.quantile = (1 + below(random, 99)) / 100.0;
	c.rtt_smoothing = below(random, 3) == 0 ? 0.25 : 1;
	c.stripes = c.rtt == WEIR_RTT_QUANTILE ? 1 : 1 + below(random, 4);
	c.observer = &observer;
	return c;
}

static enum weir_outcome some_outcome(uint64_t *random)
{
	static const enum weir_outcome seldom[] = {
		WEIR_DROPPED, WEIR_DROPPED,   WEIR_TIMED_OUT,
		WEIR_IGNORE,  WEIR_CANCELLED, WEIR_FAILED,
	};

	return below(random, 5) == 0 ? seldom[below(random, 6)] : WEIR_SUCCESS;
}

/* Report a queue delay for some calls; some of these hold no permit by then. */
static void report_delay(struct twin *t, struct weir_limiter *limiter, uint64_t *random)
{
	struct weir_token token = {.cost = 1};
	uint64_t delay = below(random, 20) == 0 ? 0 : below(random, 10000000);
	const uint32_t kind = below(random, 8);

	cr_assert_eq(weir_try_acquire_at(limiter, WEIR_S, &token), 0);
	if (kind == 0)
		cr_assert_eq(weir_detach(limiter, &token), 0);
	if (kind == 1)
		weir_release_at(limiter, WEIR_S, &token, WEIR_IGNORE);
	if (kind == 2)
		delay = (uint64_t)-1 - delay; /* a clock that went back */
	weir_queued(limiter, &token, delay);
	if (kind != 1)
		weir_release_at(limiter, WEIR_S, &token, WEIR_IGNORE);
	if (kind > 2 && (t->config.limit->flags & WEIR_LIMIT_QUEUE) != 0)
		t->delay[t->queued++] = delay;
}

static void run(uint64_t seed)
{
	static struct twin twin;
	struct weir_limiter *limiter;
	uint64_t random = seed;
	weir_time end = WEIR_S;
	uint32_t spread;

	twin = (struct twin){.config = some_config(&random)};
	seen_windows = 0;
	spread = 1 + below(&random, 4000000);
	cr_assert_eq(weir_limiter_create(&twin.config, &limiter), 0);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint64_t rtt = below(&random, 50) == 0 ? 0 : 1 + below(&random, spread);
		uint32_t inflight = 1 + below(&random, 100);
		enum weir_outcome outcome = some_outcome(&random);

		if (below(&random, 500) == 0)
			rtt = 9 * WEIR_S +
			      below(&random, 1000); /* does not fit into the packed word */
		end += below(&random, 1000000);
		if (below(&random, 3) == 0)
			report_delay(&twin, limiter, &random);
		weir_sample_at(limiter, end - rtt, end, inflight, outcome);
		add(&twin, end - rtt, end, inflight, outcome, seed);
		cr_assert_eq(seen_windows, twin.windows, "seed %lu, sample %u", (unsigned long)seed,
			     i);
	}
	weir_limiter_destroy(limiter);
}

Test(windows, match_the_reference_model)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed);
}
