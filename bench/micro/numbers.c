/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbers.c - the cost of reading a limiter: a snapshot, and a scrape.
 */
#include "rig.h"

#include <stdlib.h>

static uint64_t snapshot_loop(void *shared, struct worker *worker, uint64_t times)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	for (uint64_t i = 0; i < times; i++) {
		weir_snapshot_take(shared, &snapshot);
		worker->latency_sum += snapshot.admitted;
	}
	return 0;
}

static const struct weir_label labels[] = {{.name = "name", .value = "checkout"}};

static uint64_t scrape_loop(void *shared, struct worker *worker, uint64_t times)
{
	char text[16384];
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < times; i++) {
		struct weir_metrics *metrics;
		size_t length;

		must_do(weir_metrics_create(&metrics), "weir_metrics_create");
		must_do(weir_metrics_add(metrics, shared, labels, 1), "weir_metrics_add");
		length = weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text));
		weir_metrics_destroy(metrics);
		worker->latency_sum += length;
		wrong += length == 0 || length >= sizeof(text);
	}
	return wrong;
}

static void *metrics_make(const struct subject *self, unsigned threads)
{
	struct weir_limiter *limiter = plain_make(self, threads);
	struct weir_metrics *metrics;

	must_do(weir_metrics_create(&metrics), "weir_metrics_create");
	must_do(weir_metrics_add(metrics, limiter, labels, 1), "weir_metrics_add");
	weir_limiter_destroy(limiter);
	return metrics;
}

static void metrics_unmake(void *shared)
{
	weir_metrics_destroy(shared);
}

static uint64_t text_loop(void *shared, struct worker *worker, uint64_t times)
{
	char text[16384];
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < times; i++) {
		size_t length = weir_metrics_text(shared, WEIR_OPENMETRICS, text, sizeof(text));

		worker->latency_sum += length;
		wrong += length == 0 || length >= sizeof(text);
	}
	return wrong;
}

static const struct subject table[] = {
	{
		.group = "numbers",
		.name = "snapshot",
		.about = "weir_snapshot_take()",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = snapshot_loop,
		.slow = 4,
	},
	{
		.group = "numbers",
		.name = "metrics-text",
		.about = "OpenMetrics of one limiter, written",
		.make = metrics_make,
		.unmake = metrics_unmake,
		.loop = text_loop,
		.slow = 200,
	},
	{
		.group = "numbers",
		.name = "scrape",
		.about = "the same from the start: create a set, add the limiter, write all",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = scrape_loop,
		.flags = ALLOCATES,
		.slow = 200,
	},
};

void numbers_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
