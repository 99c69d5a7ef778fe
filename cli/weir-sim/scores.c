/* SPDX-License-Identifier: BSD-2-Clause */
#include "scores.h"

#include "bench/sim/alloc_or_abort.h"
#include "output.h"
#include "bench/sim/parallel.h"

#include <math.h>
#include <stdlib.h>

static struct score *place(const struct scores *scores, size_t limit, size_t scenario, size_t seed)
{
	const struct choice *c = scores->choice;

	return &scores->all[(scenario * c->limit_count + limit) * choice_seeds(c) + seed];
}

const struct score *scores_at(const struct scores *scores, size_t limit, size_t scenario,
			      size_t seed)
{
	return place(scores, limit, scenario, seed);
}

static void score_one(struct score *score, const struct scenario *scenario,
		      const struct oracle *oracle, const struct run_result *best,
		      const struct run_result *single, const struct candidate *candidate,
		      uint64_t seed)
{
	if (candidate->times > 0)
		score_times(score, scenario, oracle, best, single, candidate->times, seed);
	else if (score_run(score, scenario, oracle, best, single, &candidate->config, seed) != 0)
		abort();
}

/* For a scenario and a seed: run the oracle, and score each limit against it. */
static void score_all_limits(void *arg, size_t index)
{
	const struct scores *scores = arg;
	const struct choice *c = scores->choice;
	size_t scenario = index / choice_seeds(c), seed = index % choice_seeds(c);
	const struct oracle *oracle = &scores->oracles[scenario];
	struct run_result *best = alloc_or_abort(sizeof(*best)), *single = NULL;

	if (c->random > 0) {
		single = alloc_or_abort(sizeof(*single));
		score_single(single, &c->scenarios[scenario], oracle, c->first_seed + seed);
	}
	score_best(best, &c->scenarios[scenario], oracle, c->first_seed + seed);
	for (size_t i = 0; i < c->limit_count; i++)
		score_one(place(scores, i, scenario, seed), &c->scenarios[scenario], oracle, best,
			  single, c->limits[i], c->first_seed + seed);
	free(single);
	free(best);
}

static void make_all(struct scores *scores, const struct choice *choice, bool use_cache)
{
	size_t pairs = choice->scenario_count * choice_seeds(choice);
	char path[4096];

	*scores = (struct scores){
		.choice = choice,
		.oracles = alloc_or_abort(choice->scenario_count * sizeof(struct oracle)),
		.all = alloc_or_abort(pairs * choice->limit_count * sizeof(struct score)),
	};
	oracles_find(scores->oracles, choice->scenarios, choice->scenario_count, choice->threads,
		     use_cache ? oracle_cache(path, sizeof(path)) : NULL);
	parallel_run(&(struct parallel){
		.work = score_all_limits,
		.arg = scores,
		.count = pairs,
		.threads = choice->threads,
		.title = "scores",
	});
}

static void scores_free(struct scores *scores)
{
	free(scores->oracles);
	free(scores->all);
}

double score_part(const struct score *score, enum part part)
{
	switch (part) {
	case GOODPUT:
		return score->goodput;
	case LATENCY:
		return score->latency;
	case SINGLE_POWER:
		return score->single_power;
	case SINGLE_GOODPUT:
		return score->single_goodput;
	case SINGLE_LATENCY:
		return score->single_latency;
	case POWER:
		break;
	}
	return score->power;
}

double scores_mean(const struct scores *scores, size_t limit, size_t scenario, enum part part)
{
	size_t seeds = choice_seeds(scores->choice);
	double sum = 0;

	for (size_t i = 0; i < seeds; i++)
		sum += draw_ln(score_part(scores_at(scores, limit, scenario, i), part));
	return isnan(sum) ? NAN : draw_exp(sum / (double)seeds);
}

double scores_total(const struct scores *scores, size_t limit, long seed, enum part part)
{
	double sum = 0, one;
	size_t count = 0;

	for (size_t i = 0; i < scores->choice->scenario_count; i++) {
		one = seed < 0 ? scores_mean(scores, limit, i, part)
			       : score_part(scores_at(scores, limit, i, (size_t)seed), part);
		if (isnan(one))
			continue;
		sum += draw_ln(one);
		count++;
	}
	return count == 0 ? NAN : draw_exp(sum / (double)count);
}

size_t scores_rank(const struct scores *scores, size_t limit, enum part part, size_t *order)
{
	size_t count = 0;
	double sign = part == LATENCY || part == SINGLE_LATENCY ? -1 : 1;

	for (size_t i = 0; i < scores->choice->scenario_count; i++) {
		double one = sign * scores_mean(scores, limit, i, part);
		size_t at = count;

		if (isnan(one))
			continue;
		while (at > 0 && sign * scores_mean(scores, limit, order[at - 1], part) > one) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
		count++;
	}
	return count;
}

double scores_false_rejects(const struct scores *scores, size_t limit)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < scores->choice->scenario_count; i++)
		for (size_t k = 0; k < choice_seeds(scores->choice); k++) {
			double one = scores_at(scores, limit, i, k)->false_rejects;

			if (isnan(one))
				continue;
			sum += one;
			count++;
		}
	return count == 0 ? NAN : sum / (double)count;
}

static void write_number(FILE *out, double number)
{
	if (isnan(number))
		fputs("\t-", out);
	else
		fprintf(out, "\t%.6g", number);
}

static void write_one(const struct scores *scores, FILE *out, size_t limit, size_t scenario,
		      size_t seed)
{
	const struct choice *c = scores->choice;
	const struct score *s = scores_at(scores, limit, scenario, seed);
	const double numbers[] = {s->power, s->goodput, s->latency,       s->p50,
				  s->p99,   s->p999,    s->false_rejects, s->settled,
				  s->drift, s->jain,    s->least_class};
	const double single[] = {s->single_power, s->single_goodput, s->single_latency};

	fprintf(out, "%s\t%s\t%s\t%ju", c->limits[limit]->text, c->scenarios[scenario].family,
		c->scenarios[scenario].name, (uintmax_t)(c->first_seed + seed));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		write_number(out, numbers[i]);
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]) && c->random > 0; i++)
		write_number(out, single[i]);
	fputc('\n', out);
}

static void write_all(const struct scores *scores, FILE *out)
{
	const struct choice *c = scores->choice;

	fputs("limit\tfamily\tscenario\tseed\tpower\tgoodput\tlatency\tp50_ms\tp99_ms\tp999_ms\t"
	      "false_rejects\tsettled_s\tdrift_h\tjain\tleast_class",
	      out);
	fputs(c->random > 0 ? "\tsingle_power\tsingle_goodput\tsingle_latency\n" : "\n", out);
	for (size_t l = 0; l < c->limit_count; l++)
		for (size_t s = 0; s < c->scenario_count; s++)
			for (size_t k = 0; k < choice_seeds(c); k++)
				write_one(scores, out, l, s, k);
}

static bool leaks(const struct scores *scores)
{
	const struct choice *c = scores->choice;
	bool leak = false;

	for (size_t l = 0; l < c->limit_count; l++)
		for (size_t s = 0; s < c->scenario_count; s++)
			for (size_t k = 0; k < choice_seeds(c); k++) {
				if (!scores_at(scores, l, s, k)->leaks)
					continue;
				leak = true;
				fprintf(stderr,
					"weir-sim: %s in %s, seed %ju: a permit was lost, or "
					"granted above the limit\n",
					c->limits[l]->text, c->scenarios[s].name,
					(uintmax_t)(c->first_seed + k));
			}
	return leak;
}

int scores_report(const struct choice *choice, bool use_cache, const char *tsv,
		  void (*print)(const struct scores *scores, const void *arg), const void *arg)
{
	FILE *out = tsv == NULL ? NULL : output_open(tsv);
	struct scores scores;
	bool good;

	if (tsv != NULL && out == NULL)
		return EXIT_FAILURE;
	make_all(&scores, choice, use_cache);
	if (out != stdout && print != NULL)
		print(&scores, arg);
	if (out != NULL)
		write_all(&scores, out);
	good = output_close(out, tsv) && !leaks(&scores);
	scores_free(&scores);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
