/*
 * play.c - runs, and checks what must hold in any run.
 */
#include "play.h"

static void check_counts(const struct tally *t)
{
	cr_assert_eq(t->admitted + t->rejected, t->offered);
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
	cr_assert_eq(result->leaked, 0, "not given back");
	cr_assert_gt(result->windows, 0);
	for (unsigned i = 0; i < setup->scenario->phase_count; i++)
		check_counts(&result->phases[i].tally);
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
