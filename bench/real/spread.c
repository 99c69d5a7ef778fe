/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spread.c - run the same callers as threads, as processes, and as threads again. The difference of
 * the two runs with threads is noise; a smaller difference means nothing.
 *
 * The order of the three rotates from repeat to repeat, and each repeat has its own seed. Limits
 * run in parallel, each in its own process, which forks the callers.
 */
#include "spread.h"

#include "bench/sim/alloc_or_abort.h"
#include "callers.h"
#include "score.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1e-6

enum form {
	THREADS,
	PROCESSES,
	THREADS_AGAIN,
	FORMS,
};

struct outcome {
	double score, good, latency, limit;
};

/* Results of one limit in one scenario. */
struct row {
	struct outcome of[REPEATS_MAX][FORMS];
};

static void sum_up(struct outcome *outcome, const struct scenario *s, const struct oracle *oracle,
		   const struct run_result *best, const struct run_result *result)
{
	struct tally *sum = alloc_or_abort(sizeof(*sum));
	struct score score;

	for (unsigned i = 0; i < s->phase_count; i++)
		if (!s->phases[i].warm_up)
			tally_add(sum, &result->phases[i].tally);
	score_from(&score, s, oracle, best, result);
	*outcome = (struct outcome){
		.score = score.power,
		.good = tally_per_second(sum, sum->good),
		.latency = tally_latency_mean(sum),
		.limit = tally_limit_mean(sum),
	};
	free(sum);
}

static _Noreturn void run_one(const struct options *o, const struct scenario *s,
			      const struct entrant *entrant, uint64_t seed, enum form form,
			      struct run_result *result)
{
	struct weir_config limiter;
	struct run_setup setup = {.scenario = s, .limiter = &limiter, .seed = seed};
	int error;

	weir_config_init(&limiter);
	limiter.limit = entrant->limit;
	limiter.limit_config = entrant->config;
	error = callers_run(&setup, o->processes, form == PROCESSES, result);
	if (error == 0 && (result->leaked > 0 || result->above > 0))
		error = -EOVERFLOW;
	_exit(-error);
}

/* Run all limits in parallel; results, by limit, are in shared memory. */
static int run_all(const struct options *o, const struct scenario *s, uint64_t seed, enum form form,
		   struct run_result *results)
{
	pid_t children[LIMITS_MAX];
	int error = 0, status;

	fflush(stdout);
	for (unsigned i = 0; i < o->limit_count; i++) {
		children[i] = fork();
		if (children[i] == 0)
			run_one(o, s, &o->limits[i], seed, form, &results[i]);
	}
	for (unsigned i = 0; i < o->limit_count; i++)
		if (children[i] < 0 || waitpid(children[i], &status, 0) < 0)
			error = -EAGAIN;
		else if (status != 0)
			error = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	return error;
}

static int repeat(const struct options *o, const struct scenario *s, const struct oracle *oracle,
		  unsigned index, struct run_result *results, struct row *rows)
{
	struct run_result *best = alloc_or_abort(sizeof(*best));
	const uint64_t seed = o->seed + index;
	int error = 0;

	score_best(best, s, oracle, seed);
	for (unsigned i = 0; i < FORMS && error == 0; i++) {
		const enum form form = (index + i) % FORMS;

		fprintf(stderr, "%s, %u of %u: %s\n", s->name, index + 1, o->repeats,
			form == PROCESSES ? "processes" : "threads");
		error = run_all(o, s, seed, form, results);
		for (unsigned k = 0; k < o->limit_count && error == 0; k++)
			sum_up(&rows[k].of[index][form], s, oracle, best, &results[k]);
	}
	free(best);
	return error;
}

static void print_rows(const struct options *o, const struct scenario *s, const struct row *rows)
{
	for (unsigned k = 0; k < o->limit_count; k++)
		for (unsigned i = 0; i < o->repeats; i++) {
			const struct outcome *of = rows[k].of[i];

			printf("%s\t%s\t%u", s->name, o->limits[k].text, i + 1);
			for (enum form f = 0; f < FORMS; f++)
				printf("\t%.3f\t%.1f\t%.3f\t%.1f", of[f].score, of[f].good,
				       MS * of[f].latency, of[f].limit);
			putchar('\n');
		}
}

/* Sums over ratios, of their logarithms. */
struct ratios {
	double sum, squares;
	unsigned count;
};

static void add_ratio(struct ratios *r, double a, double b)
{
	const double ratio = log(a / b);

	if (!isfinite(ratio))
		return;
	r->sum += ratio;
	r->squares += ratio * ratio;
	r->count++;
}

static void add_row(const struct options *o, const struct row *row, struct ratios *of)
{
	for (unsigned i = 0; i < o->repeats; i++) {
		const struct outcome *one = row->of[i];

		add_ratio(&of[0], one[PROCESSES].score, one[THREADS].score);
		add_ratio(&of[0], one[PROCESSES].score, one[THREADS_AGAIN].score);
		add_ratio(&of[1], one[THREADS_AGAIN].score, one[THREADS].score);
	}
}

/* Print the geometric mean of ratios, and the root mean square of their logarithms. */
static void print_ratios(const char *scenario, const char *limit, const struct ratios *of)
{
	printf("%s\t%s", scenario, limit);
	for (unsigned i = 0; i < 2; i++)
		printf("\t%.3f\t%.3f", exp(of[i].sum / of[i].count),
		       sqrt(of[i].squares / of[i].count));
	putchar('\n');
}

static void print_summary(const struct options *o, const struct row *rows)
{
	struct ratios all[2] = {{.count = 0}};

	puts("\n\nscenario\tlimit\tratio\tratio_spread\tnoise\tnoise_spread");
	for (unsigned k = 0; k < o->scenario_count; k++)
		for (unsigned i = 0; i < o->limit_count; i++) {
			const struct row *row = &rows[k * o->limit_count + i];
			struct ratios of[2] = {{.count = 0}};

			add_row(o, row, of);
			add_row(o, row, all);
			print_ratios(o->scenarios[k].name, o->limits[i].text, of);
		}
	print_ratios("all", "all", all);
}

static int play(const struct options *o, struct run_result *results, struct row *rows)
{
	struct oracle *oracle = alloc_or_abort(sizeof(*oracle));
	int error = 0;

	printf("# %u callers; each score against what the oracle's limits make in the simulator\n",
	       o->processes);
	printf("scenario\tlimit\trepeat");
	for (enum form f = 0; f < FORMS; f++) {
		const char *name = f == PROCESSES ? "processes"
				   : f == THREADS ? "threads"
						  : "again";

		printf("\t%s_score\t%s_good\t%s_ms\t%s_limit", name, name, name, name);
	}
	putchar('\n');
	for (unsigned k = 0; k < o->scenario_count && error == 0; k++) {
		struct row *of = &rows[k * o->limit_count];

		oracle_find(oracle, &o->scenarios[k]);
		for (unsigned i = 0; i < o->repeats && error == 0; i++)
			error = repeat(o, &o->scenarios[k], oracle, i, results, of);
		if (error == 0)
			print_rows(o, &o->scenarios[k], of);
	}
	free(oracle);
	return error;
}

int spread(const struct options *o)
{
	const size_t size = o->limit_count * sizeof(struct run_result);
	struct run_result *results = mmap(NULL, size, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct row *rows;
	int error;

	if (results == MAP_FAILED)
		return -ENOMEM;
	rows = alloc_or_abort(o->scenario_count * o->limit_count * sizeof(*rows));
	error = play(o, results, rows);
	if (error == 0)
		print_summary(o, rows);
	free(rows);
	munmap(results, size);
	return error;
}
