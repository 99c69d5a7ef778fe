/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * play.c - run a scenario, and check what must hold in any run.
 */
#include "play.h"

#include <math.h>

#define CLOSE 1e-9 /* tolerance for sums in another order */

static void check_phase(const struct phase_result *phase)
{
	const struct tally *t = &phase->tally;
	double area = 0;
	uint64_t good = 0, of_limiters = 0;

	cr_assert_eq(t->admitted + t->rejected, t->offered);
	cr_assert_geq(t->good + t->late + t->timed_out, t->waits);
	for (unsigned i = 0; i < SLICES; i++)
		area += phase->slices[i];
	cr_assert_leq(fabs(area - t->limit_area), CLOSE * t->limit_area);
	cr_assert_leq(t->limit_last, (uint64_t)LIMITERS_MAX * WEIR_LIMIT_MAX);
	for (unsigned i = 0; i < CLASSES_MAX; i++)
		good += phase->class_good[i];
	cr_assert_eq(good, t->good, "sum of classes");
	for (unsigned i = 0; i < LIMITERS_MAX; i++)
		of_limiters += phase->limiter_good[i];
	cr_assert_eq(of_limiters, t->good, "sum of limiters");
}

void play_find(struct scenario *scenario, const char *name)
{
	char why[300];

	cr_assert_eq(scenario_find(scenario, name, why, sizeof(why)), 0, "%s", why);
}

void play_setup(struct run_result *result, const struct run_setup *setup)
{
	cr_assert_eq(run(setup, result), 0);
	cr_assert_eq(result->above, 0, "admitted above the limit");
	cr_assert_eq(result->leaked, 0, "permits not returned");
	for (unsigned i = 0; i < setup->scenario->phase_count; i++)
		check_phase(&result->phases[i]);
}

void play_text(struct run_result *result, const char *limit, const char *text, uint64_t seed)
{
	struct scenario scenario;
	char why[300];

	cr_assert_eq(scenario_from_text(&scenario, "text", text, why, sizeof(why)), 0, "%s", why);
	play(result, limit, &scenario, seed);
	scenario_free(&scenario);
}

void play_cut(struct run_result *result, const char *limit, const struct scenario *scenario,
	      weir_dur length)
{
	struct scenario cut = *scenario;

	for (unsigned i = 0; i < cut.phase_count; i++)
		if (cut.phases[i].length > length)
			cut.phases[i].length = length;
	if (cut.rounds > 2)
		cut.rounds = 2;
	play(result, limit, &cut, 1);
}

void play(struct run_result *result, const char *limit, const struct scenario *scenario,
	  uint64_t seed)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_config limiter;
	char why[200];

	weir_config_init(&limiter);
	limiter.limit_config = limit_config;
	cr_assert_eq(weir_limit_from_text(limit, &limiter.limit, limit_config, why, sizeof(why)), 0,
		     "%s: %s", limit, why);
	play_setup(result, &(struct run_setup){
				   .scenario = scenario,
				   .limiter = &limiter,
				   .seed = seed,
			   });
}
