/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which scenarios can be run with threads, and which cannot.
 */
#include "real.h"
#include "scenario_read.h"

#include <criterion/criterion.h>

static struct scenario scenario;

static void read_scenario(const char *client, const char *stations, const char *rest)
{
	char text[2000], why[300];

	snprintf(text, sizeof(text), "name = \"scope\"; %s server = ( %s ); %s", client, stations,
		 rest);
	cr_assert_eq(scenario_from_text(&scenario, "scope", text, why, sizeof(why)), 0, "%s", why);
}

#define FIFO "{ name = \"a\"; workers = 4; work = \"10ms\"; }"
#define LOAD "phases = ( { length = \"1s\"; load = 0.5; } );"

Test(scope, fifo_and_delay_stations_with_open_arrivals_are_supported)
{
	read_scenario(
		"client = { timeout = \"50ms\"; deadline = \"20ms\"; };",
		FIFO ", { name = \"b\"; discipline = \"delay\"; work = \"lognormal 5ms 1\"; }",
		"arrivals = { process = \"batches\"; batch = 3; }; rounds = 2;"
		"phases = ( { length = \"1s\"; load = [0.5, 2.0]; slower = [1.0, 3.0]; },"
		" { length = \"1s\"; load = 1; station = \"a\"; workers = 2; speed = 0; } );");
	cr_expect_null(real_unsupported(&scenario));
}

Test(scope, other_scenarios_are_refused_with_a_reason)
{
	static const struct {
		const char *client, *stations, *rest;
	} others[] = {
		{"client = { retries = 1; };", FIFO, LOAD},
		{"client = { timeout = \"1s\"; stops_work = true; };", FIFO, LOAD},
		{"arrivals = { process = \"closed\"; think = \"1s\"; };", FIFO,
		 "phases = ( { length = \"1s\"; clients = 5; } );"},
		{"", "{ name = \"a\"; workers = 4; work = \"1ms\"; discipline = \"shared\"; }",
		 LOAD},
		{"", "{ name = \"a\"; workers = 4; work = \"1ms\"; kept = true; }", LOAD},
		{"", "{ name = \"a\"; workers = 4; work = \"1ms\"; contention = 0.1; }", LOAD},
		{"", "{ name = \"a\"; workers = 4; work = \"1ms\"; second_half = 0.5; }", LOAD},
		{"", "{ name = \"a\"; workers = 257; work = \"1ms\"; }", LOAD},
		{"",
		 "{ name = \"a\"; workers = 4; work = \"1ms\"; pause_every = \"1s\"; "
		 "pause_length = \"1s\"; }",
		 LOAD},
		{"classes = ( { name = \"x\"; }, { name = \"y\"; } );", FIFO, LOAD},
		{"classes = ( { name = \"x\"; stream = true; } );", FIFO, LOAD},
		{"classes = ( { name = \"x\"; cancelled = 0.5; cancel_after = \"1ms\"; } );", FIFO,
		 LOAD},
		{"limiters = ( { count = 2; } );", FIFO, LOAD},
		{"limiters = ( { limit = \"fixed\"; } );", FIFO, LOAD},
		{"", FIFO, "phases = ( { length = \"1s\"; load = 1; background_load = 0.5; } );"},
		{"", FIFO, "phases = ( { length = \"1s\"; load = 1; failing = 0.5; } );"},
		{"", FIFO, "phases = ( { length = \"1s\"; load = 1; restart = true; } );"},
		{"", FIFO, "phases = ( { length = \"1s\"; load = 1; workers = 1000; } );"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		read_scenario(others[i].client, others[i].stations, others[i].rest);
		cr_expect_not_null(real_unsupported(&scenario), "%zu", i);
		scenario_free(&scenario);
	}
}
