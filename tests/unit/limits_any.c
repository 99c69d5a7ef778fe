/*
 * limits_any.c - what no limit may do, whatever it is fed: end as what is no limit, or do twice
 * what it does not do again; or harm, whatever its state is.
 */
#include "limits.h"

#include <math.h>
#include <stdlib.h>

#define WINDOWS 20000

static double draw(unsigned short seed[3])
{
	return erand48(seed);
}

/* Mostly ordinary, and now and then beyond all sense. */
static uint32_t draw_count(unsigned short seed[3], uint32_t ordinary)
{
	const double luck = draw(seed);

	if (luck < 0.05)
		return 0;
	return luck < 0.06 ? UINT32_MAX : (uint32_t)(draw(seed) * ordinary);
}

static double draw_rtt(unsigned short seed[3])
{
	const double luck = draw(seed);

	if (luck < 0.02)
		return 0;
	if (luck < 0.04)
		return 1;
	return luck < 0.05 ? 1.8e19 : 10 * MS * -log(1 - draw(seed));
}

/* Of any kind there may be, sense in it or not; each begins where it likes. */
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
	};

	w.end = draw(seed) < 0.02 ? w.start - WEIR_S : w.start + (weir_dur)(draw(seed) * 2e9);
	if (draw(seed) < 0.01)
		w.end = UINT64_MAX;
	w.rtt_mean = w.rtt_min = w.rtt_max = w.rtt;
	return w;
}

/* What two of them make of a window, which is the same. */
static void feed_both(struct subject *s, struct subject *again, const struct weir_window *w)
{
	s->limit = s->ops->update(s->state, w);
	again->limit = again->ops->update(again->state, w);
	cr_assert(isfinite(s->limit) && s->limit >= 1 && s->limit == again->limit, "%s: %g and %g",
		  s->ops->name, s->limit, again->limit);
}

static void storm(const struct weir_limit_ops *ops, unsigned short number)
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

Test(limits, any_windows_leave_a_limit)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		for (unsigned short k = 0; k < 3; k++)
			storm(ops, k);
}

/*
 * A state comes back from a file, perhaps (weir_limiter_load()), and its checksum keeps nobody from
 * writing another. It may make a limit answer anything, but do nothing else.
 */
static void forge(const struct subject *sound, size_t at, const void *bytes, size_t size)
{
	unsigned short seed[3] = {5, 7, 19};
	struct subject s = *sound;
	double values[WEIR_NUMBERS_MAX];

	memcpy(s.state + at, bytes, size);
	for (int i = 0; i < 30; i++) {
		struct weir_window w = draw_window(seed);

		if (i % 10 == 0) /* each may be a step, as each was a call */
			w.dropped = w.timed_out = UINT32_MAX;
		(void)s.ops->update(s.state, &w);
	}
	if (s.ops->observe != NULL)
		s.ops->observe(s.state, values);
}

static void forge_all(const struct weir_limit_ops *ops, int windows)
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
			forge(&s, at, &reals[i], sizeof(reals[i]));
	for (size_t at = 0; at + sizeof(wholes[0]) <= ops->state_size; at += sizeof(wholes[0]))
		for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
			forge(&s, at, &wholes[i], sizeof(wholes[i]));
}

Test(limits, any_state_does_no_harm)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		forge_all(ops, 0);
		forge_all(ops, 200);
	}
}
