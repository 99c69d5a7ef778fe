/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random.c - scenarios that are drawn at random: each is a function of its seed and number, can be
 * read and run, and all together cover what the grammar promises.
 */
#include "play.h"
#include "oracle.h"
#include "scenario_random.h"

#include <stdlib.h>

#define MANY 3000
#define RUNS 25

static struct run_result result;

static void find(struct scenario *scenario, uint32_t seed, uint32_t number)
{
	char name[100], why[300];

	snprintf(name, sizeof(name), "random-%u-%u", seed, number);
	cr_assert_eq(scenario_find(scenario, name, why, sizeof(why)), 0, "%s: %s", name, why);
	cr_assert_str_eq(scenario->name, name);
}

static bool same_text(uint32_t seed, uint32_t number, uint32_t other_seed, uint32_t other_number)
{
	char *one = random_text(seed, number), *other = random_text(other_seed, other_number);
	const char *from = strstr(one, "about"), *other_from = strstr(other, "about");
	bool same = strcmp(from, other_from) == 0;

	free(one);
	free(other);
	return same;
}

Test(random, is_a_function_of_seed_and_number)
{
	for (uint32_t i = 1; i <= 100; i++) {
		cr_expect(same_text(1, i, 1, i), "%u", i);
		cr_expect(!same_text(1, i, 2, i), "%u", i);
		cr_expect(!same_text(1, i, 1, i + 1), "%u", i);
	}
}

/* On every machine. A change of the grammar that is meant to change this changes it here. */
Test(random, has_not_changed)
{
	struct scenario s;

	find(&s, 1, 1);
	cr_expect_str_eq(s.about,
			 "24 workers, constant 6ms; load closed 0.36; deadline 72ms; 2 retries.");
	cr_expect_eq(s.digest, UINT64_C(0x565ff25199c1a92c), "%#jx", (uintmax_t)s.digest);
	scenario_free(&s);
}

Test(random, can_always_be_read)
{
	struct scenario s;

	for (uint32_t i = 1; i <= MANY; i++) {
		find(&s, 3, i);
		cr_expect_str_eq(s.family, "random");
		cr_expect_eq(s.about[strlen(s.about) - 1], '.', "%s", s.about);
		cr_expect(s.coarse && s.sweep > 0);
		cr_expect(s.phases[0].warm_up && s.phase_count > 1);
		scenario_free(&s);
	}
	find(&s, UINT32_MAX, UINT32_MAX);
	scenario_free(&s);
}

static unsigned seen(const unsigned *counts, unsigned size)
{
	unsigned count = 0;

	for (unsigned i = 0; i < size; i++)
		count += counts[i] >= MANY / 100;
	return count;
}

/* What is drawn is within its bounds, and whatever may be drawn is no rarity. */
Test(random, covers_the_grammar)
{
	unsigned processes[ARRIVALS_REPLAY] = {0}, laws[LAW_BIMODAL + 1] = {0}, octaves[12] = {0};
	unsigned few = 0, queues = 0, shared = 0, pauses = 0, steps = 0, far = 0;
	unsigned timeouts = 0, retries = 0, mixed = 0, company = 0, ramps = 0, slower = 0,
		 light = 0;
	struct drawn d;

	for (uint32_t i = 1; i <= MANY; i++) {
		struct scenario s;

		random_draw(&d, 4, i);
		find(&s, 4, i);
		cr_expect(d.workers >= 1 && d.workers <= 4096, "%u", d.workers);
		for (unsigned k = 0; k < 12; k++)
			octaves[k] += d.workers >= 1u << k && d.workers < 2u << k;
		processes[d.process]++;
		laws[s.classes[0].work[0].kind]++;
		few += d.workers <= 4;
		queues += d.queue > 0;
		shared += s.stations[0].model.discipline == STATION_SHARED;
		pauses += d.pause_every > 0;
		far += d.capacity * d.network > 2 * d.workers;
		timeouts += d.timeout > 0;
		retries += d.retries > 0;
		mixed += d.outcome != NULL;
		company += d.limiters > 1;
		for (unsigned k = 0; k < d.count; k++) {
			const struct stretch *one = &d.stretches[k];

			cr_expect(one->load[0] >= 0.3 && one->load[0] <= 4, "%g", one->load[0]);
			cr_expect(one->load[1] >= 0.3 && one->load[1] <= 4, "%g", one->load[1]);
			steps += one->workers > 0;
			ramps += one->load[0] != one->load[1];
			slower += one->slower != 1;
			light += one->load[0] < 0.6;
		}
		scenario_free(&s);
	}
	cr_expect_eq(seen(octaves, 12), 12);
	cr_expect_eq(seen(processes, ARRIVALS_REPLAY), ARRIVALS_REPLAY);
	cr_expect_eq(seen(laws, LAW_BIMODAL + 1), LAW_BIMODAL, "all but uniform");
	cr_expect(few > MANY / 4 && few < MANY / 2, "%u", few);
	const unsigned others[] = {queues,  shared, pauses,  steps, far,    timeouts,
				   retries, mixed,  company, ramps, slower, light};
	cr_expect_eq(seen(others, sizeof(others) / sizeof(others[0])),
		     sizeof(others) / sizeof(others[0]));
}

Test(random, can_be_run)
{
	struct weir_config config;
	struct scenario s;

	weir_config_init(&config);
	for (uint32_t i = 1; i <= RUNS; i++) {
		struct run_setup setup = {.scenario = &s, .limiter = &config, .sweep = true};

		find(&s, 5, i);
		cr_assert_eq(run(&setup, &result), 0);
		cr_expect_eq(result.leaked, 0, "%s", s.about);
		cr_expect_eq(result.above, 0, "%s", s.about);
		for (unsigned k = 0; k < s.phase_count; k++)
			cr_expect_gt(result.phases[k].tally.offered, 0, "%s", s.about);
		scenario_free(&s);
	}
}

Test(random, has_names)
{
	static const char *const bad[] = {
		"random",      "random-",     "random-1",     "random-1-",
		"random-1-0",  "random-x-1",  "random-1-x",   "random-1-1x",
		"random--1-1", "random-1--1", "random-1- 1",  "random-4294967296-1",
		"random-01-1", "random-1-01", "random-1-1-1", "random-1-4294967296",
		"Random-1-1",  "random-+1-1", "random-1.-1",  "random-99999999999999999999-1",
	};
	uint32_t seed, number;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(!random_name(bad[i], &seed, &number), "%s", bad[i]);
	cr_expect(random_name("random-0-1", &seed, &number) && seed == 0 && number == 1);
	cr_expect(random_name("random-4294967295-17", &seed, &number) && seed == UINT32_MAX &&
		  number == 17);
}
