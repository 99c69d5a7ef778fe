/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold with several callers, threads or processes: each call of the plan is made by one
 * of them, no permit is lost, and the limit holds.
 */
#include "callers.h"
#include "scenario_read.h"

#include "../stress/check.h"

static const char *const overload =
	"name = \"overload\"; client = { deadline = \"20ms\"; };"
	"server = ( { name = \"workers\"; workers = 4; work = \"exponential 5ms\"; } );"
	"phases = ( { length = \"300ms\"; load = 2; }, { length = \"300ms\"; load = 0.5; } );";

/* Half of the calls are given up, while others are being served. */
static const char *const timeouts =
	"name = \"timeouts\"; client = { deadline = \"10ms\"; timeout = \"8ms\"; }; rounds = 2;"
	"server = ( { name = \"elsewhere\"; discipline = \"delay\"; work = \"uniform 2ms\"; },"
	" { name = \"workers\"; workers = 4; work = \"5ms\"; } );"
	"phases = ( { length = \"300ms\"; load = 2; } );";

/* The number of calls, which does not depend on the callers. */
static uint64_t play(const char *text, const char *limit, unsigned callers, bool processes,
		     uint32_t most)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	static struct run_result result;
	struct scenario scenario;
	struct weir_config config;
	uint64_t offered = 0, admitted = 0;

	CHECK(scenario_from_text(&scenario, "here", text, NULL, 0) == 0);
	weir_config_init(&config);
	config.limit_config = limit_config;
	CHECK(weir_limit_from_text(limit, &config.limit, limit_config, NULL, 0) == 0);
	CHECK(callers_run(&(struct run_setup){.scenario = &scenario, .limiter = &config, .seed = 1},
			  callers, processes, &result) == 0);
	for (unsigned i = 0; i < scenario.phase_count; i++) {
		const struct tally *t = &result.phases[i].tally;

		CHECK(t->offered == t->admitted + t->rejected);
		CHECK(t->inflight_max <= most);
		CHECK(t->length == scenario.phases[i].length * scenario.rounds);
		CHECK(t->limit_area > 0);
		offered += t->offered;
		admitted += t->admitted;
	}
	CHECK(admitted > 0 && result.samples == admitted);
	CHECK(result.above == 0 && result.leaked == 0);
	scenario_free(&scenario);
	return offered;
}

int main(void)
{
	const uint64_t offered = play(overload, "fixed:limit=6", 1, false, 6);

	CHECK(offered > 500);
	CHECK(play(overload, "fixed:limit=6", 3, false, 6) == offered);
	CHECK(play(overload, "fixed:limit=6", 3, true, 6) == offered);
	CHECK(play(overload, "vegas:max=30", 8, true, 30) == offered);
	play(timeouts, "fixed:limit=8", 4, true, 8);
	play(timeouts, "fixed:limit=8", 4, false, 8);
	return 0;
}
