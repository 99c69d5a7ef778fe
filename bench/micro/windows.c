/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * windows.c - what closing a window costs the thread that closes it, in virtual time.
 *
 * The same samples go, by weir_sample_at(), into two limiters that differ in one thing: the windows
 * of one end after a number of samples, those of the other never. They take turns, STRETCH windows
 * each, and the difference is the cost of closing: noticing that it is time, collecting all
 * stripes, the limit's update, and publishing. It is a lower bound: in a program the lines of the
 * stripes are in other processors' caches.
 *
 * A limit's update() is also timed alone: the rest of closing is the library's cost.
 */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define STRETCH 50
#define STEP    WEIR_US         /* between two samples */
#define NEVER   (3600 * WEIR_S) /* length of a window that does not end */

struct closing {
	unsigned stripes, samples;
	bool quantile;
};

struct side {
	struct weir_limiter *limiter;
	weir_time now;
	double ns;
};

struct sides {
	struct side closing, open;
	unsigned samples; /* of a window */
};

static struct weir_limiter *side_make(const struct subject *self, weir_dur window)
{
	const struct closing *closing = self->detail;
	struct weir_config config = roomy(self->limit);

	config.windowing = WEIR_WINDOW_TIME;
	config.window_min = config.window_max = window;
	config.window_samples = closing->samples;
	config.stripes = closing->stripes;
	config.rtt = closing->quantile ? WEIR_RTT_QUANTILE : WEIR_RTT_MEAN;
	if (closing->quantile)
		config.quantile = 0.99;
	return limiter_of(&config);
}

/* Half a step less, so that the last sample of the window closes it, not the next one. */
static void *sides_make(const struct subject *self, unsigned threads)
{
	struct sides *sides = must(malloc(sizeof(*sides)));
	const unsigned samples = ((const struct closing *)self->detail)->samples;

	(void)threads;
	*sides = (struct sides){
		.closing.limiter = side_make(self, samples * STEP - STEP / 2),
		.closing.now = WEIR_S,
		.open.limiter = side_make(self, NEVER),
		.open.now = WEIR_S,
		.samples = samples,
	};
	return sides;
}

static void sides_unmake(void *shared)
{
	struct sides *sides = shared;

	weir_limiter_destroy(sides->closing.limiter);
	weir_limiter_destroy(sides->open.limiter);
	free(sides);
}

/* Latencies below 1 us, in no particular order. */
static void feed(struct side *side, uint64_t samples)
{
	const uint64_t began = clock_read();

	for (uint64_t i = 0; i < samples; i++, side->now += STEP) {
		uint64_t rtt = 1 + (side->now * UINT64_C(0x9e3779b97f4a7c15) >> 54);

		weir_sample_at(side->limiter, side->now - rtt, side->now, LIMIT / 2, WEIR_SUCCESS);
	}
	side->ns += (double)(clock_read() - began);
}

static uint64_t windows_of(const struct weir_limiter *limiter)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	return snapshot.windows;
}

/* Count windows that should have been closed and were not, or the reverse, as refused. */
static uint64_t close_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct sides *sides = shared;
	uint64_t closed;

	feed(&sides->closing, 1); /* opens the first window; if one sample is enough, closes it */
	feed(&sides->open, 1);
	closed = windows_of(sides->closing.limiter);
	sides->closing.ns = sides->open.ns = 0;
	for (uint64_t done = 0; done < times; done += STRETCH) {
		uint64_t windows = times - done < STRETCH ? times - done : STRETCH;

		feed(&sides->closing, windows * sides->samples);
		feed(&sides->open, windows * sides->samples);
	}
	worker->ns = sides->closing.ns - sides->open.ns;
	closed = windows_of(sides->closing.limiter) - closed;
	return closed < times ? times - closed : closed - times;
}

/* A limit without a limiter. */
struct algorithm {
	_Alignas(LINE) unsigned char state[WEIR_LIMIT_STATE_MAX];
	const struct weir_limit_ops *ops;
	double initial;
};

static void *algorithm_make(const struct subject *self, unsigned threads)
{
	struct algorithm *algorithm = must(aligned_alloc(LINE, sizeof(*algorithm)));
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];

	(void)threads;
	memset(algorithm, 0, sizeof(*algorithm));
	algorithm->ops = self->limit;
	must_do(weir_limit_complete(self->limit, NULL, 0, config, NULL, 0), "weir_limit_complete");
	algorithm->initial = self->limit->init(algorithm->state, config, 0.5);
	return algorithm;
}

static uint64_t update_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct algorithm *algorithm = shared;
	struct weir_window window = {
		.end = WEIR_S,
		.count = 100,
		.limit = (uint32_t)algorithm->initial,
		.random = 0.5,
	};
	uint64_t wrong = 0;

	(void)worker;
	for (uint64_t i = 0; i < times; i++) {
		double limit;

		window.start = window.end;
		window.end += 100 * WEIR_MS;
		window.inflight_max = window.limit;
		window.rtt_min = (double)WEIR_MS;
		window.rtt_max = (double)(3 * WEIR_MS);
		window.rtt = window.rtt_mean = (double)(WEIR_MS + i % 8 * (100 * WEIR_US));
		limit = algorithm->ops->update(algorithm->state, &window);
		if (limit >= 1 && limit <= WEIR_LIMIT_MAX)
			window.limit = (uint32_t)limit;
		else
			wrong += limit < 0;
	}
	return wrong;
}

#define CLOSING(what, does, and_flags, ...)                                                        \
	{                                                                                          \
		.group = "windows", .name = what, .about = does, .make = sides_make,               \
		.unmake = sides_unmake, .loop = close_loop, .flags = ALONE | (and_flags),          \
		.slow = 20, .detail = &(const struct closing){__VA_ARGS__},                        \
	}

static const struct subject table[] = {
	{
		.group = "windows",
		.name = "update",
		.about = "the limit's update() alone",
		.make = algorithm_make,
		.unmake = free,
		.loop = update_loop,
		.flags = ALONE | EACH_LIMIT,
	},
	CLOSING("close", "closing a window of one sample, one stripe", EACH_LIMIT, .stripes = 1,
		.samples = 1),
	CLOSING("close-2-stripes", "the same, two stripes", 0, .stripes = 2, .samples = 1),
	CLOSING("close-8-stripes", "eight stripes", 0, .stripes = 8, .samples = 1),
	CLOSING("close-64-stripes", "sixty-four stripes", 0, .stripes = 64, .samples = 1),
	CLOSING("close-100-samples", "one stripe, a window of a hundred samples", 0, .stripes = 1,
		.samples = 100),
	CLOSING("close-p99", "with the 99th percentile, one stripe", 0, .stripes = 1, .samples = 1,
		.quantile = true),
	CLOSING("close-p99-8-stripes", "with the 99th percentile, eight stripes", 0, .stripes = 8,
		.samples = 1, .quantile = true),
	CLOSING("close-p99-100-samples", "with the 99th percentile, a hundred samples", 0,
		.stripes = 1, .samples = 100, .quantile = true),
};

void windows_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
