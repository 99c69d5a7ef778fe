/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sharer.c - a member of a fleet that does what it is told, line by line.
 *
 *	weir-sharer ADDRESS LIMIT CAPACITY WANTS [LABEL]
 *
 * It joins LIMIT, and partitions of that name, four of them. A line is
 *
 *	want N		from now on
 *	until N		wait until it may use N units
 *	owns N		wait until it owns N partitions and has written a checkpoint of each
 *	metrics		print its own metrics, as OpenMetrics text
 *	rate N F	take all of a capacity of N, in partitions of F; its name is LIMIT-rate
 *	has N		wait until it has N units of that
 *
 * and is answered with "done" when it is. It leaves at the end of the input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/fleet_metrics.h>
#include <weir/work.h>

#define PARTITIONS 4

static void die(const char *why)
{
	fprintf(stderr, "weir-sharer: %s\n", why);
	exit(EXIT_FAILURE);
}

static void wait_a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static struct weir_fleet *open_fleet(const char *address, const char *label)
{
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	char why[256];

	weir_fleet_config_init(&config);
	config.address = address;
	/*
	 * Longer than a busy machine lets it wait: a process that detaches gives up its lease at
	 * once. In an empty store nothing is granted for as long, so not longer than that.
	 */
	config.lease = 30 * WEIR_S;
	config.refresh = 50 * WEIR_MS;
	config.label = label;
	if (weir_fleet_open(&config, &fleet, why, sizeof(why)) != 0)
		die(why);
	return fleet;
}

static struct weir_share *join(struct weir_fleet *fleet, char **argv)
{
	struct weir_share_config config;
	struct weir_share *share;
	char why[256];

	weir_share_config_init(&config);
	config.name = argv[2];
	config.capacity = strtoull(argv[3], NULL, 10);
	if (weir_share_join(fleet, &config, &share, why, sizeof(why)) != 0)
		die(why);
	if (weir_share_demand_set(share, strtoull(argv[4], NULL, 10)) != 0)
		die("WANTS is too much");
	return share;
}

static struct weir_work *open_partitions(struct weir_fleet *fleet, const char *name)
{
	struct weir_work_config config;
	struct weir_work *work;
	char why[256];

	weir_work_config_init(&config);
	config.name = name;
	config.count = PARTITIONS;
	if (weir_work_open(fleet, &config, &work, why, sizeof(why)) != 0)
		die(why);
	return work;
}

/* How many it owns and has written a checkpoint of. One that is set back meanwhile has a void fence. */
static unsigned write_checkpoints(struct weir_work *work)
{
	unsigned written = 0;

	for (uint32_t i = 0; i < PARTITIONS; i++) {
		const uint64_t fence = weir_work_fence(work, i);
		const int r = fence != 0 ? weir_work_checkpoint(work, i, fence, 41 + i, "seen", 4)
					 : -ESTALE;

		if (r != 0 && r != -ESTALE)
			die("a checkpoint failed");
		written += r == 0;
	}
	return written;
}

static int print(void *arg, const char *piece, size_t size)
{
	return fwrite(piece, 1, size, arg) == size ? 0 : -1;
}

static void print_metrics(struct weir_fleet *fleet)
{
	const struct weir_label label = {.name = "zone", .value = "a \"quoted\" one"};
	struct weir_metrics *metrics;

	if (weir_metrics_create(&metrics) != 0 ||
	    weir_fleet_metrics_add(metrics, fleet, &label, 1) != 0 ||
	    weir_metrics_write(metrics, WEIR_OPENMETRICS, print, stdout) != 0)
		die("metrics failed");
	weir_metrics_destroy(metrics);
}

static void own(struct weir_work *work, unsigned count)
{
	while (weir_work_owned(work) != count || write_checkpoints(work) != count)
		wait_a_moment();
}

static struct weir_work *open_rate(struct weir_fleet *fleet, const char *limit, unsigned capacity,
				   unsigned factor)
{
	char name[WEIR_SHARE_NAME_MAX], why[256];
	struct weir_work_config config;
	struct weir_work *rate;

	snprintf(name, sizeof(name), "%s-rate", limit);
	weir_work_config_init(&config);
	config.name = name;
	config.strategy = WEIR_WORK_WANTED;
	config.capacity = capacity;
	config.factor = factor;
	if (weir_work_open(fleet, &config, &rate, why, sizeof(why)) != 0)
		die(why);
	if (weir_work_demand_set(rate, 1000000) != 0)
		die("that is too much");
	return rate;
}

/* What it has. */
struct sharer {
	struct weir_fleet *fleet;
	const char *limit;
	struct weir_share *share;
	struct weir_work *work, *rate; /* rate: NULL at first */
};

static void obey(struct sharer *s, const char *line)
{
	struct weir_share *share = s->share;
	struct weir_work *work = s->work;
	unsigned count = 0, factor = 0;
	char what[16] = "";

	sscanf(line, "%15s %u %u", what, &count, &factor);
	if (strcmp(what, "rate") == 0)
		s->rate = open_rate(s->fleet, s->limit, count, factor);
	while (strcmp(what, "has") == 0 && weir_work_units(s->rate) != count)
		wait_a_moment();
	if (strcmp(what, "want") == 0 && weir_share_demand_set(share, count) != 0)
		die("that is too much");
	while (strcmp(what, "until") == 0 && weir_share_units(share) != count)
		wait_a_moment();
	if (strcmp(what, "owns") == 0)
		own(work, count);
	if (strcmp(what, "metrics") == 0)
		print_metrics(s->fleet);
	puts("done");
}

int main(int argc, char **argv)
{
	struct sharer s = {.rate = NULL};
	char line[200];

	if (argc < 5)
		die("usage: weir-sharer ADDRESS LIMIT CAPACITY WANTS [LABEL]");
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.limit = argv[2];
	s.fleet = open_fleet(argv[1], argv[5]); /* NULL, where there is none */
	s.share = join(s.fleet, argv);
	s.work = open_partitions(s.fleet, argv[2]);
	puts("done");
	while (fgets(line, sizeof(line), stdin) != NULL)
		obey(&s, line);
	weir_work_close(s.rate);
	weir_work_close(s.work);
	weir_share_leave(s.share);
	weir_fleet_close(s.fleet);
	return EXIT_SUCCESS;
}
