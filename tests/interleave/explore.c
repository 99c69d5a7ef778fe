/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of a program of scenes: explores each, and shows the interleaving that failed.
 */

#include "tests/interleave/explore.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interleave/memory.h"
#include "tests/interleave/schedule.h"
#include "tests/interleave/trace.h"

static const char usage[] =
	"Usage: %s [option]...\n"
	"Explore all interleavings of each scene within bounds, or random ones.\n"
	"\n"
	"  -l, --list           list the scenes and what each must hold\n"
	"  -s, --scene NAME     only this scene\n"
	"  -p, --preemptions N  preemptions in a run (2)\n"
	"  -w, --stale N        stale reads in a run (1)\n"
	"  -t, --timeouts N     sleeps in a run that end early (1)\n"
	"  -d, --deaths N       threads that die in a run (1 if the scene has mortal ones)\n"
	"  -n, --runs N         stop after that many runs (0: when all were tried)\n"
	"  -x, --stop           stop at the first scene that fails\n"
	"  -r, --random SEED    random runs instead, -n of them, by PCT\n"
	"      --replay LIST    the run with those choices, as a failure prints them\n"
	"      --shared LIST    the words that were known to be shared then\n"
	"  -v, --verbose        show a replayed run even if it does not fail\n";

enum { OPTION_REPLAY = 256, OPTION_SHARED };

static const struct option options[] = {
	{"list", no_argument, NULL, 'l'},
	{"scene", required_argument, NULL, 's'},
	{"preemptions", required_argument, NULL, 'p'},
	{"stale", required_argument, NULL, 'w'},
	{"timeouts", required_argument, NULL, 't'},
	{"deaths", required_argument, NULL, 'd'},
	{"runs", required_argument, NULL, 'n'},
	{"stop", no_argument, NULL, 'x'},
	{"random", required_argument, NULL, 'r'},
	{"replay", required_argument, NULL, OPTION_REPLAY},
	{"shared", required_argument, NULL, OPTION_SHARED},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static struct {
	const char *scene, *replay, *shared;
	int preemptions, stale, timeouts, deaths; /* -1: the scene's, or the default */
	uint64_t runs, seed;
	bool random, stop, verbose;
} asked = {.preemptions = -1, .stale = -1, .timeouts = -1, .deaths = -1};

static struct {
	uint64_t runs, known, longest;
} seen;

static unsigned or_default(int given, unsigned scene, unsigned fallback)
{
	if (given >= 0)
		return (unsigned)given;
	return scene > 0 ? scene : fallback;
}

static struct bounds bounds_of(const struct scene *scene)
{
	return (struct bounds){
		.preemptions = or_default(asked.preemptions, scene->preemptions, 2),
		.stale = scene->no_stale ? 0 : or_default(asked.stale, scene->stale, 1),
		.timeouts = scene->no_timeouts ? 0 : or_default(asked.timeouts, scene->timeouts, 1),
		.deaths = scene->mortal != 0 ? or_default(asked.deaths, 0, 1) : 0,
	};
}

static void show_failure(const char *program, const struct scene *scene,
			 const struct bounds *bounds)
{
	static char list[16384], shared[8192];

	trace_print();
	printf("\n%s: FAILED after %" PRIu64 " runs: %s\nwhat must hold: %s\n", scene->name,
	       seen.runs, schedule_failure(), scene->claim);
	schedule_print(list, sizeof(list));
	memory_shared_print(shared, sizeof(shared));
	printf("again: %s --scene %s --preemptions %u --stale %u --timeouts %u --deaths %u%s "
	       "--shared %s --replay %s\n",
	       program, scene->name, bounds->preemptions, bounds->stale, bounds->timeouts,
	       bounds->deaths, asked.random ? " --random 0" : "", shared[0] ? shared : "''",
	       list[0] ? list : "''");
}

/* Explore one scene within these bounds. False: it failed, which was shown. */
static bool explore_within(const char *program, const struct scene *scene,
			   const struct bounds *bounds)
{
	enum outcome outcome;

	schedule_reset();
	memset(&seen, 0, sizeof(seen));
	do {
		if (asked.random)
			schedule_random(asked.seed + seen.runs, 3, (unsigned)seen.longest);
		outcome = schedule_run(scene, bounds);
		if (outcome == RUN_LEARNED) {
			schedule_reset();
			memset(&seen, 0, sizeof(seen));
			continue;
		}
		seen.runs++;
		seen.known += outcome == RUN_KNOWN;
		if (seen.longest < schedule_steps())
			seen.longest = schedule_steps();
		if (outcome == RUN_FAILED) {
			show_failure(program, scene, bounds);
			return false;
		}
		if (asked.runs > 0 && seen.runs == asked.runs)
			break;
	} while (outcome == RUN_LEARNED || asked.random || schedule_next());
	return true;
}

/* With fewer preemptions first: the interleaving that fails is then the simplest one. */
static bool explore_scene(const char *program, const struct scene *scene)
{
	struct bounds bounds = bounds_of(scene);
	const unsigned preemptions = bounds.preemptions;

	memory_forget();
	for (bounds.preemptions = asked.random ? preemptions : 0;; bounds.preemptions++) {
		if (!explore_within(program, scene, &bounds))
			return false;
		if (bounds.preemptions == preemptions)
			break;
	}
	printf("%s: %" PRIu64 " interleavings, %" PRIu64 " states, up to %" PRIu64
	       " steps; %u preemptions, %u stale reads, %u timeouts, %u deaths%s\n",
	       scene->name, seen.runs - seen.known, schedule_states(), seen.longest,
	       bounds.preemptions, bounds.stale, bounds.timeouts, bounds.deaths,
	       asked.random || asked.runs > 0 ? "" : ": all");
	fflush(stdout);
	return true;
}

static int replay(const char *program, const struct scene *scene)
{
	const struct bounds bounds = bounds_of(scene);
	enum outcome outcome;

	if (!memory_shared_parse(asked.shared != NULL ? asked.shared : "") ||
	    !schedule_parse(asked.replay)) {
		fprintf(stderr, "%s: that is no list of choices\n", program);
		return 2;
	}
	while ((outcome = schedule_run(scene, &bounds)) == RUN_LEARNED)
		schedule_parse(asked.replay);
	seen.runs = 1;
	if (outcome == RUN_FAILED) {
		show_failure(program, scene, &bounds);
		return 1;
	}
	if (asked.verbose)
		trace_print();
	printf("%s: it did not fail\n", scene->name);
	return 0;
}

static bool read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "ls:p:w:t:d:n:r:xvh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			asked.scene = optarg;
			break;
		case 'p':
			asked.preemptions = atoi(optarg);
			break;
		case 'w':
			asked.stale = atoi(optarg);
			break;
		case 't':
			asked.timeouts = atoi(optarg);
			break;
		case 'd':
			asked.deaths = atoi(optarg);
			break;
		case 'n':
			asked.runs = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			asked.random = true;
			asked.seed = strtoull(optarg, NULL, 10);
			break;
		case OPTION_REPLAY:
			asked.replay = optarg;
			break;
		case OPTION_SHARED:
			asked.shared = optarg;
			break;
		case 'x':
			asked.stop = true;
			break;
		case 'v':
			asked.verbose = true;
			break;
		default:
			return false;
		}
	}
	return optind == argc;
}

static bool wants_list(int argc, char **argv)
{
	return argc == 2 && (strcmp(argv[1], "-l") == 0 || strcmp(argv[1], "--list") == 0);
}

int explore(int argc, char **argv, const struct scene *scenes, unsigned count)
{
	unsigned found = 0;
	int status = 0;

	for (unsigned i = 0; wants_list(argc, argv) && i < count; i++)
		printf("%s: %s\n", scenes[i].name, scenes[i].claim);
	if (wants_list(argc, argv))
		return 0;
	if (!read_options(argc, argv)) {
		fprintf(stderr, usage, argv[0]);
		return 2;
	}
	for (unsigned i = 0; i < count && (status == 0 || !asked.stop); i++) {
		if (asked.scene != NULL && strcmp(asked.scene, scenes[i].name) != 0)
			continue;
		found++;
		if (asked.replay != NULL)
			return replay(argv[0], &scenes[i]);
		if (!explore_scene(argv[0], &scenes[i]))
			status = 1;
	}
	if (found == 0)
		fprintf(stderr, "%s: there is no scene %s\n", argv[0], asked.scene);
	return found > 0 ? status : 2;
}
