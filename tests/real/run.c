/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold in any real run, however late threads wake: no call is lost, every permit is
 * returned, and calls in flight never exceed the limit.
 */
#include "real.h"
#include "scenario_read.h"

#include "../stress/check.h"

#include <string.h>

static const char *const overload =
	"name = \"overload\"; client = { deadline = \"20ms\"; };"
	"server = ( { name = \"workers\"; workers = 4; work = \"exponential 5ms\"; } );"
	"phases = ( { length = \"300ms\"; load = 2; }, { length = \"300ms\"; load = 0.5; } );";

/* Half of the calls are given up, while others are being served. */
static const char *const timeouts =
	"name = \"timeouts\"; client = { deadline = \"10ms\"; timeout = \"8ms\"; };"
	"server = ( { name = \"workers\"; workers = 4; work = \"5ms\"; } );"
	"phases = ( { length = \"500ms\"; load = 2; } );";

/* All changes that phases can make, and calls that are at the server at the end. */
static const char *const changes =
	"name = \"changes\"; rounds = 2; arrivals = { process = \"batches\"; batch = 3; };"
	"server = ( { name = \"elsewhere\"; discipline = \"delay\"; work = \"uniform 10ms\"; },"
	" { name = \"workers\"; workers = 4; work = \"exponential 5ms\"; } );"
	"phases = ( { length = \"100ms\"; load = [0.5, 2.0]; slower = [1.0, 2.0]; },"
	" { length = \"100ms\"; load = 2; station = \"workers\"; workers = 8; },"
	" { length = \"100ms\"; load = 1; station = \"workers\"; workers = 0; },"
	" { length = \"50ms\"; load = 2; station = \"workers\"; speed = 0; } );";

static void check(const struct scenario *s, const struct run_result *result, uint32_t most)
{
	uint64_t admitted = 0, ended = 0;

	for (unsigned i = 0; i < s->phase_count; i++) {
		const struct tally *t = &result->phases[i].tally;

		CHECK(t->offered == t->admitted + t->rejected);
		CHECK(t->inflight_max <= most);
		CHECK(t->waits == t->good + t->late + t->timed_out);
		CHECK(t->length == s->phases[i].length * s->rounds);
		admitted += t->admitted;
		ended += t->waits;
	}
	CHECK(admitted > 0);
	CHECK(ended <= admitted);
	CHECK(result->samples == admitted);
	CHECK(result->above == 0);
	CHECK(result->leaked == 0);
}

static void play(const char *text, const char *limit, const uint32_t *limits, uint32_t most)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	static struct run_result result;
	struct tally lateness;
	struct scenario scenario;
	struct weir_config config;
	char why[300];

	if (scenario_from_text(&scenario, "here", text, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	CHECK(real_unsupported(&scenario) == NULL);
	weir_config_init(&config);
	config.limit_config = limit_config;
	CHECK(weir_limit_from_text(limit, &config.limit, limit_config, why, sizeof(why)) == 0);
	CHECK(real_run(
		      &(struct run_setup){
			      .scenario = &scenario,
			      .limiter = &config,
			      .seed = 1,
			      .limits = limits,
		      },
		      &result, &lateness) == 0);
	check(&scenario, &result, most);
	CHECK(lateness.waits > 0);
	scenario_free(&scenario);
}

int main(void)
{
	const uint32_t limits[PHASES_MAX] = {12, 3, 20, 7};

	play(overload, "fixed:limit=6", NULL, 6);
	play(timeouts, "fixed:limit=8", NULL, 8);
	play(changes, "vegas:max=30", NULL, 30);
	play(changes, "settable", limits, 20);
	return 0;
}
