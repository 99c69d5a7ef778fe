/*
 * main.c - weir-sim: runs one limit through one scenario and prints a table.
 */
#include "run.h"
#include "memory.h"
#include "scenario_read.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS 1e-6

struct options {
	struct scenario scenario;
	const struct weir_limit_ops *limit;
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	uint64_t seed;
	const char *tsv;
};

static int list(void)
{
	const struct weir_limit_ops *ops;
	struct scenario scenario;

	puts("limits:");
	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		printf("  %-12s %s\n", ops->name, ops->about);
	puts("scenarios:");
	for (unsigned i = 0; scenario_builtin(&scenario, i); i++)
		printf("  %-20s %s\n", scenario.name, scenario.about);
	return EXIT_SUCCESS;
}

static void limit_read(struct options *options, const char *text, struct argp_state *state)
{
	char why[200];

	if (weir_limit_from_text(text, &options->limit, options->limit_config, why, sizeof(why)) !=
	    0)
		argp_error(state, "%s: %s", text, why);
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;
	char why[300];

	switch (key) {
	case 'l':
		limit_read(options, arg, state);
		return 0;
	case 's':
		if (scenario_find(&options->scenario, arg, why, sizeof(why)) != 0)
			argp_error(state, "%s", why);
		return 0;
	case 'r':
		options->seed = strtoull(arg, NULL, 0);
		return 0;
	case 't':
		options->tsv = arg;
		return 0;
	case 'L':
		exit(list());
	case ARGP_KEY_END:
		if (options->limit == NULL || options->scenario.name[0] == 0)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_phase(const struct phase *phase, const struct tally *t)
{
	printf("%-10s %8.1f %8.1f %7.3f %8.1f %8.1f %8.3f %8.3f %8.3f %8.1f %6u %6u\n", phase->name,
	       tally_per_second(t, t->offered), tally_per_second(t, t->admitted),
	       100 * tally_rejected_share(t), tally_per_second(t, t->good),
	       tally_per_second(t, t->timed_out), MS * tally_latency_mean(t),
	       MS * tally_latency_quantile(t, 0.5), MS * tally_latency_quantile(t, 0.99),
	       tally_limit_mean(t), t->limit_last, t->inflight_max);
}

static void print(const struct scenario *scenario, const struct run_result *result)
{
	printf("%-10s %8s %8s %7s %8s %8s %8s %8s %8s %8s %6s %6s\n", "phase", "offer/s", "admit/s",
	       "rejct%", "good/s", "drop/s", "mean_ms", "p50_ms", "p99_ms", "limit", "last",
	       "infl");
	for (unsigned i = 0; i < scenario->phase_count; i++)
		print_phase(&scenario->phases[i], &result->phases[i].tally);
	printf("windows %ju, hash %016jx\n", (uintmax_t)result->windows, (uintmax_t)result->hash);
}

static int simulate(const struct run_setup *setup)
{
	struct run_result *result = memory_new(sizeof(*result));
	int error = run(setup, result);

	if (error == 0)
		print(setup->scenario, result);
	else
		fprintf(stderr, "weir-sim: %s\n", strerror(-error));
	free(result);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int simulate_to_file(struct run_setup *setup, const char *name)
{
	int status;

	setup->series = fopen(name, "w");
	if (setup->series == NULL) {
		perror(name);
		return EXIT_FAILURE;
	}
	status = simulate(setup);
	if (fclose(setup->series) != 0) {
		perror(name);
		return EXIT_FAILURE;
	}
	return status;
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"limit", 'l', "NAME[:PARAM=VALUE,...]", 0, "The limit to run; required", 0},
		{"scenario", 's', "NAME", 0, "What to run it through; required", 0},
		{"seed", 'r', "N", 0, "Of arrivals, work and limiter (1)", 0},
		{"tsv", 't', "FILE", 0, "Write a time series", 0},
		{"list", 'L', NULL, 0, "List limits and scenarios", 0},
		{0},
	};
	static const struct argp argp = {
		.options = known,
		.parser = option,
		.args_doc = "--limit=LIMIT --scenario=NAME\n--list",
		.doc = "Run a concurrency limit through a scenario, in virtual time.",
	};
	struct options options = {.seed = 1};
	struct weir_config limiter;
	struct run_setup setup;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	weir_config_init(&limiter);
	limiter.limit = options.limit;
	limiter.limit_config = options.limit_config;
	setup = (struct run_setup){
		.scenario = &options.scenario,
		.series_every = 100 * WEIR_MS,
		.limiter = &limiter,
		.seed = options.seed,
	};
	return options.tsv == NULL ? simulate(&setup) : simulate_to_file(&setup, options.tsv);
}
