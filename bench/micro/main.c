/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - weir-micro: the cost of the library in nanoseconds. bench/README.md explains the tables.
 */
#include "alloc.h"
#include "bytes.h"
#include "figures.h"
#include "options.h"
#include "probe.h"
#include "subjects.h"
#include "team.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool several_threads(const struct options *options)
{
	for (unsigned i = 0; i < options->count; i++)
		if (options->counts[i] > 1)
			return true;
	return false;
}

/* Results of the probes before and after the rounds that count. */
struct scaling {
	double least, most;
};

static void widen(struct scaling *scaling, double ratio)
{
	if (scaling->least == 0 || ratio < scaling->least)
		scaling->least = ratio;
	if (ratio > scaling->most)
		scaling->most = ratio;
}

/*
 * A round counts if the probes before and after it found the processors free; otherwise it is
 * measured again, up to the given number of tries for each round, on average.
 */
static void measure_probed(struct figures *figures, const struct options *options)
{
	const unsigned left = options->tries * options->reps - options->reps;
	unsigned rep = 0, again = 0;
	struct scaling scaling = {.least = 0};
	double before = probe(), after;

	figures_warm_up(figures);
	while (rep < options->reps) {
		bool counts;

		figures_round(figures, rep, options);
		after = probe();
		counts = probe_scales(before) && probe_scales(after);
		if (counts || again == left) {
			widen(&scaling, before);
			widen(&scaling, after);
			rep++;
		} else {
			again++;
		}
		before = after;
	}
	printf("# two threads do %.2f to %.2f times as much as one; rounds measured again %u\n",
	       scaling.least, scaling.most, again);
	if (!probe_scales(scaling.least) || !probe_scales(scaling.most))
		puts("# unscaled: figures for more than one thread are not reliable");
}

static void measure_unprobed(struct figures *figures, const struct options *options)
{
	figures_warm_up(figures);
	for (unsigned rep = 0; rep < options->reps; rep++)
		figures_round(figures, rep, options);
}

static int measure(const struct subjects *subjects, const struct options *options)
{
	struct figures figures = figures_make(subjects, options);
	bool holds;

	printf("# %u repetitions of %" PRIu64 " pairs a thread, %u processors\n", options->reps,
	       options->pairs, team_processors());
	if (several_threads(options))
		measure_probed(&figures, options);
	else
		measure_unprobed(&figures, options);
	printf("# allocations %" PRIu64 "\n", alloc_count());
	figures_print(&figures, options);
	holds = figures_hold(&figures);
	figures_free(&figures);
	return holds && alloc_count() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void list(const struct subjects *subjects)
{
	for (unsigned i = 0; i < subjects->count; i++)
		printf("%-10s %-24s %s\n", subjects->all[i].group, subjects->all[i].name,
		       subjects->all[i].about);
}

/* The exit status says whether figures for more than one thread would be reliable now. */
static int print_probe(void)
{
	double ratio = probe();

	printf("%.2f\n", ratio);
	return probe_scales(ratio) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct subjects *subjects, const struct options *options)
{
	switch (options->what) {
	case LIST:
		list(subjects);
		return EXIT_SUCCESS;
	case BYTES:
		bytes_print();
		return EXIT_SUCCESS;
	case PROBE:
		return print_probe();
	case TIMES:
		break;
	}
	if (!alloc_noticed()) {
		fputs("weir-micro: allocations cannot be counted here\n", stderr);
		return EXIT_FAILURE;
	}
	return measure(subjects, options);
}

int main(int argc, char **argv)
{
	struct subjects subjects = subjects_make();
	struct options options;
	int status;

	options_read(&options, &subjects, argc, argv);
	status = run(&subjects, &options);
	subjects_free(&subjects);
	return status;
}
