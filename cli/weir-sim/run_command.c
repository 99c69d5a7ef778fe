/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_command.c - run limits through scenarios: a table by phase with means over the seeds, or a
 * time series of the first seed.
 */
#include "run_command.h"

#include "command.h"
#include "bench/sim/alloc_or_abort.h"
#include "bench/sim/oracle.h"
#include "output.h"
#include "bench/sim/parallel.h"
#include "bench/sim/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1e-6

/* Default number of lines of a series. */
#define LINES 500

struct wanted {
	struct choice choice;
	struct series_plan series;
};

/* All runs of a scenario, ordered by limit, then by seed. */
struct runs {
	const struct choice *choice;
	const struct scenario *scenario;
	struct run_result **results;
	int limits, phases; /* widths of columns */
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &wanted->choice;
		return 0;
	case 't':
		wanted->series.path = arg;
		return 0;
	case 'e':
		wanted->series.every = choice_duration(arg, state);
		return 0;
	case 'o':
		wanted->series.oracle = true;
		return 0;
	case ARGP_KEY_END:
		if (wanted->series.path == NULL &&
		    (wanted->series.every != 0 || wanted->series.oracle))
			argp_error(
				state,
				"--every and --oracle are for a time series: --series is required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void run_one(void *arg, size_t index)
{
	const struct runs *runs = arg;
	size_t seeds = choice_seeds(runs->choice);
	struct run_setup setup = {
		.scenario = runs->scenario,
		.limiter = &runs->choice->limits[index / seeds]->config,
		.seed = runs->choice->first_seed + index % seeds,
	};

	runs->results[index] = alloc_or_abort(sizeof(struct run_result));
	if (run(&setup, runs->results[index]) != 0)
		abort();
}

static void print_phase(const struct runs *runs, size_t limit, unsigned phase, struct tally *sum)
{
	size_t seeds = choice_seeds(runs->choice);

	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < seeds; i++)
		tally_add(sum, &runs->results[limit * seeds + i]->phases[phase].tally);
	printf("%-*s %-*s %9.1f %9.1f %7.3f %9.1f %8.1f %8.3f %8.3f %8.3f %8.1f %6ju %6u\n",
	       runs->limits, runs->choice->limits[limit]->text, runs->phases,
	       runs->scenario->phases[phase].name, tally_per_second(sum, sum->offered),
	       tally_per_second(sum, sum->admitted), 100 * tally_rejected_share(sum),
	       tally_per_second(sum, sum->good), tally_per_second(sum, sum->timed_out),
	       MS * tally_latency_mean(sum), MS * tally_latency_quantile(sum, 0.5),
	       MS * tally_latency_quantile(sum, 0.99), tally_limit_mean(sum),
	       (uintmax_t)sum->limit_last, sum->inflight_max);
}

static void print_hash(const struct runs *runs, size_t limit)
{
	size_t seeds = choice_seeds(runs->choice);
	uint64_t hash = 0, windows = 0;

	for (size_t i = 0; i < seeds; i++) {
		const struct run_result *result = runs->results[limit * seeds + i];

		hash = hash * 31 + result->hash;
		windows += result->windows;
	}
	printf("%-*s windows %ju, hash %016jx\n", runs->limits, runs->choice->limits[limit]->text,
	       (uintmax_t)windows, (uintmax_t)hash);
}

static void set_widths(struct runs *runs)
{
	runs->limits = runs->phases = 10;
	for (size_t i = 0; i < runs->choice->limit_count; i++)
		runs->limits = output_wide(runs->limits, runs->choice->limits[i]->text);
	for (unsigned k = 0; k < runs->scenario->phase_count; k++)
		runs->phases = output_wide(runs->phases, runs->scenario->phases[k].name);
}

static void print(const struct runs *runs)
{
	struct tally *sum = alloc_or_abort(sizeof(*sum));

	printf("# %s: %s\n", runs->scenario->name, runs->scenario->about);
	printf("%-*s %-*s %9s %9s %7s %9s %8s %8s %8s %8s %8s %6s %6s\n", runs->limits, "limit",
	       runs->phases, "phase", "offer/s", "admit/s", "rejct%", "good/s", "tmout/s",
	       "mean_ms", "p50_ms", "p99_ms", "mean", "last", "infl");
	for (size_t i = 0; i < runs->choice->limit_count; i++) {
		for (unsigned k = 0; k < runs->scenario->phase_count; k++)
			print_phase(runs, i, k, sum);
		print_hash(runs, i);
	}
	free(sum);
}

static void table(const struct choice *choice, const struct scenario *scenario)
{
	size_t count = choice->limit_count * choice_seeds(choice);
	struct runs runs = {
		.choice = choice,
		.scenario = scenario,
		.results = alloc_or_abort(count * sizeof(struct run_result *)),
	};

	parallel_run(&(struct parallel){
		.work = run_one,
		.arg = &runs,
		.count = count,
		.threads = choice->threads,
		.title = scenario->name,
	});
	set_widths(&runs);
	print(&runs);
	for (size_t i = 0; i < count; i++)
		free(runs.results[i]);
	free(runs.results);
}

static weir_dur step_for(const struct series_plan *plan, const struct scenario *scenario)
{
	weir_dur length = 0, lines = plan->lines == 0 ? LINES : plan->lines;

	if (plan->every != 0)
		return plan->every;
	for (unsigned i = 0; i < scenario->phase_count; i++)
		length += scenario->phases[i].length;
	return length * scenario->rounds / lines + 1;
}

static void series_of(const struct choice *choice, const struct series_plan *plan,
		      const struct scenario *scenario, const struct oracle *oracle,
		      struct series *series)
{
	struct run_result *result = alloc_or_abort(sizeof(*result));
	char prefix[2 * TEXT_SIZE];
	struct weir_config settable;
	struct run_setup setup = {
		.scenario = scenario,
		.seed = choice->first_seed,
		.series = series,
		.series_every = step_for(plan, scenario),
		.targets = oracle == NULL ? NULL : oracle->limits,
	};

	series->prefix = prefix;
	for (size_t i = 0; i < choice->limit_count; i++) {
		snprintf(prefix, sizeof(prefix), "%s\t%s\t", scenario->name,
			 choice->limits[i]->text);
		setup.limiter = &choice->limits[i]->config;
		if (run(&setup, result) != 0)
			abort();
	}
	if (oracle != NULL) {
		snprintf(prefix, sizeof(prefix), "%s\toracle\t", scenario->name);
		weir_config_init(&settable);
		settable.limit = &weir_settable;
		setup.limiter = &settable;
		setup.limits = oracle->limits;
		if (run(&setup, result) != 0)
			abort();
	}
	series->prefix = NULL;
	free(result);
}

bool series_write(const struct choice *choice, const struct series_plan *plan)
{
	size_t count = choice->scenario_count;
	struct oracle *oracles = alloc_or_abort(count * sizeof(*oracles));
	struct series series = {
		.out = output_open(plan->path),
		.prefix_head = "scenario\talgorithm\t",
		.numbers = choice->limit_count == 1 && count == 1 && !plan->oracle,
	};
	char path[4096];

	if (series.out == NULL)
		return false;
	if (plan->oracle)
		oracles_find(oracles, choice->scenarios, count, choice->threads,
			     oracle_cache(path, sizeof(path)));
	for (size_t i = 0; i < count; i++)
		series_of(choice, plan, &choice->scenarios[i], plan->oracle ? &oracles[i] : NULL,
			  &series);
	free(oracles);
	return output_close(series.out, plan->path);
}

int command_run(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"series", 't', "FILE", 0, "Write a time series of the first seed as TSV; no table",
		 0},
		{"every", 'e', "DURATION", 0,
		 "Interval of the lines of the series (default: 500 lines)", 0},
		{"oracle", 'o', NULL, 0, "Add the oracle's limit and run to the series", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.children = choice_children,
		.doc = "Run limits through scenarios, and print a table by phase.\v"
		       "The default seed is 1.",
	};
	struct wanted wanted = {
		.choice = {.first_seed = 1, .last_seed = 1},
	};
	int status = EXIT_SUCCESS;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	if (wanted.series.path != NULL && !series_write(&wanted.choice, &wanted.series))
		status = EXIT_FAILURE;
	for (size_t i = 0; i < wanted.choice.scenario_count && wanted.series.path == NULL; i++)
		table(&wanted.choice, &wanted.choice.scenarios[i]);
	choice_free(&wanted.choice);
	return status;
}
