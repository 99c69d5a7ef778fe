/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of the limiter, for reading and for plots.
 */
#include "stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t epoch_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

int stats_text(const struct weir_limiter *limiter, char *text, size_t size)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return snprintf(text, size,
			"limit %" PRIu32 "\ninflight %" PRIu32 "\nwaiting %" PRIu32
			"\nadmitted %" PRIu64 "\nrejected %" PRIu64 "\nabandoned %" PRIu64
			"\nsucceeded %" PRIu64 "\nignored %" PRIu64 "\ndropped %" PRIu64
			"\ncancelled %" PRIu64 "\ndouble_released %" PRIu64 "\n",
			s.limit, s.inflight, s.waiting, s.admitted, s.rejected, s.abandoned,
			s.succeeded, s.ignored, s.dropped, s.cancelled, s.double_released);
}

char *stats_metrics(const struct weir_limiter *limiter, enum weir_metrics_format format)
{
	const struct weir_label name = {.name = "name", .value = "report"};
	struct weir_metrics *metrics;
	char *text = NULL;
	size_t size;

	if (weir_metrics_create(&metrics) != 0)
		return NULL;
	if (weir_metrics_add(metrics, limiter, &name, 1) == 0) {
		size = weir_metrics_text(metrics, format, NULL, 0) + 1;
		text = malloc(size);
		if (text)
			weir_metrics_text(metrics, format, text, size);
	}
	weir_metrics_destroy(metrics);
	return text;
}

void stats_header(FILE *file)
{
	fputs("time_ms\tlimit\tinflight\twaiting\tadmitted\trejected\tsucceeded\tdropped"
	      "\trss_kb\tconnections\n",
	      file);
}

void stats_line(FILE *file, const struct weir_limiter *limiter, unsigned connections)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	fprintf(file,
		"%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64
		"\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%u\n",
		epoch_ms(), s.limit, s.inflight, s.waiting, s.admitted, s.rejected + s.abandoned,
		s.succeeded, s.dropped, resident_kb(), connections);
	fflush(file);
}
