/* SPDX-License-Identifier: BSD-2-Clause */
#include "stats.h"

#include <inttypes.h>
#include <time.h>

#define EVERY (100 * WEIR_MS)

static uint64_t epoch_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Nothing here waits for the store, because the time when the store fails is most interesting. */
static void write_line(const struct stats *stats)
{
	fprintf(stats->file, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", epoch_ms(),
		weir_share_units(stats->capacity->share),
		weir_batcher_needs(stats->capacity->batcher).units[0]);
	fflush(stats->file);
}

static void *run(void *arg)
{
	const struct timespec every = {.tv_nsec = (long)EVERY};
	const struct stats *stats = arg;

	while (!atomic_load(&stats->ending)) {
		write_line(stats);
		nanosleep(&every, NULL);
	}
	return NULL;
}

int stats_start(struct stats *stats, const char *path, const struct capacity *capacity)
{
	*stats = (struct stats){.file = fopen(path, "we"), .capacity = capacity};
	if (!stats->file) {
		perror(path);
		return -1;
	}
	fputs("time_ms\tgranted\tneeded\n", stats->file);
	if (pthread_create(&stats->thread, NULL, run, stats) == 0)
		return 0;
	fclose(stats->file);
	stats->file = NULL;
	return -1;
}

void stats_end(struct stats *stats)
{
	if (!stats->file)
		return;
	atomic_store(&stats->ending, true);
	pthread_join(stats->thread, NULL);
	fclose(stats->file);
	stats->file = NULL;
}
