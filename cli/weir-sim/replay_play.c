/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay_play.h"

/* Counts since the last line of the series. */
struct step {
	weir_time ends;
	uint64_t arrived, ended;
	uint32_t inflight_max;
	double rtts;
};

struct play {
	const struct trace *trace;
	struct replayed *each;
	size_t count;
	const struct replay_series *series;
	struct step step;
	weir_time accounted; /* areas are added up to here */
};

static void account(struct play *play, weir_time now)
{
	for (size_t i = 0; i < play->count; i++)
		play->each[i].area += play->each[i].limit * (double)(now - play->accounted);
	play->accounted = now;
}

static void write_head(const struct play *play)
{
	fputs("time\tcalls\tinflight\trtt_ms", play->series->out);
	for (size_t i = 0; i < play->count; i++)
		fprintf(play->series->out, "\t%s", play->each[i].name);
	fputc('\n', play->series->out);
}

static void write_step(struct play *play)
{
	const struct step *step = &play->step;
	FILE *out = play->series->out;

	fprintf(out, "%.6f\t%ju", (double)step->ends / (double)WEIR_S, (uintmax_t)step->arrived);
	if (step->arrived > 0)
		fprintf(out, "\t%u", step->inflight_max);
	else
		fputs("\t-", out);
	if (step->ended > 0)
		fprintf(out, "\t%.6g", step->rtts / (double)step->ended / (double)WEIR_MS);
	else
		fputs("\t-", out);
	for (size_t i = 0; i < play->count; i++)
		fprintf(out, "\t%u", play->each[i].limit);
	fputc('\n', out);
	play->step = (struct step){.ends = step->ends + play->series->every};
}

static void advance(struct play *play, weir_time now)
{
	while (play->series != NULL && play->step.ends < now)
		write_step(play);
	account(play, now);
}

static void arrive(struct play *play, const struct trace_call *call)
{
	play->step.arrived++;
	if (call->inflight > play->step.inflight_max)
		play->step.inflight_max = call->inflight;
	for (size_t i = 0; i < play->count; i++) {
		struct replayed *one = &play->each[i];

		if (call->inflight > one->limit && one->refused++ == 0)
			one->first = call->start;
	}
}

static void end(struct play *play, const struct trace_call *call)
{
	play->step.ended++;
	play->step.rtts += (double)(call->end - call->start);
	for (size_t i = 0; i < play->count; i++) {
		struct replayed *one = &play->each[i];

		weir_sample_at(one->limiter, call->start, call->end, call->inflight, call->outcome);
		one->limit = weir_limit(one->limiter);
		if (one->limit < one->least)
			one->least = one->limit;
		if (one->limit > one->most)
			one->most = one->limit;
	}
}

static void begin(struct play *play)
{
	for (size_t i = 0; i < play->count; i++) {
		struct replayed *one = &play->each[i];

		one->limit = one->least = one->most = weir_limit(one->limiter);
		one->area = 0;
		one->refused = 0;
		one->first = 0;
	}
	if (play->series == NULL)
		return;
	play->step.ends = play->series->every;
	write_head(play);
}

void replay(const struct trace *trace, struct replayed *each, size_t count,
	    const struct replay_series *series)
{
	struct play play = {.trace = trace, .each = each, .count = count, .series = series};
	size_t started = 0, ended = 0;

	begin(&play);
	while (started < trace->count || ended < trace->count) {
		const struct trace_call *call = &trace->calls[ended];

		if (started < trace->count) {
			const struct trace_call *next = &trace->calls[trace->by_start[started]];

			if (ended == trace->count || next->start < call->end) {
				advance(&play, next->start);
				arrive(&play, next);
				started++;
				continue;
			}
		}
		advance(&play, call->end);
		end(&play, call);
		ended++;
	}
	if (series == NULL)
		return;
	play.step.ends = trace->length;
	write_step(&play);
}
