/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c - rules for all limits, and for the simulator itself.
 */
#include "play.h"

#include <math.h>

static struct run_result result;

#define SHORT (200 * WEIR_MS)

static void play_named(const char *limit, const char *name, uint64_t seed)
{
	struct scenario scenario;

	play_find(&scenario, name);
	play(&result, limit, &scenario, seed);
	scenario_free(&scenario);
}

/*
 * Phases are cut short, but work still outlasts them. play() checks every run: never above the
 * limit, every permit returned, no call lost.
 */
Test(rules, every_limit_goes_through_every_scenario)
{
	const struct weir_limit_ops *ops;
	struct scenario scenario;

	for (unsigned k = 0; scenario_builtin(&scenario, k); k++) {
		for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
			play_cut(&result, ops->name, &scenario, SHORT);
		scenario_free(&scenario);
	}
}

/* Whether the latency of every admitted call was recorded. */
static bool all_measured(const struct scenario *scenario)
{
	uint64_t without = 0;
	bool streams = false;

	for (unsigned i = 0; i < scenario->phase_count; i++)
		without += result.phases[i].tally.cancelled + result.phases[i].tally.failed;
	for (unsigned i = 0; i < scenario->class_count; i++)
		streams |= scenario->classes[i].stream;
	return without == 0 && !streams;
}

/*
 * Little's law: calls in flight integrated over time equal latencies summed over calls. It is exact
 * if no call is in flight at the end, so a phase without calls is added.
 */
Test(rules, littles_law_holds)
{
	struct scenario scenario;
	unsigned held = 0;

	for (unsigned k = 0; scenario_builtin(&scenario, k); k++) {
		double area = 0, latency = 0;

		scenario.phases[scenario.phase_count++] = (struct phase){
			.name = "idle",
			.length = 600 * WEIR_S,
			.slower = {1, 1},
			.workers = -1,
			.speed = -1,
			.failing = -1,
		};
		play_cut(&result, "vegas", &scenario, 600 * WEIR_S);
		for (unsigned i = 0; i < scenario.phase_count; i++) {
			area += result.phases[i].tally.inflight_area;
			latency += result.phases[i].tally.latency_sum;
		}
		if (all_measured(&scenario)) {
			cr_expect(fabs(area - latency) <= 1e-9 * area, "%s: %.12g, not %.12g",
				  scenario.name, area, latency);
			held++;
		}
		scenario_free(&scenario);
	}
	cr_expect_gt(held, 40);
}

Test(rules, the_seed_determines_the_run)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		uint64_t hash;

		play_named(ops->name, "overload-timeouts", 7);
		hash = result.hash;
		play_named(ops->name, "overload-timeouts", 7);
		cr_expect_eq(result.hash, hash, "%s", ops->name);
		play_named(ops->name, "overload-timeouts", 8);
		cr_expect_neq(result.hash, hash, "%s", ops->name);
	}
}

/*
 * Runs are the same with any compiler, on any machine, at any time. A change of one of these hashes
 * means that the behaviour of the limit has changed.
 */
Test(rules, runs_match_recorded_hashes)
{
	static const struct {
		const char *limit;
		uint64_t hash; /* of scenario "overload-timeouts": successes, drops and rejects */
	} golden[] = {
		{"fixed", 0x6f09f546b734e163},     {"aimd", 0x882b8c5c48656cc5},
		{"vegas", 0x4a1e1fc82965a94f},     {"gradient", 0x2596c9ca333ed60d},
		{"gradient2", 0x542bf4c4875696a9}, {"bbr", 0xe987c79dacbc22ba},
		{"brpc", 0x5132c1dfd79b975e},      {"cautious", 0x484330df7f077d04},
		{"codel", 0x696bccfd4804998e},     {"envoy", 0x02cb363177e9bf75},
		{"failsafe", 0x82dd29109ba20577},  {"hillclimb", 0xe9919acf131d872a},
		{"protego", 0xa6dbd2d9846e12f4},   {"vector", 0x03ea90dea085edf2},
	};

	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		play_named(golden[i].limit, "overload-timeouts", 1);
		cr_expect_eq(result.hash, golden[i].hash, "%s: 0x%016jx", golden[i].limit,
			     (uintmax_t)result.hash);
	}
}

/* Erlang B: the share of calls refused by n servers without a queue, at an offered load. */
static double erlang_b(unsigned servers, double load)
{
	double b = 1;

	for (unsigned n = 1; n <= servers; n++)
		b = load * b / (n + load * b);
	return b;
}

/* A limit equal to the number of workers makes a loss system, solved by Erlang in 1917. */
Test(simulator, agrees_with_erlang)
{
	const struct tally *steady = &result.phases[2].tally;

	play_named("fixed:limit=16", "overload", 1);
	cr_expect_float_eq(tally_rejected_share(steady), erlang_b(16, 32), 0.005);
	cr_expect_float_eq(tally_latency_mean(steady) / MS, 10, 0.1);
	/* p99 of an exponential distribution: the mean times ln 100 */
	cr_expect_float_eq(tally_latency_quantile(steady, 0.99) / MS, 10 * log(100), 1.5);
	cr_expect_float_eq(tally_per_second(steady, steady->offered), 3200, 20);
}

#define STEADY 2

static double goodput_of(unsigned limit)
{
	char text[32];

	snprintf(text, sizeof(text), "fixed:limit=%u", limit);
	play_named(text, "overload", 1);
	return tally_per_second(&result.phases[STEADY].tally, result.phases[STEADY].tally.good);
}

/* The smallest fixed limit within 3 % of the best goodput is the reference for all others. */
Test(simulator, has_an_oracle)
{
	double best = 0;
	unsigned oracle;

	for (unsigned limit = 8; limit <= 40; limit += 4)
		best = fmax(best, goodput_of(limit));
	for (oracle = 8; goodput_of(oracle) < 0.97 * best; oracle++)
		;
	cr_expect(oracle >= 16 && oracle <= 19, "%u", oracle);
	cr_expect(tally_latency_quantile(&result.phases[STEADY].tally, 0.99) < 50 * MS);
}

struct sum {
	uint64_t samples, windows;
};

static void add_window(void *arg, const struct weir_report *report)
{
	struct sum *sum = arg;

	sum->samples += report->window.count;
	sum->windows++;
}

static struct sum sum_windows(enum weir_windowing windowing)
{
	struct sum sum = {.samples = 0};
	const struct weir_observer observer = {.window = add_window, .arg = &sum};
	struct weir_config limiter;
	struct scenario scenario;

	weir_config_init(&limiter);
	limiter.limit = &weir_vegas;
	limiter.windowing = windowing;
	limiter.observer = &observer;
	play_find(&scenario, "capacity-step");
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = 3,
			    });
	cr_expect_eq(sum.windows, result.windows);
	return sum;
}

/* Only the samples of the last, unclosed window are missing: some tenths of a second. */
Test(rules, samples_are_counted_once)
{
	struct sum sum = sum_windows(WEIR_WINDOW_TIME);

	cr_expect_leq(sum.samples, result.samples);
	cr_expect_geq(sum.samples + 1000, result.samples);
}

Test(rules, samples_are_counted_once_with_windows_of_one)
{
	struct sum sum = sum_windows(WEIR_WINDOW_SAMPLE);

	cr_expect_eq(sum.samples, result.samples);
	cr_expect_eq(sum.windows, result.samples);
}

/* Results cover all limiters, but only those under test get the configured windows. */
Test(rules, results_cover_several_limiters)
{
	struct scenario scenario;
	struct weir_config limiter;
	uint64_t windows;
	char why[300];

	cr_assert_eq(
		scenario_from_text(
			&scenario, "t",
			"name = \"t\"; server = { name = \"w\"; workers = 9; work = \"9ms\"; };"
			"limiters = ( { count = 2; }, { count = 3; limit = \"fixed:limit=5\"; } );"
			"phases = { length = \"10s\"; load = 3; };",
			why, sizeof(why)),
		0, "%s", why);
	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = 1,
				    .limits = (const uint32_t[]){4},
			    });
	windows = result.windows;
	cr_expect_eq(result.phases[0].tally.limit_last, 23);
	cr_expect_float_eq(tally_limit_mean(&result.phases[0].tally), 23, 1e-9);
	cr_expect_eq(result.phases[0].tally.inflight_max, 23);

	limiter.window_min = limiter.window_max = 100 * WEIR_S;
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = 1,
				    .limits = (const uint32_t[]){4},
			    });
	cr_expect_gt(windows, 10);
	cr_expect_float_eq((double)result.windows / (double)windows, 0.6, 0.05);
}

static const uint32_t by_phase[] = {20, 8, 40, 12};

/* The mean is exactly the limit that was set: no part of a phase had the previous limit. */
Test(settable, changes_at_once)
{
	struct weir_config limiter;
	struct scenario scenario;

	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	play_find(&scenario, "overload");
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = 1,
				    .limits = by_phase,
			    });
	for (unsigned i = 0; i < 4; i++) {
		const struct tally *t = &result.phases[i].tally;

		cr_expect_eq(t->limit_last, by_phase[i]);
		cr_expect_float_eq(tally_limit_mean(t), by_phase[i], 1e-9);
		cr_expect_eq(t->inflight_max, by_phase[i]);
	}
}
