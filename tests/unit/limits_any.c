/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_any.c - properties of every limit: whatever windows it is fed, it returns a valid limit
 * and is reproducible; whatever its state is, it does no harm.
 */
#include "limits.h"

#include "limits/common.h"

#include <math.h>
#include <stdlib.h>

#define WINDOWS 20000

static double draw(unsigned short seed[3])
{
	return erand48(seed);
}

/* Mostly an ordinary count, sometimes an absurd one. */
static uint32_t draw_count(unsigned short seed[3], uint32_t ordinary)
{
	const double kind = draw(seed);

	if (kind < 0.05)
		return 0;
	return kind < 0.06 ? UINT32_MAX : (uint32_t)(draw(seed) * ordinary);
}

static double draw_rtt(unsigned short seed[3])
{
	const double kind = draw(seed);

	if (kind < 0.02)
		return 0;
	if (kind < 0.04)
		return 1;
	return kind < 0.05 ? 1.8e19 : 10 * MS * -log(1 - draw(seed));
}

/* Any window, plausible or not; windows do not follow each other in time. */
static struct weir_window draw_window(unsigned short seed[3])
{
	struct weir_window w = {
		.start = draw(seed) < 0.02 ? 0 : (weir_time)(draw(seed) * 1e15),
		.count = draw_count(seed, 500),
		.dropped = draw(seed) < 0.1 ? draw_count(seed, 20) : 0,
		.timed_out = draw(seed) < 0.1 ? draw_count(seed, 20) : 0,
		.cancelled = draw_count(seed, 20),
		.failed = draw_count(seed, 20),
		.inflight_max = draw_count(seed, 300),
		.limit = 1 + (uint32_t)(draw(seed) * 300),
		.rtt = draw_rtt(seed),
		.random = draw(seed),
		.calls = draw(seed) < 0.5 ? 0 : draw_count(seed, 5000),
	};

	w.end = draw(seed) < 0.02 ? w.start - WEIR_S : w.start + (weir_dur)(draw(seed) * 2e9);
	if (draw(seed) < 0.01)
		w.end = UINT64_MAX;
	w.rtt_mean = w.rtt_min = w.rtt_max = w.rtt;
	return w;
}

/* Feed a window to two limits in the same state: both must return the same valid limit, or pause. */
static void feed_both(struct subject *s, struct subject *again, const struct weir_window *w)
{
	s->limit = s->ops->update(s->state, w);
	again->limit = again->ops->update(again->state, w);
	cr_assert(isfinite(s->limit) && (s->limit >= 1 || is_pause(s->ops, s->limit)) &&
			  s->limit == again->limit,
		  "%s: %g and %g", s->ops->name, s->limit, again->limit);
}

static void feed_random_windows(const struct weir_limit_ops *ops, unsigned short number)
{
	unsigned short seed[3] = {number, 7, 19};
	struct subject s, again;

	start_random(&s, ops, "", draw(seed));
	again = s;
	for (int i = 0; i < WINDOWS; i++) {
		const struct weir_window w = draw_window(seed);

		feed_both(&s, &again, &w);
	}
	cr_assert_arr_eq(s.state, again.state, sizeof(s.state), "%s", ops->name);
}

Test(limits, return_a_valid_limit_for_any_window)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		for (unsigned short k = 0; k < 3; k++)
			feed_random_windows(ops, k);
}

/*
 * A state may come from a file (weir_limiter_load()), and its checksum does not protect against
 * deliberate changes. A corrupted state may make a limit return anything, but must do nothing else.
 */
static void corrupt(const struct subject *sound, size_t at, const void *bytes, size_t size)
{
	unsigned short seed[3] = {5, 7, 19};
	struct subject s = *sound;
	double values[WEIR_NUMBERS_MAX];

	memcpy(s.state + at, bytes, size);
	for (int i = 0; i < 30; i++) {
		struct weir_window w = draw_window(seed);

		if (i % 10 == 0) /* a limit may loop over these calls */
			w.dropped = w.timed_out = UINT32_MAX;
		(void)s.ops->update(s.state, &w);
	}
	if (s.ops->observe != NULL)
		s.ops->observe(s.state, values);
}

static void corrupt_all(const struct weir_limit_ops *ops, int windows)
{
	static const double reals[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e-300, 1e300};
	static const uint32_t wholes[] = {0, 1, 63, 1000, INT32_MAX, UINT32_MAX};
	unsigned short seed[3] = {3, 7, 19};
	struct subject s;

	start(&s, ops, "");
	for (int i = 0; i < windows; i++) {
		const struct weir_window w = draw_window(seed);

		s.limit = ops->update(s.state, &w);
	}
	for (size_t at = 0; at + sizeof(reals[0]) <= ops->state_size; at += sizeof(reals[0]))
		for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
			corrupt(&s, at, &reals[i], sizeof(reals[i]));
	for (size_t at = 0; at + sizeof(wholes[0]) <= ops->state_size; at += sizeof(wholes[0]))
		for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
			corrupt(&s, at, &wholes[i], sizeof(wholes[i]));
}

Test(limits, do_no_harm_in_any_state)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		corrupt_all(ops, 0);
		corrupt_all(ops, 200);
	}
}

Test(limits_any, a_window_without_samples_stands_for_no_number_of_calls_each)
{
	const struct weir_window none = {.calls = 5}, all = {.count = 4},
				 some = {.count = 4, .calls = 10};

	cr_assert(each_of(&none) == 1 && each_of(&all) == 1 && each_of(&some) == 2.5);
}
