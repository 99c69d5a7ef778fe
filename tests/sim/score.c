/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * score.c - tests of the oracle, and of scores in cases with a known result.
 */
#include "play.h"
#include "score.h"

#include <math.h>

#define STEADY 2

static struct run_result best, result;

static void scenario_of(struct scenario *scenario, const char *phases)
{
	char text[1000], why[300];

	snprintf(text, sizeof(text),
		 "name = \"a test\"; client = { deadline = \"100ms\"; };\n"
		 "server = { name = \"w\"; workers = 16; work = \"exponential 10ms\"; };\n"
		 "phases = ( %s );\n",
		 phases);
	cr_assert_eq(scenario_from_text(scenario, "t", text, why, sizeof(why)), 0, "%s", why);
}

static void run_fixed(struct run_result *to, const struct scenario *scenario, uint32_t limit)
{
	struct weir_fixed_config fixed = {.limit = limit};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	cr_assert_eq(
		run(&(struct run_setup){.scenario = scenario, .limiter = &config, .seed = 1}, to),
		0);
}

/* By Erlang's formula, 16 workers with almost no queue are 97 % busy at twice their capacity. */
Test(oracle, is_slightly_above_the_workers_under_overload)
{
	struct scenario scenario;
	struct oracle oracle;

	play_find(&scenario, "overload");
	oracle_find(&oracle, &scenario);
	cr_expect(oracle.limits[STEADY] >= 16 && oracle.limits[STEADY] <= 19, "%u",
		  oracle.limits[STEADY]);
	cr_expect_float_eq(oracle.best[STEADY], 1600, 20);
}

/* One limit for both phases loses a little in the first, so that less waits in the second. */
Test(oracle, has_one_limit_for_the_whole_scenario)
{
	struct scenario scenario;
	struct oracle oracle;

	scenario_of(&scenario, "{ length = \"60s\"; load = 2; }, { length = \"60s\"; load = 2; }");
	oracle_find(&oracle, &scenario);
	cr_expect_eq(oracle.single, oracle.limits[0]);
	cr_expect_float_eq(oracle.single_best, oracle.best[0], 30);
	scenario_of(&scenario, "{ length = \"60s\"; load = 2; }, "
			       "{ length = \"60s\"; load = 2; workers = 4; }");
	oracle_find(&oracle, &scenario);
	cr_expect(oracle.limits[1] < 8 && oracle.single > 2 * oracle.limits[1] &&
			  oracle.single <= oracle.limits[0],
		  "%u, %u; %u", oracle.limits[0], oracle.limits[1], oracle.single);
	cr_expect_float_eq(oracle.single_best, sqrt(oracle.best[0] * oracle.best[1]), 30);
}

/* A coarse search, of few calls and with large steps, finds about the same. */
Test(oracle, may_be_coarse)
{
	struct scenario scenario;
	struct oracle oracle, coarse;

	scenario_of(&scenario, "{ length = \"30s\"; load = 1.5; }");
	oracle_find(&oracle, &scenario);
	scenario.coarse = true;
	oracle_find(&coarse, &scenario);
	cr_expect_float_eq(coarse.limits[0], oracle.limits[0], 2);
	cr_expect_float_eq(coarse.best[0], oracle.best[0], 20);
}

/*
 * Nine calls of ten are ignored, after five times as long as the others take: with a low limit, hardly any
 * call is a good one, and twice the limit seems to gain nothing.
 */
Test(oracle, does_not_end_before_there_are_good_calls)
{
	const char *text =
		"name = \"a test\"; coarse = true; client = { deadline = \"5s\"; };\n"
		"server = { name = \"w\"; workers = 1000; work = \"constant 330ms\"; };\n"
		"classes = { failing = 0.9; fail_after = \"exponential 1.7s\"; fail_as = \"ignored\"; };\n"
		"phases = ( { length = \"4s\"; rate = 6000; } );\n";
	struct scenario scenario;
	struct oracle oracle;
	char why[300];

	cr_assert_eq(scenario_from_text(&scenario, "t", text, why, sizeof(why)), 0, "%s", why);
	oracle_find(&oracle, &scenario);
	cr_expect_geq(oracle.limits[0], 2000, "%u", oracle.limits[0]);
	cr_expect_geq(oracle.best[0], 300, "%g", oracle.best[0]);
}

/* Checked one by one: every lower limit is not good enough, and the oracle's is. */
Test(oracle, is_the_smallest_that_is_good_enough)
{
	struct scenario scenario;
	struct oracle oracle;
	double most = 0, good[41];

	scenario_of(&scenario, "{ length = \"60s\"; load = 1.2; }");
	oracle_find(&oracle, &scenario);
	for (uint32_t limit = 8; limit <= 40; limit++) {
		run_fixed(&result, &scenario, limit);
		good[limit] = (double)result.phases[0].tally.good;
		most = fmax(most, good[limit]);
	}
	/* With other seeds than the oracle's, so allow 0.5 % for chance. */
	cr_expect(good[oracle.limits[0]] >= (1 - ORACLE_WITHIN - 0.005) * most);
	cr_expect(good[oracle.limits[0] - 1] < (1 - ORACLE_WITHIN + 0.005) * most);
}

Test(oracle, follows_the_phases)
{
	struct scenario scenario;
	struct oracle oracle;

	play_find(&scenario, "capacity-step");
	oracle_find(&oracle, &scenario);
	cr_expect(oracle.limits[0] > 16 && oracle.limits[0] < 24, "%u", oracle.limits[0]);
	cr_expect(oracle.limits[1] >= 4 && oracle.limits[1] <= 6, "%u", oracle.limits[1]);
}

Test(oracle, is_read_back_from_its_cache)
{
	char path[] = "/tmp/weir-oracle-XXXXXX", line[1000];
	struct scenario scenarios[2];
	struct oracle oracles[2], again[2];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "r+");

	cr_assert(fd >= 0 && file != NULL);
	scenario_of(&scenarios[0],
		    "{ length = \"5s\"; load = 2; }, { length = \"5s\"; load = 0.5; }");
	scenario_of(&scenarios[1], "{ length = \"5s\"; load = 0.9; }");
	fputs("not an oracle\n1 0 half\n", file);
	fflush(file);
	oracles_find(oracles, scenarios, 2, 1, path);
	oracles_find(again, scenarios, 2, 1, path);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_arr_eq(oracles[i].limits, again[i].limits, sizeof(again[i].limits));
	cr_expect_eq(oracles[0].best[1], again[0].best[1]);
	unsigned lines = 0;
	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		lines++;
	cr_expect_eq(lines, 4, "%u", lines);
	fclose(file);
	remove(path);
}

/* A run with the oracle's limit scores 1. */
Test(score, of_the_oracle_is_one)
{
	struct scenario scenario;
	struct oracle oracle;
	struct score score;

	scenario_of(&scenario, "{ length = \"20s\"; load = 1.5; }");
	oracle_find(&oracle, &scenario);
	score_best(&best, &scenario, &oracle, 1);
	run_fixed(&result, &scenario, oracle.limits[0]);
	score_from(&score, &scenario, &oracle, &best, &result);
	cr_expect_float_eq(score.goodput, 1, 1e-12);
	cr_expect_float_eq(score.latency, 1, 1e-12);
	cr_expect_float_eq(score.power, 1, 1e-12);
	cr_expect(isnan(score.false_rejects));
	cr_expect(isnan(score.jain));
	cr_expect_not(score.leaks);
}

/* M/M/16/K: twice the limit has the same throughput, and by Little's law twice the latency. */
Test(score, of_twice_the_limit_is_a_half)
{
	struct scenario scenario;
	struct oracle oracle = {.limits = {32}};
	struct score score;

	scenario_of(&scenario, "{ length = \"60s\"; load = 3; }");
	score_best(&best, &scenario, &oracle, 1);
	run_fixed(&result, &scenario, 64);
	score_from(&score, &scenario, &oracle, &best, &result);
	cr_expect_float_eq(score.goodput, 1, 0.01);
	cr_expect_float_eq(score.latency, 2, 0.04);
	cr_expect_float_eq(score.power, 0.5, 0.01);
}

/* Of six hundred calls, only those that began before the phase may end: that is no measure. */
Test(score, leaves_out_phases_without_capacity)
{
	static const char *const stopped[] = {"workers = 0;", "speed = 0;", "failing = 1;"};
	struct oracle oracle = {.limits = {16, 16, 16}};
	struct scenario scenario;
	struct score score;

	for (unsigned i = 0; i < sizeof(stopped) / sizeof(stopped[0]); i++) {
		char phases[300];

		snprintf(phases, sizeof(phases),
			 "{ length = \"20s\"; load = 3; }, { length = \"10s\"; load = 3; %s },"
			 "{ length = \"20s\"; load = 3; }",
			 stopped[i]);
		scenario_of(&scenario, phases);
		score_best(&best, &scenario, &oracle, 1);
		result = best;
		result.phases[1].tally.good = 0;
		score_from(&score, &scenario, &oracle, &best, &result);
		cr_expect_eq(score.goodput, 1, "%s: %f", stopped[i], score.goodput);
	}
}

/* On-off sources offer up to four times their mean, so their refusals may be justified. */
Test(score, has_no_false_rejects_under_possible_overload)
{
	struct oracle oracle = {.limits = {16}};
	struct scenario scenario;
	struct score score;

	scenario_of(&scenario, "{ length = \"20s\"; load = 0.5; }");
	scenario.arrivals = (struct arrivals_model){
		.process = ARRIVALS_SELFSIMILAR,
		.on = {.mean = 200e6},
		.off = {.mean = 600e6},
	};
	cr_expect_float_eq(scenario_load(&scenario, &scenario.phases[0]), 2, 1e-9);
	score_best(&best, &scenario, &oracle, 1);
	score_from(&score, &scenario, &oracle, &best, &best);
	cr_expect(isnan(score.false_rejects));
}

/* Equal shares are fair, even if some limiters start late. */
Test(score, fairness_counts_once_all_limiters_started)
{
	struct oracle oracle = {.limits = {8, 8, 8}};
	struct scenario scenario;
	struct score score;

	scenario_of(&scenario, "{ length = \"20s\"; load = 2; }, { length = \"60s\"; load = 2; }");
	scenario.groups[0].count = 2;
	scenario.groups[scenario.group_count++] = (struct limiter_group){.count = 2,
									 .start = 20 * WEIR_S};
	score_best(&best, &scenario, &oracle, 1);
	score_from(&score, &scenario, &oracle, &best, &best);
	cr_expect_float_eq(score.jain, 1, 1e-3, "%f", score.jain);

	/* One of four gets nothing: Jain's index is 3/4. */
	memset(&best.phases[1].limiter_good[3], 0, sizeof(uint64_t));
	score_from(&score, &scenario, &oracle, &best, &best);
	cr_expect_float_eq(score.jain, 0.75, 1e-3, "%f", score.jain);
}

Test(score, has_false_rejects_at_low_load)
{
	struct scenario scenario;
	struct oracle oracle = {.limits = {16, 16, 16}};
	struct score score;

	scenario_of(&scenario,
		    "{ length = \"20s\"; load = 0.5; warm_up = true; },"
		    "{ length = \"60s\"; load = 0.5; }, { length = \"20s\"; load = 2; }");
	score_best(&best, &scenario, &oracle, 1);
	run_fixed(&result, &scenario, 8);
	score_from(&score, &scenario, &oracle, &best, &result);
	/* Erlang B of 8 servers and 8 erlangs */
	cr_expect_float_eq(score.false_rejects, 0.2356, 0.01, "%f", score.false_rejects);
}

struct gradual {
	double limit;
};

/* The limit grows by one a second. */
static double gradual_init(void *state, const void *config, double random)
{
	(void)config;
	(void)random;
	((struct gradual *)state)->limit = 100;
	return 100;
}

static double gradual_update(void *state, const struct weir_window *w)
{
	struct gradual *g = state;

	g->limit = 100 + (double)w->end / (double)WEIR_S / 36;
	return g->limit;
}

/* From 100, by 100 an hour: from the second tenth to the last it grows by 80 from 115. */
Test(score, detects_a_drifting_limit)
{
	static const struct weir_limit_ops gradual = {
		.size = sizeof(gradual),
		.name = "gradual",
		.state_size = sizeof(struct gradual),
		.init = gradual_init,
		.update = gradual_update,
	};
	struct scenario scenario;
	struct oracle oracle = {.limits = {16}};
	struct weir_config config;
	struct score score;

	scenario_of(&scenario, "{ length = \"1h\"; load = 0.02; }");
	weir_config_init(&config);
	config.limit = &gradual;
	score_best(&best, &scenario, &oracle, 1);
	cr_assert_eq(score_run(&score, &scenario, &oracle, &best, NULL, &config, 1), 0);
	cr_expect_float_eq(score.drift, 80 / 115.0 / 0.8, 0.02, "%f", score.drift);

	/* Following a changing load is not drift. */
	scenario.phases[0].slower[1] = 2;
	cr_assert_eq(score_run(&score, &scenario, &oracle, &best, NULL, &config, 1), 0);
	cr_expect(isnan(score.drift));
	scenario.phases[0].slower[1] = 1;

	run_fixed(&result, &scenario, 16);
	score_from(&score, &scenario, &oracle, &best, &result);
	cr_expect_eq(score.drift, 0);
}

/* Limits that are right score 1; 10 of 16 workers serve 10/16 of what all of them do. */
Test(score, limits_that_are_wrong_by_a_factor)
{
	struct scenario scenario;
	struct oracle oracle = {.limits = {16, 16}};
	struct score score;

	scenario_of(&scenario, "{ length = \"60s\"; load = 3; }, { length = \"60s\"; load = 3; }");
	score_best(&best, &scenario, &oracle, 1);
	score_times(&score, &scenario, &oracle, &best, NULL, 1, 1);
	cr_expect_eq(score.goodput, 1);
	cr_expect_eq(score.latency, 1);
	score_times(&score, &scenario, &oracle, &best, &best, 0.6, 1); /* 9.6, rounded */
	cr_expect_float_eq(score.goodput, 10 / 16.0, 0.02, "%f", score.goodput);
	cr_expect_float_eq(score.single_goodput, score.goodput, 1e-9);

	/* A limit is 1 at least: one of 16 workers. */
	score_times(&score, &scenario, &oracle, &best, NULL, 0.001, 1);
	cr_expect_float_eq(score.goodput, 1 / 16.0, 0.01, "%f", score.goodput);
}

/* Right in the first round, and wrong from the second on. */
static double fickle_update(void *state, const struct weir_window *w)
{
	(void)state;
	return w->end < 10 * WEIR_S ? 100 : 20;
}

Test(score, settling_time_is_that_of_the_worst_round)
{
	static const struct weir_limit_ops fickle = {
		.size = sizeof(fickle),
		.name = "fickle",
		.state_size = sizeof(struct gradual),
		.init = gradual_init,
		.update = fickle_update,
	};
	struct scenario scenario;
	struct oracle oracle = {.limits = {16, 100}};
	struct weir_config config;
	struct score score;

	scenario_of(&scenario, "{ length = \"5s\"; load = 0.1; }, { length = \"5s\"; load = 2; }");
	weir_config_init(&config);
	config.limit = &fickle;
	score_best(&best, &scenario, &oracle, 1);
	cr_assert_eq(score_run(&score, &scenario, &oracle, &best, NULL, &config, 1), 0);
	cr_expect_eq(score.settled, 0, "%f", score.settled);

	scenario.rounds = 2;
	score_best(&best, &scenario, &oracle, 1);
	cr_assert_eq(score_run(&score, &scenario, &oracle, &best, NULL, &config, 1), 0);
	cr_expect_eq(score.settled, 5, "%f", score.settled);
}
