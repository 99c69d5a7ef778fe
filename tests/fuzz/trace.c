/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c - arbitrary text as a trace. A valid one is replayed through two limits. */
#include "fuzz.h"

#include "cli/weir-sim/replay_play.h"

#define TEXT_MAX 20000

static void check(const struct trace *t)
{
	must(t->count > 0);
	must(t->calls[t->count - 1].end == t->length);
	must(t->calls[t->by_start[0]].start == 0);
	for (size_t i = 0; i < t->count; i++) {
		const struct trace_call *call = &t->calls[i];

		must(call->start <= call->end && call->inflight >= 1);
		must(call->inflight <= WEIR_LIMIT_MAX && (unsigned)call->outcome <= WEIR_FAILED);
		must(!t->derived || call->inflight <= t->count);
		must(i == 0 || t->calls[i - 1].end <= call->end);
		must(i == 0 ||
		     t->calls[t->by_start[i - 1]].start <= t->calls[t->by_start[i]].start);
	}
}

static struct weir_limiter *limiter_of(const struct weir_limit_ops *ops)
{
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.windowing = ops == &weir_vegas ? WEIR_WINDOW_SAMPLE : WEIR_WINDOW_TIME;
	must(weir_limiter_create(&config, &limiter) == 0);
	return limiter;
}

static void play(const struct trace *t)
{
	char *text = NULL;
	size_t size;
	struct replay_series series = {
		.out = open_memstream(&text, &size),
		.every = t->length / 5 + 1,
	};
	struct replayed each[] = {
		{.limiter = limiter_of(&weir_vegas), .name = "vegas"},
		{.limiter = limiter_of(&weir_aimd), .name = "aimd"},
	};

	must(series.out != NULL);
	replay(t, each, 2, &series);
	for (unsigned i = 0; i < 2; i++) {
		must(each[i].refused <= t->count && each[i].first <= t->length);
		must(each[i].least <= each[i].limit && each[i].limit <= each[i].most);
		must(each[i].area >= (double)each[i].least * (double)t->length * (1 - 1e-9));
		must(each[i].area <= (double)each[i].most * (double)t->length * (1 + 1e-9));
		weir_limiter_destroy(each[i].limiter);
	}
	fclose(series.out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size, TEXT_MAX), why[300] = "";
	struct trace trace;
	FILE *in;

	if (text == NULL || size == 0) {
		free(text);
		return 0;
	}
	in = fmemopen(text, size, "r");
	must(in != NULL);
	if (trace_read(&trace, in, "fuzz", why, sizeof(why))) {
		check(&trace);
		play(&trace);
		trace_free(&trace);
	} else {
		must(strncmp(why, "fuzz:", 5) == 0 && is_sentence(why));
	}
	fclose(in);
	free(text);
	return 0;
}
