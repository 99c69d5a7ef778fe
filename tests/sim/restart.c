/*
 * restart.c - what a remembered limit is worth: a service with 512 workers comes back under
 * load, with a memory and without.
 */
#include "play.h"

#define WORKERS 512
#define ENOUGH  (0.9 * WORKERS)

/* Calls that all take 10 ms, from the first moment on as many as 512 workers can just bear. */
static const char restarted[] =
	"name = \"restarted\"; server = { name = \"workers\"; workers = 512; work = \"10ms\"; };\n"
	"client = { deadline = \"100ms\"; };\n"
	"phases = ( { length = \"1s\"; rate = 50000; }, { length = \"10s\"; rate = 50000; },\n"
	"           { length = \"1s\"; rate = 50000; } );\n";

static struct run_result result;

struct life {
	unsigned char memory[WEIR_SAVED_MAX];
	int size;           /* 0: none */
	weir_dur age;       /* of the memory at the beginning */
	uint32_t begins_at; /* a limit */
	uint32_t windows;   /* until the limit was enough */
	bool enough;
	double good; /* served in time in the first second, of those that came */
};

static void look(void *arg, const struct weir_report *report)
{
	struct life *life = arg;

	life->windows += !life->enough;
	life->enough |= report->limit >= ENOUGH;
}

/* Take up what there is at the beginning, and save each time. */
static void phase_begins(void *arg, struct weir_limiter *limiter, unsigned phase)
{
	struct life *life = arg;

	if (phase == 0 && life->size > 0)
		cr_assert_eq(weir_limiter_load(limiter, life->memory, (size_t)life->size, life->age,
					       NULL, 0),
			     0);
	if (phase == 0) {
		life->begins_at = weir_limit(limiter);
		life->enough = life->begins_at >= ENOUGH;
		life->windows = 0;
	}
	life->size = weir_limiter_save(limiter, life->memory, sizeof(life->memory));
	cr_assert_gt(life->size, 0);
}

/* With the memory of the life before, at that age. */
static void live(struct life *life, weir_dur age, uint64_t seed)
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

/* Without one it takes some 45 windows, while nine calls of ten are refused. */
Test(restart, with_a_memory_the_capacity_is_there_at_once)
{
	static struct life life;

	live(&life, 0, 1);
	cr_expect_eq(life.begins_at, 20);
	cr_expect(life.windows > 30 && life.enough, "%u", life.windows);
	cr_expect_lt(life.good, 0.1);

	live(&life, 0, 2);
	cr_expect_eq(life.windows, 0);
	cr_expect_geq(life.begins_at, ENOUGH);
	cr_expect_gt(life.good, 0.98);
}

Test(restart, with_an_old_one_it_is_there_sooner)
{
	static struct life life;
	uint32_t without;

	live(&life, 0, 1);
	without = life.windows;
	live(&life, WEIR_SAVED_HALF_LIFE, 2);
	cr_expect(life.begins_at > 80 && life.begins_at < 200, "%u", life.begins_at);
	cr_expect(life.windows > 0 && life.windows < without * 3 / 4, "%u", life.windows);
}
