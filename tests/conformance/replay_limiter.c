/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_limiter.c - replay a limiter trace, which is a script of acquire and release.
 *
 * The reference's partitions can exceed the limit: a call within its partition's share is admitted
 * even at the limit. There weir must refuse. A call that only the reference admitted stays in the
 * script as a ghost: it is in flight in the reference and not in weir, and reports its latency to
 * the limit when it ends. While there are ghosts, the reference may be full where weir has room. So
 * each decision is compared with the rule, which is that of the reference except for the above: a
 * call is admitted if and only if fewer calls are in flight in weir than the limit. Without ghosts
 * the recorded decision follows the same rule, and must be equal.
 */
#include "replay.h"
#include "setup.h"

#include <weir/weir.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most partitions of a trace: more than any trace has. */
#define SHARES_MAX 8

enum seat_state {
	SEAT_EMPTY,
	SEAT_TAKEN,
	SEAT_GHOST, /* admitted by the reference alone */
};

struct seat {
	enum seat_state state;
	struct weir_token token;
	uint16_t partition;
	weir_time start;
	uint32_t inflight; /* as the reference counted it */
};

struct stage {
	struct weir_clock clock; /* must be first: stage_now() casts it to the stage */
	weir_time now;
	struct setup setup;
	const char *bypass_key; /* "-": none */
	struct weir_limiter *limiter;
	struct seat
		*seats; /* one for each row: a token is identified by the row that acquired it */

	bool partitioned;
	char names[SHARES_MAX][WEIR_PARTITION_NAME_MAX + 1];
	struct weir_partition shares[SHARES_MAX];
	uint32_t share_count;
	int64_t ghosts, ghosts_in[SHARES_MAX + 1];
	size_t refused; /* calls that the reference admitted above its limit */
};

struct act {
	char op;
	const char *key;
	const char *token;
	int64_t now;
	const char *admitted;
	int64_t inflight;
	int64_t limit;
	const char *part_inflight, *part_limit;
};

static weir_time stage_now(const struct weir_clock *clock)
{
	return ((const struct stage *)(const void *)clock)->now;
}

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
		.part_inflight = fields[8],
		.part_limit = fields[9],
	};
	if (strlen(fields[1]) != 1 || !strchr("ASIDL", act->op))
		return verdict_fail(verdict, trace_line(trace, row), "unknown op %s", fields[1]);
	if (text_to_int(fields[4], INT64_MIN, INT64_MAX, &act->now) &&
	    text_to_int(fields[6], 0, INT32_MAX, &act->inflight) &&
	    text_to_int(fields[7], INT32_MIN, INT32_MAX, &act->limit))
		return true;
	return verdict_fail(verdict, trace_line(trace, row),
			    "the row has a field that is not a valid number in its column");
}

static struct weir_call call_of(const struct stage *s, const char *key)
{
	bool bypass = strcmp(s->bypass_key, "-") != 0 && strcmp(s->bypass_key, key) == 0;

	return (struct weir_call){
		.partition = weir_partition_find(s->limiter, key),
		.flags = bypass ? WEIR_CALL_BYPASS : 0,
	};
}

/*
 * Handle a call that only the reference admitted, above its limit; it becomes a ghost. Or a call
 * that only weir admitted, which is valid only while there are ghosts.
 */
static bool resolve_difference(struct stage *s, struct seat *seat, const struct weir_call *call,
			       bool expected, const struct act *act)
{
	if (expected) {
		s->refused++;
		s->ghosts++;
		s->ghosts_in[call->partition]++;
		seat->state = SEAT_GHOST;
		return true;
	}
	weir_release_at(s->limiter, (weir_time)act->now, &seat->token, WEIR_IGNORE);
	seat->state = SEAT_EMPTY;
	return s->ghosts > 0;
}

static bool acquire(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	const struct weir_call call = call_of(s, act->key);
	const uint32_t inflight = weir_inflight(s->limiter), limit = weir_limit(s->limiter);
	const size_t line = trace_line(trace, row);
	struct seat *seat = &s->seats[row];
	bool admitted, above;
	int64_t expected;

	if (!text_to_int(act->admitted, 0, 1, &expected))
		return verdict_fail(verdict, line, "admitted is neither 0 nor 1");
	admitted = weir_try_acquire_for_at(s->limiter, &call, (weir_time)act->now, &seat->token) ==
		   0;
	above = inflight + s->ghosts >= limit;
	*seat = (struct seat){
		.state = admitted ? SEAT_TAKEN : SEAT_EMPTY,
		.token = seat->token,
		.partition = call.partition,
		.start = (weir_time)act->now,
		.inflight = (uint32_t)act->inflight,
	};
	if (call.flags != 0 || !s->partitioned)
		return verdict_match(verdict, line, row, "admitted", expected, admitted);
	if (!verdict_match(verdict, line, row, "admitted, by the rule", inflight < limit, admitted))
		return false;
	if (admitted == expected || (expected && above))
		return admitted == expected || resolve_difference(s, seat, &call, expected, act);
	return resolve_difference(s, seat, &call, expected, act) ||
	       verdict_match(verdict, line, row, "admitted", expected, admitted);
}

/* End a call, or a ghost. weir's limit gets the sample that the reference's limit got. */
static void end(struct stage *s, struct seat *seat, weir_time now, enum weir_outcome outcome)
{
	if (seat->state == SEAT_GHOST) {
		s->ghosts--;
		s->ghosts_in[seat->partition]--;
	} else if (seat->token.cost == 0 || seat->token.inflight == seat->inflight) {
		weir_release_at(s->limiter, now, &seat->token, outcome);
		return;
	} else {
		weir_release_at(s->limiter, now, &seat->token, WEIR_IGNORE);
	}
	if (outcome != WEIR_IGNORE)
		weir_sample_at(s->limiter, seat->start, now, seat->inflight, outcome);
}

static bool release(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	enum weir_outcome outcome = act->op == 'S'   ? WEIR_SUCCESS
				    : act->op == 'I' ? WEIR_IGNORE
						     : WEIR_DROPPED;
	int64_t n;

	if (!text_to_int(act->token, 0, (int64_t)row, &n) || s->seats[n].state == SEAT_EMPTY)
		return verdict_fail(verdict, trace_line(trace, row), "token %s is not in use",
				    act->token);
	end(s, &s->seats[n], (weir_time)act->now, outcome);
	s->seats[n].state = SEAT_EMPTY;
	return true;
}

static bool set_limit(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		      struct verdict *verdict)
{
	int64_t value;

	if (!text_to_int(act->key, 0, UINT32_MAX, &value))
		return verdict_fail(verdict, trace_line(trace, row), "%s is not a valid limit",
				    act->key);
	if (weir_limit_set(s->limiter, (uint32_t)value) != 0)
		return verdict_fail(verdict, trace_line(trace, row),
				    "weir_limit_set() refuses the limit %s", act->key);
	return true;
}

static bool perform(struct stage *s, const struct trace *trace, size_t row, const struct act *act,
		    struct verdict *verdict)
{
	s->now = (weir_time)act->now;
	switch (act->op) {
	case 'A':
		return acquire(s, trace, row, act, verdict);
	case 'L':
		return set_limit(s, trace, row, act, verdict);
	default:
		return release(s, trace, row, act, verdict);
	}
}

/*
 * Whether a difference of one comes from rounding. The reference rounds every share up, so that
 * their sum may exceed the limit; it takes the rounding error of a product for a fraction; and it
 * guarantees one permit to a partition without a share.
 */
static bool is_rounding(const struct stage *s, uint16_t partition, int64_t expected, int64_t got)
{
	double exact = s->shares[partition - 1].share * weir_limit(s->limiter), sum = 0;

	for (uint32_t i = 0; i < s->share_count; i++)
		sum += ceil(s->shares[i].share * weir_limit(s->limiter));
	return got == expected - 1 &&
	       (exact == 0 || fabs(exact - round(exact)) < 1e-9 || sum > weir_limit(s->limiter));
}

static bool compare_partition(const struct stage *s, const struct trace *trace, size_t row,
			      const struct act *act, struct verdict *verdict)
{
	uint16_t partition = weir_partition_find(s->limiter, act->key);
	const size_t line = trace_line(trace, row);
	struct weir_partition_snapshot p;
	int64_t inflight, limit;

	if (!s->partitioned || act->op == 'L' || strcmp(act->part_inflight, "-") == 0)
		return true;
	if (!text_to_int(act->part_inflight, 0, INT32_MAX, &inflight) ||
	    !text_to_int(act->part_limit, 0, INT32_MAX, &limit))
		return verdict_fail(verdict, line, "the partition's columns are not numbers");
	weir_partition_snapshot_init(&p);
	if (weir_partition_snapshot_take(s->limiter, partition, &p) != 0)
		return verdict_fail(verdict, line, "there is no such partition");
	if (!verdict_match(verdict, line, row, "partition_inflight",
			   inflight - s->ghosts_in[partition], p.inflight))
		return false;
	return (partition > 0 && is_rounding(s, partition, limit, p.guarantee)) ||
	       verdict_match(verdict, line, row, "partition_limit", limit, p.guarantee);
}

static void replay(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	struct act act;
	size_t row, line;

	for (row = 0; row < trace->row_count; row++) {
		line = trace_line(trace, row);
		if (!act_read(trace, row, &act, verdict) ||
		    !perform(s, trace, row, &act, verdict) ||
		    !verdict_match(verdict, line, row, "inflight", act.inflight - s->ghosts,
				   weir_inflight(s->limiter)) ||
		    !verdict_match(verdict, line, row, "limit", act.limit,
				   weir_limit(s->limiter)) ||
		    !compare_partition(s, trace, row, &act, verdict))
			return;
	}
	if (s->refused > 0)
		verdict_note(verdict, "refused %zu calls that were admitted above the limit",
			     s->refused);
}

/* Parse a list such as "live:0.9,batch:0.1". */
static bool read_shares(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	const char *text, *at;
	int length;

	if (!trace_text(trace, "", "partitions", &text, verdict))
		return false;
	for (at = text; *at != '\0'; at += length + (at[length] == ',')) {
		struct weir_partition *share = &s->shares[s->share_count];
		char *name = s->names[s->share_count];

		if (s->share_count == SHARES_MAX ||
		    sscanf(at, "%63[^:,]:%lf%n", name, &share->share, &length) != 2 ||
		    (at[length] != ',' && at[length] != '\0'))
			return verdict_fail(verdict, trace_key_line(trace, "", "partitions"),
					    "not a list of partitions: %s", text);
		share->name = name;
		s->share_count++;
	}
	return true;
}

/* The reference reserves no permits, so a reservation must expire before the next row. */
static bool make_limiter(struct stage *s, const struct trace *trace, struct verdict *verdict)
{
	struct weir_config config;

	weir_config_init(&config);
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.partitions = s->shares;
	config.partition_count = s->share_count;
	config.partition_hold = 1;
	config.clock = &s->clock;
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
	    !setup_read(&s->setup, trace, "", limit, verdict) ||
	    (s->partitioned && !read_shares(s, trace, verdict)) || !make_limiter(s, trace, verdict))
		return false;
	s->seats = calloc(trace->row_count, sizeof(*s->seats));
	return s->seats || verdict_fail(verdict, 0, "out of memory");
}

void replay_limiter(const struct trace *trace, struct verdict *verdict)
{
	struct stage s = {.clock = {.now = stage_now}};
	const char *kind;

	if (!trace_text(trace, "", "limiter", &kind, verdict))
		return;
	s.partitioned = strcmp(kind, "partitioned") == 0;
	if (prepare(&s, trace, verdict))
		replay(&s, trace, verdict);
	weir_limiter_destroy(s.limiter);
	free(s.seats);
	setup_free(&s.setup);
}
