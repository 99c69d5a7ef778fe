/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_limit.c - replay a per-sample trace through the limit's own functions. So the state can
 * be compared to the last bit, and limits can be larger than a limiter would allow.
 */
#include "replay.h"
#include "sample.h"
#include "state.h"

struct subject {
	struct setup setup;
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX];
	int64_t limit;
	double numbers[WEIR_NUMBERS_MAX];
};

static void observe(struct subject *s)
{
	if (s->setup.ops->observe)
		s->setup.ops->observe(s->state, s->numbers);
}

static bool start(struct subject *s, const struct trace *trace, struct verdict *verdict)
{
	double chance = s->setup.chance_count != 0 ? s->setup.chances[0] : 0;
	int64_t expected;

	if (!trace_int(trace, "initial_limit", &expected, verdict))
		return false;
	s->limit = state_whole(s->setup.ops->init(s->state, s->setup.config, chance), 0);
	observe(s);
	if (s->limit == expected)
		return true;
	return verdict_fail(verdict, 0, "the initial limit is not initial_limit");
}

static struct weir_window window_of(const struct subject *s, const struct sample *sample)
{
	double rtt = (double)sample->rtt;

	return (struct weir_window){
		.start = (weir_time)sample->start,
		.end = (weir_time)sample->start + (weir_time)sample->rtt,
		.count = 1,
		.dropped = sample->dropped,
		.inflight_max = sample_inflight(sample),
		.limit = s->limit > 0 ? (uint32_t)s->limit : 0,
		.rtt = rtt,
		.rtt_mean = rtt,
		.rtt_min = rtt,
		.rtt_max = rtt,
		.random = state_chance(&s->setup, s->numbers),
	};
}

static bool feed(struct subject *s, const struct trace *trace, size_t row, struct verdict *verdict)
{
	struct sample sample;
	struct weir_window window;

	if (!sample_read(trace, row, &sample, verdict))
		return false;
	window = window_of(s, &sample);
	/* A limiter never updates a settable limit: the rows must not change it. */
	if (!(s->setup.ops->flags & WEIR_LIMIT_SETTABLE))
		s->limit = state_whole(s->setup.ops->update(s->state, &window), s->limit);
	observe(s);
	return verdict_match(verdict, trace_line(trace, row), row, "limit_after", sample.limit,
			     s->limit);
}

static void replay(struct subject *s, const struct trace *trace, struct verdict *verdict)
{
	size_t row;

	if (!sample_columns(trace, verdict) || !start(s, trace, verdict))
		return;
	for (row = 0; row < trace->row_count; row++) {
		if (!feed(s, trace, row, verdict))
			return;
	}
	state_match_final(&s->setup, trace, s->limit, s->numbers, verdict);
}

void replay_limit(const struct trace *trace, const char *algorithm, struct verdict *verdict)
{
	struct subject s = {.limit = 0};

	if (setup_read(&s.setup, trace, "", algorithm, verdict))
		replay(&s, trace, verdict);
	setup_free(&s.setup);
}
