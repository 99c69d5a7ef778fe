/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_windowed.c - replay a windowed trace through a whole limiter.
 *
 * In two cases weir differs by design. A trace that differs is skipped if such a
 * case occurs in it no later than the difference:
 *
 * - the reference ignores samples faster than its threshold, even dropped ones;
 *   weir counts every drop;
 * - the reference's percentile window has a capacity and ignores all further
 *   samples, even dropped ones; weir's window has no such bound.
 *
 * To detect the second case, this file follows the windows of the reference.
 */
#include "replay.h"
#include "sample.h"
#include "state.h"

#include <weir/limiter.h>
#include <weir/observe.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The reference's parameters. */
struct rule {
	int64_t window_min, window_max;
	int64_t samples;
	int64_t threshold;
	bool percentile;
	double quantile;
	int64_t capacity; /* INT64_MAX: none */
};

/* The window of the reference: only what decides when it ends and what it ignores. */
struct shadow {
	int64_t next_update;
	int64_t count;
	int64_t rtt_min;
	size_t fast_drop_row; /* first row of that case; SIZE_MAX: none */
	size_t overfull_row;  /* the same */
};

struct source {
	struct weir_random base;
	double value;
};

struct bench {
	struct rule rule;
	struct setup setup;
	struct shadow shadow;
	struct source source;
	struct weir_observer observer;
	struct weir_limiter *limiter;
	double numbers[WEIR_NUMBERS_MAX];
};

static bool read_percentile(struct rule *rule, const struct trace *trace, struct verdict *verdict)
{
	const char *kind, *quantile;

	rule->capacity = INT64_MAX;
	if (!trace_text(trace, "", "window", &kind, verdict))
		return false;
	rule->percentile = strcmp(kind, "percentile") == 0;
	if (!rule->percentile)
		return strcmp(kind, "average") == 0 ||
		       verdict_fail(verdict, trace_key_line(trace, "", "window"),
				    "window=%s is unknown", kind);
	if (!trace_text(trace, "", "percentile", &quantile, verdict) ||
	    !trace_int(trace, "percentile_capacity", &rule->capacity, verdict))
		return false;
	return text_to_double(quantile, &rule->quantile) ||
	       verdict_fail(verdict, trace_key_line(trace, "", "percentile"),
			    "percentile=%s is not a number", quantile);
}

static bool read_rule(struct rule *rule, const struct trace *trace, struct verdict *verdict)
{
	if (!trace_int(trace, "min_window_ns", &rule->window_min, verdict) ||
	    !trace_int(trace, "max_window_ns", &rule->window_max, verdict) ||
	    !trace_int(trace, "window_size", &rule->samples, verdict) ||
	    !trace_int(trace, "min_rtt_threshold_ns", &rule->threshold, verdict) ||
	    !read_percentile(rule, trace, verdict))
		return false;
	if (rule->window_min > 0 && rule->window_max > 0 && rule->samples > 0 &&
	    rule->samples <= UINT32_MAX && rule->threshold >= 0)
		return true;
	return verdict_fail(verdict, 0, "the window's parameters are out of range");
}

static double source_next(struct weir_random *self)
{
	return ((struct source *)self)->value;
}

static void observe(void *arg, const struct weir_report *report)
{
	struct bench *b = arg;

	memcpy(b->numbers, report->numbers, sizeof(b->numbers));
	b->source.value = state_chance(&b->setup, b->numbers);
}

static bool make_limiter(struct bench *b, const struct trace *trace, struct verdict *verdict)
{
	struct weir_config config;

	weir_config_init(&config);
	config.windowing = WEIR_WINDOW_TIME;
	config.window_min = (weir_dur)b->rule.window_min;
	config.window_max = (weir_dur)b->rule.window_max;
	config.window_samples = (uint32_t)b->rule.samples;
	config.sparse = WEIR_SPARSE_DISCARD;
	config.rtt_threshold = (weir_dur)b->rule.threshold;
	config.rtt = b->rule.percentile ? WEIR_RTT_QUANTILE : WEIR_RTT_MEAN;
	config.quantile = b->rule.quantile;
	config.random = &b->source.base;
	config.observer = &b->observer;
	return setup_limiter(&b->setup, &config, trace, verdict, &b->limiter);
}

static bool start(struct bench *b, const struct trace *trace, struct verdict *verdict)
{
	const char *initial;
	int64_t expected;

	b->source = (struct source){
		.base = {.next = source_next},
		.value = b->setup.chance_count != 0 ? b->setup.chances[0] : 0,
	};
	b->observer = (struct weir_observer){.window = observe, .arg = b};
	b->shadow = (struct shadow){
		.rtt_min = INT64_MAX,
		.fast_drop_row = SIZE_MAX,
		.overfull_row = SIZE_MAX,
	};
	if (!make_limiter(b, trace, verdict) ||
	    !trace_text(trace, "delegate.", "initial_limit", &initial, verdict))
		return false;
	b->source.value = state_chance(&b->setup, b->numbers);
	if (text_to_int(initial, 0, INT32_MAX, &expected) && expected == weir_limit(b->limiter))
		return true;
	return verdict_fail(verdict, 0, "the initial limit is not delegate.initial_limit");
}

static int64_t window_length(const struct rule *rule, int64_t rtt_min)
{
	int64_t twice = rtt_min > INT64_MAX / 2 ? INT64_MAX : rtt_min * 2;

	if (twice < rule->window_min)
		twice = rule->window_min;
	return twice < rule->window_max ? twice : rule->window_max;
}

static int64_t add_wrapping(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void shadow_add(struct shadow *shadow, const struct rule *rule, size_t row,
		       const struct sample *sample)
{
	int64_t end = add_wrapping(sample->start, sample->rtt);

	if (sample->rtt < rule->threshold) {
		if (sample->dropped && shadow->fast_drop_row == SIZE_MAX)
			shadow->fast_drop_row = row;
		return;
	}
	if (shadow->count < rule->capacity) {
		shadow->count++;
		if (sample->rtt < shadow->rtt_min)
			shadow->rtt_min = sample->rtt;
	} else if (shadow->overfull_row == SIZE_MAX) {
		shadow->overfull_row = row;
	}
	if (end > shadow->next_update) {
		shadow->next_update = add_wrapping(end, window_length(rule, shadow->rtt_min));
		shadow->count = 0;
		shadow->rtt_min = INT64_MAX;
	}
}

static bool feed(struct bench *b, const struct trace *trace, size_t row, struct verdict *verdict)
{
	struct sample sample;

	if (!sample_read(trace, row, &sample, verdict))
		return false;
	shadow_add(&b->shadow, &b->rule, row, &sample);
	weir_sample_at(b->limiter, (weir_time)sample.start,
		       (weir_time)sample.start + (weir_time)sample.rtt, sample_inflight(&sample),
		       sample.dropped ? WEIR_DROPPED : WEIR_SUCCESS);
	return verdict_match(verdict, trace_line(trace, row), row, "limit_after", sample.limit,
			     weir_limit(b->limiter));
}

static void replay(struct bench *b, const struct trace *trace, struct verdict *verdict)
{
	size_t row;

	for (row = 0; row < trace->row_count; row++) {
		if (!feed(b, trace, row, verdict))
			return;
	}
	state_match_final(&b->setup, trace, weir_limit(b->limiter), b->numbers, verdict);
	/* A difference that only shows at the end can be excused as well; a bad header cannot. */
	if (verdict->line == 0)
		verdict->row = trace->row_count;
}

static void excuse(const struct shadow *shadow, struct verdict *verdict)
{
	char row[40] = "after the last row";

	if (verdict->kind != VERDICT_FAILED || verdict->row == SIZE_MAX)
		return;
	if (verdict->line != 0)
		snprintf(row, sizeof(row), "from row %zu", verdict->row);
	if (shadow->fast_drop_row <= verdict->row)
		verdict_skip(verdict,
			     "by design, differs %s: row %zu was dropped faster than "
			     "min_rtt_threshold_ns, which the reference ignores and weir counts",
			     row, shadow->fast_drop_row);
	else if (shadow->overfull_row <= verdict->row)
		verdict_skip(verdict,
			     "by design, differs %s: row %zu is beyond percentile_capacity, which "
			     "the reference ignores and weir counts",
			     row, shadow->overfull_row);
}

static bool prepare(struct bench *b, const struct trace *trace, struct verdict *verdict)
{
	const char *algorithm;

	return sample_columns(trace, verdict) &&
	       trace_text(trace, "delegate.", "algorithm", &algorithm, verdict) &&
	       setup_read(&b->setup, trace, "delegate.", algorithm, verdict) &&
	       read_rule(&b->rule, trace, verdict) && start(b, trace, verdict);
}

void replay_windowed(const struct trace *trace, struct verdict *verdict)
{
	struct bench b = {.limiter = NULL};

	if (prepare(&b, trace, verdict)) {
		replay(&b, trace, verdict);
		excuse(&b.shadow, verdict);
	}
	weir_limiter_destroy(b.limiter);
	setup_free(&b.setup);
}
