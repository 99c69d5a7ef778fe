/*
 * replay_limiter.c - a limiter trace is a script of acquire and release.
 *
 * A bypassed call never reaches the limiter: that is all there is to a bypass.
 */
#include "replay.h"
#include "setup.h"

#include <weir/limiter.h>

#include <stdlib.h>
#include <string.h>

enum seat_state {
	SEAT_EMPTY,
	SEAT_TAKEN,
	SEAT_BYPASSED,
};

struct seat {
	enum seat_state state;
	struct weir_token token;
};

struct stage {
	struct setup setup;
	const char *bypass_key; /* "-": none */
	struct weir_limiter *limiter;
	struct seat *seats; /* one a row: a token is named by the row that acquired it */
};

struct act {
	char op;
	const char *key;
	const char *token;
	int64_t now;
	const char *admitted;
	int64_t inflight;
	int64_t limit;
};

static bool act_read(const struct trace *trace, size_t row, struct act *act,
		     struct verdict *verdict)
{
	char *fields[10];

	if (!trace_fields(trace, row, fields, 10, verdict))
		return false;
	*act = (struct act){
		.op = fields[1][0],
		.key = fields[2],
		.token = fields[3],
		.admitted = fields[5],
	};
	if (strlen(fields[1]) != 1 || !strchr("ASIDL", act->op))
		return verdict_fail(verdict, trace_line(trace, row), "unknown op %s", fields[1]);
	if (text_to_int(fields[4], INT64_MIN, INT64_MAX, &act->now) &&
	    text_to_int(fields[6], 0, INT32_MAX, &act->inflight) &&
	    text_to_int(fields[7], INT32_MIN, INT32_MAX, &act->limit))
		return true;
	return verdict_fail(verdict, trace_line(trace, row),
			    "the row holds something that is no number of its column");
}

static bool bypassed(const struct stage *s, const struct act *act)
{
	return strcmp(s->bypass_key, "-") != 0 && strcmp(s->bypass_key, act->key) == 0;
}

static bool acquire(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	struct seat *seat = &s->seats[row];
	int64_t expected;

	if (!text_to_int(act->admitted, 0, 1, &expected))
		return verdict_fail(verdict, trace_line(trace, row), "admitted is neither 0 nor 1");
	if (bypassed(s, act))
		seat->state = SEAT_BYPASSED;
	else if (weir_try_acquire_at(s->limiter, (weir_time)act->now, &seat->token) == 0)
		seat->state = SEAT_TAKEN;
	return verdict_match(verdict, trace_line(trace, row), row, "admitted", expected,
			     seat->state != SEAT_EMPTY);
}

static bool release(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	enum weir_outcome outcome = act->op == 'S'   ? WEIR_SUCCESS
				    : act->op == 'I' ? WEIR_IGNORE
						     : WEIR_DROPPED;
	struct seat *seat;
	int64_t n;

	if (!text_to_int(act->token, 0, (int64_t)row, &n) || s->seats[n].state == SEAT_EMPTY)
		return verdict_fail(verdict, trace_line(trace, row), "token %s is not held",
				    act->token);
	seat = &s->seats[n];
	if (seat->state == SEAT_TAKEN)
		weir_release_at(s->limiter, (weir_time)act->now, &seat->token, outcome);
	seat->state = SEAT_EMPTY;
	return true;
}

static bool set_limit(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		      struct verdict *verdict)
{
	int64_t value;

	if (!text_to_int(act->key, 0, UINT32_MAX, &value))
		return verdict_fail(verdict, trace_line(trace, row), "%s is no limit", act->key);
	if (weir_limit_set(s->limiter, (uint32_t)value) != 0)
		return verdict_fail(verdict, trace_line(trace, row),
				    "weir_limit_set() refuses the limit %s", act->key);
	return true;
}

static bool perform(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	switch (act->op) {
	case 'A':
		return acquire(s, trace, row, act, verdict);
	case 'L':
		return set_limit(s, trace, row, act, verdict);
	default:
		return release(s, trace, row, act, verdict);
	}
}

static void replay(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	struct act act;
	size_t row, line;

	for (row = 0; row < trace->row_count; row++) {
		line = trace_line(trace, row);
		if (!act_read(trace, row, &act, verdict) ||
		    !perform(s, trace, row, &act, verdict) ||
		    !verdict_match(verdict, line, row, "inflight", act.inflight,
				   weir_inflight(s->limiter)) ||
		    !verdict_match(verdict, line, row, "limit", act.limit, weir_limit(s->limiter)))
			return;
	}
}

static bool make_limiter(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	struct weir_config config;

	weir_config_init(&config);
	config.windowing = WEIR_WINDOW_SAMPLE;
	return setup_limiter(&s->setup, &config, trace, verdict, &s->limiter);
}

static bool prepare(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	const char *limit;

	if (!trace_has_columns(trace,
			       "i,op,key,token,now_ns,admitted,inflight,limit,partition_inflight,"
			       "partition_limit",
			       verdict) ||
	    !trace_text(trace, "", "bypass_key", &s->bypass_key, verdict) ||
	    !trace_text(trace, "", "limit", &limit, verdict) ||
	    !setup_read(&s->setup, trace, "", limit, verdict) || !make_limiter(s, trace, verdict))
		return false;
	s->seats = calloc(trace->row_count, sizeof(*s->seats));
	return s->seats || verdict_fail(verdict, 0, "out of memory");
}

void replay_limiter(const struct trace *trace, struct verdict *verdict)
{
	struct stage s = {.limiter = NULL};
	const char *kind;

	if (!trace_text(trace, "", "limiter", &kind, verdict))
		return;
	if (strcmp(kind, "partitioned") == 0) {
		verdict_skip(verdict, "partitions: not in this version");
		return;
	}
	if (prepare(&s, trace, verdict))
		replay(&s, trace, verdict);
	weir_limiter_destroy(s.limiter);
	free(s.seats);
	setup_free(&s.setup);
}
