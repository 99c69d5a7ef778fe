/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - tables as TSV. bench/README.md explains them.
 */
#include "report.h"

#include "rank.h"

#include <math.h>
#include <stdio.h>

#define MS 1e-6
#define US 1e-3

/* Scores that are equal to two digits rank as equal: they differ more from seed to seed. */
#define EQUAL 0.01

/* If the 99th percentile of wake-up delays is above this, the machine was disturbed. */
#define LATE_MAX (1 * WEIR_MS)

/* By limit. */
struct scores {
	double of[LIMITS_MAX];
};

static double rounded(double score)
{
	return EQUAL * round(score / EQUAL);
}

static struct scores simulated(const struct heat *heat, unsigned count)
{
	struct scores scores = {.of = {0}};

	for (unsigned i = 0; i < count; i++)
		scores.of[i] = rounded(heat->standings[i].sim.score);
	return scores;
}

static struct scores measured(const struct heat *heat, unsigned count)
{
	struct scores scores = {.of = {0}};

	for (unsigned i = 0; i < count; i++)
		scores.of[i] = rounded(heat->standings[i].real.score);
	return scores;
}

static struct scores of_seed(const struct heat *heat, unsigned count, unsigned seed)
{
	struct scores scores = {.of = {0}};

	for (unsigned i = 0; i < count; i++)
		scores.of[i] = rounded(heat->standings[i].scores[seed]);
	return scores;
}

static struct scores of_other_seeds(const struct heat *heat, unsigned count, unsigned seed,
				    unsigned seeds)
{
	struct scores scores = {.of = {0}};

	for (unsigned i = 0; i < count; i++) {
		const struct standing *s = &heat->standings[i];

		scores.of[i] = rounded((s->sim.score * seeds - s->scores[seed]) / (seeds - 1));
	}
	return scores;
}

static double deviation(const struct standing *standing, unsigned seeds)
{
	double squares = 0;

	for (unsigned i = 0; i < seeds; i++)
		squares += pow(standing->scores[i] - standing->sim.score, 2);
	return seeds > 1 ? sqrt(squares / (seeds - 1)) : 0;
}

/* The index of the limit with the given rank; equal limits stay in their order. */
static unsigned at_place(const double *places, unsigned count, unsigned place)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned before = 0;

		for (unsigned k = 0; k < count; k++)
			before += places[k] < places[i] || (places[k] == places[i] && k < i);
		if (before == place)
			return i;
	}
	return 0;
}

static void print_standings(const struct options *o, const struct heat *heat)
{
	const unsigned count = o->limit_count;
	const struct scores sim = simulated(heat, count), real = measured(heat, count);
	double sim_places[LIMITS_MAX], real_places[LIMITS_MAX];

	rank_places(sim.of, count, sim_places);
	rank_places(real.of, count, real_places);
	for (unsigned place = 0; place < count; place++) {
		unsigned i = at_place(sim_places, count, place);
		const struct standing *s = &heat->standings[i];

		printf("%s\t%s\t%g\t%g\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t%.3f\t%.3f\t%.1f\t%.1f\n",
		       heat->name, o->limits[i].text, sim_places[i], real_places[i], s->sim.score,
		       deviation(s, o->seeds), s->scores[0], s->real.score, s->sim.good,
		       s->real.good, MS * s->sim.latency, MS * s->real.latency, s->sim.limit,
		       s->real.limit);
	}
}

/*
 * The mean rank correlation, in the simulator, of one seed with the mean of the others. A real run
 * also has one seed, so a higher correlation cannot be expected of it. NaN if there is only one
 * seed.
 */
static double between_seeds(const struct options *o, const struct heat *heat)
{
	double sum = 0;

	for (unsigned seed = 0; seed < o->seeds; seed++) {
		const struct scores one = of_seed(heat, o->limit_count, seed);
		const struct scores others = of_other_seeds(heat, o->limit_count, seed, o->seeds);

		sum += rank_spearman(one.of, others.of, o->limit_count);
	}
	return o->seeds > 1 ? sum / o->seeds : NAN;
}

/* Mean distance of real scores from simulated scores of the same seed. */
static double apart(const struct options *o, const struct heat *heat)
{
	double sum = 0;

	for (unsigned i = 0; i < o->limit_count; i++)
		sum += fabs(heat->standings[i].real.score - heat->standings[i].scores[0]);
	return sum / o->limit_count;
}

static void print_correlation(const struct options *o, const struct heat *heat)
{
	const struct scores sim = simulated(heat, o->limit_count);
	const struct scores same = of_seed(heat, o->limit_count, 0);
	const struct scores real = measured(heat, o->limit_count);

	printf("%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t%.0f\n", heat->name,
	       rank_spearman(sim.of, real.of, o->limit_count),
	       rank_kendall(sim.of, real.of, o->limit_count), between_seeds(o, heat),
	       rank_spearman(same.of, real.of, o->limit_count),
	       rank_kendall(same.of, real.of, o->limit_count), apart(o, heat),
	       US * tally_latency_mean(&heat->lateness),
	       US * tally_latency_quantile(&heat->lateness, 0.99));
}

static void add_figures(struct figures *mean, const struct figures *one, unsigned count)
{
	mean->good += one->good / count;
	mean->latency += one->latency / count;
	mean->limit += one->limit / count;
	mean->score += one->score / count;
}

static void add_heat(const struct options *o, struct heat *mean, const struct heat *heat)
{
	for (unsigned i = 0; i < o->limit_count; i++) {
		struct standing *to = &mean->standings[i];

		add_figures(&to->sim, &heat->standings[i].sim, o->scenario_count);
		add_figures(&to->real, &heat->standings[i].real, o->scenario_count);
		for (unsigned seed = 0; seed < o->seeds; seed++)
			to->scores[seed] += heat->standings[i].scores[seed] / o->scenario_count;
	}
	tally_add(&mean->lateness, &heat->lateness);
}

void report(const struct options *o, struct heat *heats)
{
	struct heat *mean = &heats[o->scenario_count];

	*mean = (struct heat){.name = "mean"};
	for (unsigned k = 0; k < o->scenario_count; k++)
		add_heat(o, mean, &heats[k]);
	printf("# %u simulated runs each; %u real runs in parallel\n", o->seeds, o->side);
	if (tally_latency_quantile(&mean->lateness, 0.99) > (double)LATE_MAX)
		puts("# disturbed: more than one wake-up in a hundred was a millisecond late");
	puts("scenario\tlimit\tsim_place\treal_place\tsim_score\tsim_sd\tsame_score\treal_score\tsim_good\t"
	     "real_good\tsim_ms\treal_ms\tsim_limit\treal_limit");
	for (unsigned k = 0; k <= o->scenario_count; k++)
		print_standings(o, &heats[k]);
	puts("\n\nscenario\tspearman\tkendall\tseeds_spearman\tsame_spearman\tsame_kendall\tapart\tlate_us\tlate_p99_us");
	for (unsigned k = 0; k <= o->scenario_count; k++)
		print_correlation(o, &heats[k]);
}
