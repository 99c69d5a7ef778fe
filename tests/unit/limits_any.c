/*
 * limits_any.c - what no limit may do, whatever it is fed: end as what is no limit, or do twice
 * what it does not do again.
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
