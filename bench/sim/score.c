/* SPDX-License-Identifier: BSD-2-Clause */
#include "score.h"

#include "alloc_or_abort.h"

#include <math.h>
#include <stdlib.h>

/* Lower bound of goodput relative to the oracle's, so that the logarithm is finite. */
#define GOODPUT_LEAST 0.001

/* Below this load a refusal is false. The margin keeps a load written as 0.7 out. */
#define HEALTHY (0.7 * (1 - 1e-9))

/* Least relative change of the oracle's limit that counts as a step. */
#define STEP 0.2

#define DRIFT_LEAST (600 * WEIR_S)

#define MS 1e-6

/* A phase that serves no calls does not count: the few that end in it began before it. */
static bool counts(const struct scenario *s, const struct run_result *best, unsigned phase)
{
	return scenario_counts(s, phase) && best->phases[phase].tally.good > 0;
}

/* Goodput and latency relative to those of another run. */
static void compare(double *goodput, double *latency, const struct scenario *s,
		    const struct run_result *best, const struct run_result *result)
{
	double good = 0, longer = 0;
	unsigned phases = 0;

	for (unsigned i = 0; i < s->phase_count; i++) {
		const struct tally *t = &result->phases[i].tally, *b = &best->phases[i].tally;
		double mean = tally_latency_mean(t), best_mean = tally_latency_mean(b);

		if (!counts(s, best, i))
			continue;
		phases++;
		good += draw_ln(fmax((double)t->good / (double)b->good, GOODPUT_LEAST));
		if (mean > 0 && best_mean > 0)
			longer += draw_ln(mean / best_mean);
	}
	*goodput = phases == 0 ? NAN : draw_exp(good / phases);
	*latency = phases == 0 ? NAN : draw_exp(longer / phases);
}

static void set_quantiles(struct score *score, const struct scenario *s,
			  const struct run_result *result)
{
	struct tally *all = alloc_or_abort(sizeof(*all));

	for (unsigned i = 0; i < s->phase_count; i++)
		if (!s->phases[i].warm_up)
			tally_add(all, &result->phases[i].tally);
	score->p50 = MS * tally_latency_quantile(all, 0.5);
	score->p99 = MS * tally_latency_quantile(all, 0.99);
	score->p999 = MS * tally_latency_quantile(all, 0.999);
	free(all);
}

static double false_rejects(const struct scenario *s, const struct run_result *result)
{
	uint64_t offered = 0, rejected = 0;

	for (unsigned i = 0; i < s->phase_count; i++) {
		const struct tally *t = &result->phases[i].tally;

		if (s->phases[i].warm_up || !(scenario_load(s, &s->phases[i]) < HEALTHY))
			continue;
		offered += t->offered;
		rejected += t->rejected;
	}
	return offered == 0 ? NAN : (double)rejected / (double)offered;
}

static double settled(const struct scenario *s, const struct oracle *oracle,
		      const struct run_result *best, const struct run_result *result)
{
	double worst = NAN;

	for (unsigned i = 1; i < s->phase_count; i++) {
		double before = oracle->limits[i - 1], now = oracle->limits[i];
		double took = result->phases[i].settled;

		if (!counts(s, best, i) || fabs(now - before) <= STEP * before)
			continue;
		worst = fmax(worst,
			     isinf(took) ? (double)s->phases[i].length / (double)WEIR_S : took);
	}
	return worst;
}

static bool steady(const struct phase *phase)
{
	return phase->rate[0] == phase->rate[1] && phase->slower[0] == phase->slower[1];
}

static double drift(const struct scenario *s, const struct run_result *result)
{
	double worst = NAN;

	for (unsigned i = 0; i < s->phase_count; i++) {
		const struct phase *phase = &s->phases[i];
		const double *slices = result->phases[i].slices;
		double hours = (double)phase->length / (double)WEIR_S / 3600;
		double moved;

		if (phase->warm_up || !steady(phase) || phase->length < DRIFT_LEAST ||
		    slices[1] <= 0)
			continue;
		moved = (slices[SLICES - 1] / slices[1] - 1) / (hours * (SLICES - 2) / SLICES);
		worst = isnan(worst) || fabs(moved) > fabs(worst) ? moved : worst;
	}
	return worst;
}

/* Calls that a limiter served in counted phases that began after all limiters had started. */
static double good_of(const struct scenario *s, const struct run_result *result, unsigned door)
{
	double good = 0;
	weir_time begins = 0, last = 0;

	for (unsigned g = 0; g < s->group_count; g++)
		last = s->groups[g].start > last ? s->groups[g].start : last;
	for (unsigned i = 0; i < s->phase_count; begins += s->phases[i++].length)
		if (!s->phases[i].warm_up && begins >= last)
			good += (double)result->phases[i].limiter_good[door];
	return good;
}

/* Fairness index of R. Jain, D. Chiu, W. Hawe, 1984. */
static double jain(const struct scenario *s, const struct run_result *result)
{
	double sum = 0, squares = 0;
	unsigned tried = 0, door = 0;

	for (unsigned g = 0; g < s->group_count; g++)
		for (unsigned i = 0; i < s->groups[g].count; i++, door++) {
			double good = good_of(s, result, door);

			if (s->groups[g].limit[0] != '\0')
				continue;
			tried++;
			sum += good;
			squares += good * good;
		}
	return tried < 2 || squares == 0 ? NAN : sum * sum / (tried * squares);
}

static double least_class(const struct scenario *s, const struct run_result *best,
			  const struct run_result *result)
{
	double least = NAN;

	for (unsigned c = 0; s->class_count > 1 && c < s->class_count; c++) {
		double good = 0, best_good = 0;

		for (unsigned i = 0; i < s->phase_count; i++) {
			if (s->phases[i].warm_up)
				continue;
			good += (double)result->phases[i].class_good[c];
			best_good += (double)best->phases[i].class_good[c];
		}
		if (best_good > 0)
			least = fmin(least, good / best_good);
	}
	return least;
}

void score_from(struct score *score, const struct scenario *s, const struct oracle *oracle,
		const struct run_result *best, const struct run_result *result)
{
	compare(&score->goodput, &score->latency, s, best, result);
	score->power = score->goodput / score->latency;
	score->single_goodput = score->single_latency = score->single_power = NAN;
	set_quantiles(score, s, result);
	score->false_rejects = false_rejects(s, result);
	score->settled = settled(s, oracle, best, result);
	score->drift = drift(s, result);
	score->jain = jain(s, result);
	score->least_class = least_class(s, best, result);
	score->leaks = result->leaked > 0 || result->above > 0;
}

static void run_with(struct run_result *result, const struct scenario *s, const uint32_t *limits,
		     uint64_t seed)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	if (run(
		    &(struct run_setup){
			    .scenario = s, .limiter = &config, .seed = seed, .limits = limits},
		    result) != 0)
		abort();
}

void score_best(struct run_result *best, const struct scenario *s, const struct oracle *oracle,
		uint64_t seed)
{
	run_with(best, s, oracle->limits, seed);
}

void score_single(struct run_result *single, const struct scenario *s, const struct oracle *oracle,
		  uint64_t seed)
{
	uint32_t limits[PHASES_MAX];

	for (unsigned i = 0; i < PHASES_MAX; i++)
		limits[i] = oracle->single;
	run_with(single, s, limits, seed);
}

/* Score a run, and against the single limit too unless that is NULL. */
static void score_result(struct score *score, const struct scenario *s, const struct oracle *oracle,
			 const struct run_result *best, const struct run_result *single,
			 const struct run_result *result)
{
	score_from(score, s, oracle, best, result);
	if (single == NULL)
		return;
	compare(&score->single_goodput, &score->single_latency, s, single, result);
	score->single_power = score->single_goodput / score->single_latency;
}

int score_run(struct score *score, const struct scenario *s, const struct oracle *oracle,
	      const struct run_result *best, const struct run_result *single,
	      const struct weir_config *limiter, uint64_t seed)
{
	struct run_result *result = alloc_or_abort(sizeof(*result));
	int error = run(
		&(struct run_setup){
			.scenario = s, .limiter = limiter, .seed = seed, .targets = oracle->limits},
		result);

	if (error == 0)
		score_result(score, s, oracle, best, single, result);
	free(result);
	return error;
}

void score_times(struct score *score, const struct scenario *s, const struct oracle *oracle,
		 const struct run_result *best, const struct run_result *single, double times,
		 uint64_t seed)
{
	struct run_result *result = alloc_or_abort(sizeof(*result));
	uint32_t limits[PHASES_MAX];

	for (unsigned i = 0; i < PHASES_MAX; i++)
		limits[i] = (uint32_t)round(times * oracle->limits[i]);
	run_with(result, s, limits, seed);
	score_result(score, s, oracle, best, single, result);
	free(result);
}
