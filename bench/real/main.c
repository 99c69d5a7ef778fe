/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - weir-real: compare how limits rank in the simulator and with real threads; or compare a
 * limiter for threads with one shared by processes.
 */
#include "bench/sim/alloc_or_abort.h"
#include "report.h"
#include "spread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int play(const struct options *o, struct heat *heats)
{
	int error = 0;

	for (unsigned k = 0; k < o->scenario_count && error == 0; k++) {
		const struct contest one = {
			.scenario = &o->scenarios[k],
			.entrants = o->limits,
			.count = o->limit_count,
			.seed = o->seed,
			.seeds = o->seeds,
			.side = o->side,
		};

		fprintf(stderr, "%s, %u of %u:\n", one.scenario->name, k + 1, o->scenario_count);
		heats[k].name = one.scenario->name;
		error = contest(&one, heats[k].standings, &heats[k].lateness);
	}
	return error;
}

static int compare_with_simulator(const struct options *o)
{
	struct heat *heats = alloc_or_abort((o->scenario_count + 1) * sizeof(*heats));
	int error = play(o, heats);

	if (error == 0)
		report(o, heats);
	free(heats);
	return error;
}

int main(int argc, char **argv)
{
	struct options *options = alloc_or_abort(sizeof(*options));
	int error;

	options_read(options, argc, argv);
	error = options->processes > 0 ? spread(options) : compare_with_simulator(options);
	if (error != 0)
		fprintf(stderr, "weir-real: %s\n", strerror(-error));
	options_free(options);
	free(options);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
