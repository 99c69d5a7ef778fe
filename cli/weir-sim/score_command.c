/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * score_command.c - the table of scores, with each limit's worst scenarios.
 */
#include "command.h"
#include "bench/sim/alloc_or_abort.h"
#include "output.h"
#include "scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORST_MAX 1000

/* Rows by default, in listed scenarios and in random ones. */
#define WORST        3
#define WORST_RANDOM 5

/* Factors that one --times takes, and the largest one. */
#define TIMES_MAX  32
#define FACTOR_MAX 1000

/* Widths of columns. */
struct widths {
	int limits, scenarios;
};

struct wanted {
	struct choice choice;
	double times[TIMES_MAX]; /* of the oracle's limits; 0 after the last */
	const char *tsv;
	int worst; /* negative: the default */
	bool fresh, oracles;
};

static void set_times(struct wanted *wanted, const char *text, struct argp_state *state)
{
	const char *at = text;
	char *end;

	memset(wanted->times, 0, sizeof(wanted->times));
	for (size_t i = 0; i < TIMES_MAX; i++, at = end + 1) {
		wanted->times[i] = strtod(at, &end);
		if (end == at || !(wanted->times[i] > 0 && wanted->times[i] <= FACTOR_MAX))
			break;
		if (*end == '\0')
			return;
		if (*end != ',')
			break;
	}
	argp_error(state, "%s is not a list of at most %d factors up to %d: write 0.8,1.25.", text,
		   TIMES_MAX, FACTOR_MAX);
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &wanted->choice;
		return 0;
	case 't':
		wanted->tsv = arg;
		return 0;
	case 'w':
		wanted->worst = (int)choice_number(arg, 0, WORST_MAX, state);
		return 0;
	case 'f':
		wanted->fresh = true;
		return 0;
	case 'o':
		wanted->oracles = true;
		return 0;
	case 'x':
		set_times(wanted, arg, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_oracles(const struct scores *scores)
{
	const struct choice *c = scores->choice;

	puts("oracle: the smallest limit within 3 % of the best goodput, a second");
	for (size_t i = 0; i < c->scenario_count; i++)
		for (unsigned k = 0; k < c->scenarios[i].phase_count; k++)
			printf("  %-24s %-12s limit %6u, best %10.1f%s\n",
			       k == 0 ? c->scenarios[i].name : "", c->scenarios[i].phases[k].name,
			       scores->oracles[i].limits[k], scores->oracles[i].best[k],
			       c->scenarios[i].phases[k].warm_up ? " (warm-up)" : "");
	for (size_t i = 0; i < c->scenario_count && c->random > 0; i++)
		printf("  %-24s %-12s limit %6u, best %10.1f\n", c->scenarios[i].name, "(single)",
		       scores->oracles[i].single, scores->oracles[i].single_best);
	putchar('\n');
}

static void print_spread(const struct scores *scores, size_t limit, enum part power)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t k = 0; k < choice_seeds(scores->choice); k++) {
		double one = scores_total(scores, limit, (long)k, power);

		least = fmin(least, one);
		most = fmax(most, one);
	}
	printf("  %5.3f-%5.3f", least, most);
}

static void print_limit(const struct scores *scores, size_t limit, const enum part *parts,
			size_t *order, const struct widths *widths)
{
	enum part power = parts[0], goodput = parts[1], latency = parts[2];
	const struct choice *c = scores->choice;
	double rejects = 100 * scores_false_rejects(scores, limit);
	size_t worst;

	if (scores_rank(scores, limit, goodput, order) == 0) {
		printf("%-*s %6s\n", widths->limits, c->limits[limit]->text, "-");
		return;
	}
	worst = order[0];
	printf("%-*s %6.3f", widths->limits, c->limits[limit]->text,
	       scores_total(scores, limit, -1, power));
	print_spread(scores, limit, power);
	printf("  %6.1f %%  x%-8.2f", 100 * scores_total(scores, limit, -1, goodput),
	       scores_total(scores, limit, -1, latency));
	printf("  %5.1f %% %-*s", 100 * scores_mean(scores, limit, worst, goodput),
	       widths->scenarios, c->scenarios[worst].name);
	scores_rank(scores, limit, latency, order);
	worst = order[0];
	printf("  x%-8.2f %-*s", scores_mean(scores, limit, worst, latency), widths->scenarios,
	       c->scenarios[worst].name);
	if (isnan(rejects))
		puts("         -");
	else
		printf("  %7.2f %%\n", rejects);
}

static void print_worst(const struct scores *scores, size_t limit, unsigned rows, size_t *order,
			const struct widths *widths)
{
	const struct choice *c = scores->choice;
	size_t count = scores_rank(scores, limit, POWER, order);

	for (size_t i = 0; i < count && i < rows; i++) {
		printf("%-*s %6.3f  %6.1f %%  x%-8.2f  %s\n", widths->limits,
		       i == 0 ? c->limits[limit]->text : "",
		       scores_mean(scores, limit, order[i], POWER),
		       100 * scores_mean(scores, limit, order[i], GOODPUT),
		       scores_mean(scores, limit, order[i], LATENCY), c->scenarios[order[i]].name);
		if (c->random > 0)
			printf("%-*s        %s\n", widths->limits, "",
			       c->scenarios[order[i]].about);
	}
}

/* Sort limits by power, the best first. */
static void rank_limits(const struct scores *scores, size_t *limits)
{
	for (size_t i = 0; i < scores->choice->limit_count; i++) {
		size_t at = i;

		while (at > 0 && scores_total(scores, limits[at - 1], -1, POWER) <
					 scores_total(scores, i, -1, POWER)) {
			limits[at] = limits[at - 1];
			at--;
		}
		limits[at] = i;
	}
}

static struct widths widths_of(const struct choice *c)
{
	struct widths widths = {.limits = 10, .scenarios = 6};

	for (size_t i = 0; i < c->limit_count; i++)
		widths.limits = output_wide(widths.limits, c->limits[i]->text);
	for (size_t i = 0; i < c->scenario_count; i++)
		widths.scenarios = output_wide(widths.scenarios, c->scenarios[i].name);
	return widths;
}

static void print_table(const struct scores *scores, const size_t *limits, const enum part *parts,
			size_t *order, const struct widths *widths)
{
	printf("%-*s %6s  %-11s  %8s  %-9s  %-*s  %-*s  %9s\n", widths->limits, "limit", "power",
	       "by seed", "goodput", "latency", widths->scenarios + 8, "worst goodput",
	       widths->scenarios + 10, "worst latency", "false rej");
	for (size_t i = 0; i < scores->choice->limit_count; i++)
		print_limit(scores, limits[i], parts, order, widths);
}

/* What a limit has in all but the worst part of the scenarios: a mean may be that of a few. */
static double all_but(const struct scores *scores, size_t limit, enum part what, double part,
		      size_t *order)
{
	size_t count = scores_rank(scores, limit, what, order);

	return count == 0 ? NAN
			  : scores_mean(scores, limit, order[(size_t)(part * (double)count)], what);
}

static void print_quantiles(const struct scores *scores, const size_t *limits, size_t *order,
			    const struct widths *widths)
{
	static const double parts[] = {0.05, 0.25, 0.5};

	puts("\nby phase, in all scenarios but the worst 5 %, 25 % and 50 %:\n");
	printf("%-*s  %8s  %8s  %8s  %-8s  %-8s  %-8s\n", widths->limits, "limit", "goodput", "",
	       "", "latency", "", "");
	for (size_t i = 0; i < scores->choice->limit_count; i++) {
		printf("%-*s", widths->limits, scores->choice->limits[limits[i]]->text);
		for (size_t k = 0; k < 3; k++)
			printf("  %6.1f %%",
			       100 * all_but(scores, limits[i], GOODPUT, parts[k], order));
		for (size_t k = 0; k < 3; k++)
			printf("  x%-7.2f", all_but(scores, limits[i], LATENCY, parts[k], order));
		putchar('\n');
	}
}

static void print(const struct scores *scores, unsigned worst)
{
	static const enum part phases[] = {POWER, GOODPUT, LATENCY};
	static const enum part single[] = {SINGLE_POWER, SINGLE_GOODPUT, SINGLE_LATENCY};
	const struct widths widths = widths_of(scores->choice);
	const struct choice *c = scores->choice;
	size_t *order = alloc_or_abort(c->scenario_count * sizeof(*order));
	size_t *limits = alloc_or_abort(c->limit_count * sizeof(*limits));

	rank_limits(scores, limits);
	printf("%zu scenarios, seeds %ju to %ju; geometric means, against the oracle's\n\n",
	       c->scenario_count, (uintmax_t)c->first_seed, (uintmax_t)c->last_seed);
	print_table(scores, limits, phases, order, &widths);
	if (c->random > 0) {
		puts("\nagainst one fixed limit for the whole of each scenario:\n");
		print_table(scores, limits, single, order, &widths);
		print_quantiles(scores, limits, order, &widths);
	}
	if (worst > 0)
		printf("\n%-*s %6s  %8s  %-9s  %s\n", widths.limits, "worst rows", "power",
		       "goodput", "latency", "scenario");
	for (size_t i = 0; i < c->limit_count && worst > 0; i++)
		print_worst(scores, limits[i], worst, order, &widths);
	free(limits);
	free(order);
}

static void show(const struct scores *scores, const void *arg)
{
	const struct wanted *wanted = arg;

	if (wanted->oracles)
		print_oracles(scores);
	if (wanted->worst >= 0)
		print(scores, (unsigned)wanted->worst);
	else
		print(scores, wanted->choice.random > 0 ? WORST_RANDOM : WORST);
}

int command_score(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"tsv", 't', "FILE", 0, "Write every score as TSV; -: to standard output, no table",
		 0},
		{"worst", 'w', "N", 0,
		 "Rows of worst scenarios for each limit (default 3, with --random 5)", 0},
		{"oracles", 'o', NULL, 0, "Show the limits of the oracle", 0},
		{"times", 'x', "FACTOR,...", 0,
		 "Score the oracle's limits times these factors as well", 0},
		{"fresh", 'f', NULL, 0, "Search for the oracle without the cache", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.children = choice_children,
		.doc = "Score limits in scenarios against the best fixed limit of each phase.\v"
		       "Defaults: all limits that learn, all built-in scenarios, seeds 1 to 10. "
		       "With --random the seed 1; scenarios are also compared with one fixed "
		       "limit for all their phases.",
	};
	struct wanted wanted = {
		.choice = {.first_seed = 1,
			   .last_seed = 10,
			   .limits_text = CHOICE_ALL,
			   .scenarios_text = CHOICE_ALL},
		.worst = -1,
	};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	for (size_t i = 0; i < TIMES_MAX && wanted.times[i] > 0; i++)
		choice_add_oracle(&wanted.choice, wanted.times[i]);
	status = scores_report(&wanted.choice, !wanted.fresh, wanted.tsv, show, &wanted);
	choice_free(&wanted.choice);
	return status;
}
