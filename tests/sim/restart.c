/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restart.c - the value of a saved limit: a service with 512 workers restarts under load, with
 * saved state and without.
 */
#include "play.h"

#define WORKERS 512
#define ENOUGH  (0.9 * WORKERS)

/* Calls of exactly 10 ms, from the start at a load just below the capacity of 512 workers. */
static const char restarted[] =
	"name = \"restarted\"; server = { name = \"workers\"; workers = 512; work = \"10ms\"; };\n"
	"client = { deadline = \"100ms\"; };\n"
	"phases = ( { length = \"1s\"; rate = 50000; }, { length = \"10s\"; rate = 50000; },\n"
	"           { length = \"1s\"; rate = 50000; } );\n";

static struct run_result result;

struct service {
	unsigned char saved[WEIR_SAVED_MAX];
	int size;           /* 0: none */
	weir_dur age;       /* of the saved state at the start */
	uint32_t begins_at; /* the first limit */
	uint32_t windows;   /* until the limit was enough */
	bool enough;
	double good; /* fraction of calls served in time in the first second */
};

static void look(void *arg, const struct weir_report *report)
{
	struct service *life = arg;

	life->windows += !life->enough;
	life->enough |= report->limit >= ENOUGH;
}

/* Load the saved state in the first phase, and save at the start of each phase. */
static void phase_begins(void *arg, struct weir_limiter *limiter, unsigned phase)
{
	struct service *life = arg;

	if (phase == 0 && life->size > 0)
		cr_assert_eq(weir_limiter_load(limiter, life->saved, (size_t)life->size, life->age,
					       NULL, 0),
			     0);
	if (phase == 0) {
		life->begins_at = weir_limit(limiter);
		life->enough = life->begins_at >= ENOUGH;
		life->windows = 0;
	}
	life->size = weir_limiter_save(limiter, life->saved, sizeof(life->saved));
	cr_assert_gt(life->size, 0);
}

/* Run with the state saved by the previous run, at the given age. */
static void live(struct service *life, weir_dur age, uint64_t seed)
{
	const struct weir_observer observer = {.window = look, .arg = life};
	const struct tally *first = &result.phases[0].tally;
	struct weir_config limiter;
	struct scenario scenario;
	char why[300];

	cr_assert_eq(scenario_from_text(&scenario, "restarted", restarted, why, sizeof(why)), 0,
		     "%s", why);
	life->age = age;
	weir_config_init(&limiter);
	limiter.limit = &weir_vegas;
	limiter.observer = &observer;
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = seed,
				    .phase_begins = phase_begins,
				    .arg = life,
			    });
	life->good = (double)first->good / (double)first->offered;
	cr_log_info("begins at %u, enough after %u windows, good %.3f", life->begins_at,
		    life->windows, life->good);
}

/* Without saved state it takes about 45 windows, and nine calls of ten are refused meanwhile. */
Test(restart, saved_state_gives_the_full_limit_at_once)
{
	static struct service life;

	live(&life, 0, 1);
	cr_expect_eq(life.begins_at, 20);
	cr_expect(life.windows > 30 && life.enough, "%u", life.windows);
	cr_expect_lt(life.good, 0.1);

	live(&life, 0, 2);
	cr_expect_eq(life.windows, 0);
	cr_expect_geq(life.begins_at, ENOUGH);
	cr_expect_gt(life.good, 0.98);
}

Test(restart, old_saved_state_shortens_the_start)
{
	static struct service life;
	uint32_t without;

	live(&life, 0, 1);
	without = life.windows;
	live(&life, WEIR_SAVED_HALF_LIFE, 2);
	cr_expect(life.begins_at > 80 && life.begins_at < 200, "%u", life.begins_at);
	cr_expect(life.windows > 0 && life.windows < without * 3 / 4, "%u", life.windows);
}
