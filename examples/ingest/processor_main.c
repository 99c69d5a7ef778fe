/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of a job processor.
 *
 *	weir-ingest-processor --name one --redis 127.0.0.1:6379 --fleet etcd://127.0.0.1:2379 \
 *		--database http://127.0.0.1:8080 --capacity 19000
 */
#include "options.h"
#include "processor.h"
#include "stats.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/* The interval of the work on the queue. */
#define TURN (20 * WEIR_MS)

struct options {
	struct processor_config processor;
	const char *stats;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;
	struct processor_config *p = &options->processor;

	switch (key) {
	case 'n':
		p->name = arg;
		return 0;
	case 'r':
		p->redis = arg;
		return 0;
	case 'd':
		p->database = arg;
		return 0;
	case 's':
		options->stats = arg;
		return 0;
	case 'i':
		p->idle_ms = option_number(arg, 100, 3600000, state);
		return 0;
	case 'f':
		p->capacity.fleet = arg;
		return 0;
	case 'L':
		p->capacity.limit = arg;
		return 0;
	case 'c':
		p->capacity.units = option_number(arg, 1, 1000000000, state);
		return 0;
	case 'e':
		p->capacity.reserved = option_number(arg, 0, 1000000000, state);
		return 0;
	case 'm':
		p->capacity.members = option_number(arg, 1, 1000, state);
		return 0;
	case 'l':
		p->capacity.lease = option_number(arg, 20, 3600000, state) * WEIR_MS;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void read_options(struct options *options, int argc, char **argv)
{
	static const struct argp_option list[] = {
		{"name", 'n', "NAME", 0, "Unique name of this processor (processor)", 0},
		{"redis", 'r', "HOST:PORT", 0, "Address of the queue (127.0.0.1:6379)", 0},
		{"database", 'd', "URL", 0, "URL of the database (http://127.0.0.1:8080)", 0},
		{"fleet", 'f', "ADDRESS", 0, "Store of the leases (redis://127.0.0.1:6379)", 0},
		{"limit", 'L', "NAME", 0, "Name of the shared limit, in the store (ingest)", 0},
		{"capacity", 'c', "N", 0, "Units per second of all processors (19000)", 0},
		{"reserved", 'e', "N", 0, "Part of these for each processor without a lease (0)",
		 0},
		{"members", 'm', "N", 0, "Most processors at once (2)", 0},
		{"lease", 'l', "MS", 0, "Duration of a lease (3000)", 0},
		{"idle", 'i', "MS", 0, "Age at which another's records are claimed (5000)", 0},
		{"stats", 's', "FILE", 0, "Log of the capacity over time (none)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = list,
		.parser = option,
		.doc = "Write records from the queue to the database, as fast as its share allows.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, options);
	if (options->processor.capacity.reserved == 0)
		options->processor.capacity.members = 0;
}

static void run(struct processor *processor, const sigset_t *ending)
{
	const struct timespec turn = {.tv_nsec = (long)TURN};

	do
		processor_turn(processor);
	while (sigtimedwait(ending, NULL, &turn) < 0);
}

int main(int argc, char **argv)
{
	static struct processor processor;
	struct options options = {
		.processor =
			{
				.name = "processor",
				.redis = "127.0.0.1:6379",
				.database = "http://127.0.0.1:8080",
				.idle_ms = 5000,
				.capacity = {.fleet = "redis://127.0.0.1:6379",
					     .limit = "ingest",
					     .units = 19000,
					     .members = 2,
					     .lease = 3 * WEIR_S},
			},
		.stats = "/dev/null",
	};
	struct stats stats;
	sigset_t ending;

	read_options(&options, argc, argv);
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (processor_open(&processor, &options.processor) != 0)
		return EXIT_FAILURE;
	if (stats_start(&stats, options.stats, &processor.capacity) == 0)
		run(&processor, &ending);
	stats_end(&stats);
	processor_close(&processor);
	printf("taken %" PRIu64 ", of these claimed %" PRIu64 "; acknowledged %" PRIu64
	       ", refused %" PRIu64 ", unanswered requests %" PRIu64 ", left %" PRIu64 "\n",
	       processor.taken, processor.claimed, processor.acknowledged,
	       (uint64_t)atomic_load(&processor.refused),
	       (uint64_t)atomic_load(&processor.unanswered),
	       (uint64_t)atomic_load(&processor.left));
	return EXIT_SUCCESS;
}
