/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_command.c - show limits as they would have been in recorded calls.
 */
#include "choice.h"
#include "command.h"
#include "bench/sim/alloc_or_abort.h"
#include "output.h"
#include "replay_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lines of a series: default and maximum. */
#define STEPS     500
#define STEPS_MAX 10000000

struct wanted {
	struct choice choice;
	const char *file, *series;
	weir_dur every;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &wanted->choice;
		return 0;
	case 't':
		wanted->series = arg;
		return 0;
	case 'e':
		wanted->every = choice_duration(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		if (wanted->file != NULL)
			argp_error(state, "Only one trace can be replayed: %s is another", arg);
		wanted->file = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "A trace is required; - is standard input");
		return 0;
	case ARGP_KEY_END:
		if (wanted->every != 0 && wanted->series == NULL)
			argp_error(state, "--every is for a time series: --series is required");
		if (choice_seeds(&wanted->choice) != 1)
			argp_error(state, "A replay takes one seed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool read_trace(const char *path, struct trace *trace)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *in = standard ? stdin : fopen(path, "r");
	char why[600];
	bool good;

	if (in == NULL) {
		fprintf(stderr, "weir-sim: %s: %s\n", path, strerror(errno));
		return false;
	}
	good = trace_read(trace, in, standard ? "standard input" : path, why, sizeof(why));
	if (!good)
		fprintf(stderr, "weir-sim: %s\n", why);
	if (!standard)
		fclose(in);
	return good;
}

static struct weir_limiter *limiter_for(const struct candidate *candidate, uint64_t seed)
{
	struct weir_config config = candidate->config;
	struct weir_limiter *limiter;

	config.seed = seed;
	config.stripes = 1; /* there is one thread */
	if (weir_limiter_create(&config, &limiter) != 0)
		abort(); /* the configuration was checked, so memory ran out */
	return limiter;
}

static void print_trace(const struct trace *trace)
{
	uint32_t inflight = 0;
	double rtts = 0;

	for (size_t i = 0; i < trace->count; i++) {
		rtts += (double)(trace->calls[i].end - trace->calls[i].start);
		if (trace->calls[i].inflight > inflight)
			inflight = trace->calls[i].inflight;
	}
	printf("# %zu calls in %.3f s, %.3f ms each; at most %u in flight%s\n", trace->count,
	       (double)trace->length / (double)WEIR_S,
	       rtts / (double)trace->count / (double)WEIR_MS, inflight,
	       trace->derived ? ", as they overlap" : "");
}

static void print_limit(const struct trace *trace, const struct replayed *one)
{
	double mean = trace->length > 0 ? one->area / (double)trace->length : one->limit;

	printf("%-24s %9.1f %8u %8u %8u %8.3f ", one->name, mean, one->least, one->most, one->limit,
	       100.0 * (double)one->refused / (double)trace->count);
	if (one->refused > 0)
		printf("%10.3f\n", (double)one->first / (double)WEIR_S);
	else
		printf("%10s\n", "-");
}

static void print(const struct trace *trace, const struct replayed *each, size_t count)
{
	print_trace(trace);
	printf("%-24s %9s %8s %8s %8s %8s %10s\n", "limit", "mean", "min", "max", "last", "above%",
	       "first_s");
	for (size_t i = 0; i < count; i++)
		print_limit(trace, &each[i]);
}

/* Open the series if there is to be one. False, after a message, if that fails. */
static bool open_series(const struct wanted *wanted, const struct trace *trace,
			struct replay_series *series)
{
	*series = (struct replay_series){
		.every = wanted->every != 0 ? wanted->every : trace->length / STEPS + 1,
	};
	if (wanted->series == NULL)
		return true;
	if (trace->length / series->every >= STEPS_MAX) {
		fprintf(stderr, "weir-sim: The series has more than %d lines: raise --every\n",
			STEPS_MAX);
		return false;
	}
	series->out = output_open(wanted->series);
	return series->out != NULL;
}

static int play(const struct wanted *wanted, const struct trace *trace)
{
	const struct choice *choice = &wanted->choice;
	struct replay_series series;
	struct replayed *each;

	if (!open_series(wanted, trace, &series))
		return EXIT_FAILURE;
	each = alloc_or_abort(choice->limit_count * sizeof(each[0]));
	for (size_t i = 0; i < choice->limit_count; i++) {
		each[i].name = choice->limits[i]->text;
		each[i].limiter = limiter_for(choice->limits[i], choice->first_seed);
	}
	replay(trace, each, choice->limit_count, series.out != NULL ? &series : NULL);
	if (series.out != stdout)
		print(trace, each, choice->limit_count);
	for (size_t i = 0; i < choice->limit_count; i++)
		weir_limiter_destroy(each[i].limiter);
	free(each);
	return output_close(series.out, wanted->series) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_replay(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"series", 't', "FILE", 0,
		 "Write a time series as TSV; -: to standard output, without the table", 0},
		{"every", 'e', "DURATION", 0,
		 "Interval of the lines of the series (default: 500 lines)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "FILE",
		.children = choice_limit_children,
		.doc = "Show what limits would have been in a trace of your own calls. above% of "
		       "the calls arrived when the limit was already in flight, the first of them "
		       "at first_s.\v"
		       "A trace has one call per line. Its first line names the columns, separated "
		       "by tabs or commas: two of start, end and rtt, in seconds or as in start_ms, "
		       "rtt_us; inflight, including the call (default: computed from overlaps); "
		       "outcome (success, ignored, dropped, timed_out, cancelled, failed) or status "
		       "(HTTP). FILE may be - for standard input.\n\n"
		       "A replay is an open loop: nothing is refused, and the service is as it "
		       "was. It shows how limits follow a load, not what would have become of the "
		       "load: use scenarios for that.",
	};
	struct wanted wanted = {
		.choice = {.first_seed = 1, .last_seed = 1, .limits_text = CHOICE_ALL},
	};
	struct trace trace;
	int status = EXIT_FAILURE;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	if (read_trace(wanted.file, &trace)) {
		status = play(&wanted, &trace);
		trace_free(&trace);
	}
	choice_free(&wanted.choice);
	return status;
}
