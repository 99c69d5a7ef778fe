/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots of limiters and rates in a set of metrics. */

#include "lib/metrics/metrics.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "lib/metrics/labels.h"

void source_free(struct source *source)
{
	for (unsigned i = 0; i < source->part_count; i++)
		free(source->parts[i].label);
	for (unsigned i = 0; i < WEIR_NUMBERS_MAX; i++)
		free(source->number_labels[i]);
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		free(source->quota_labels[i]);
	free(source->labels);
	free(source);
}

/* Returns 0 or a negative errno. In either case source owns what has been allocated. */
static int source_fill(struct source *source, const struct weir_limiter *limiter,
		       const struct weir_label *labels, size_t count)
{
	const struct weir_report *last = &source->numbers.last;
	int r = labels_write(labels, count, &source->labels);

	weir_snapshot_init(&source->numbers);
	weir_snapshot_take(limiter, &source->numbers);
	for (unsigned i = 0; r == 0 && i < last->count; i++)
		r = labels_write_one("number", last->names[i], &source->number_labels[i]);
	for (unsigned i = 0; r == 0 && i < source->part_count; i++) {
		struct part *part = &source->parts[i];

		weir_partition_snapshot_init(&part->numbers);
		r = weir_partition_snapshot_take(limiter, i, &part->numbers);
		if (r == 0)
			r = labels_write_one("partition", part->numbers.name, &part->label);
	}
	return r;
}

static int rate_fill(struct source *source, struct weir_rate *rate, const struct weir_label *labels,
		     size_t count)
{
	int r = labels_write(labels, count, &source->labels);

	source->is_rate = true;
	weir_rate_snapshot_init(&source->rate);
	weir_rate_snapshot_take(rate, &source->rate);
	for (unsigned i = 0; r == 0 && i < source->rate.quota_count; i++) {
		const char index[] = {(char)('0' + i), '\0'};

		r = labels_write_one("quota", index, &source->quota_labels[i]);
	}
	return r;
}

static int source_compare(const void *a, const void *b)
{
	const struct source *one = a, *other = b;

	if (one->is_rate != other->is_rate)
		return one->is_rate ? 1 : -1;
	return strcmp(one->labels, other->labels);
}

/* Register these labels. Returns 0, -EEXIST or -ENOMEM. */
static int source_register(struct weir_metrics *metrics, struct source *source)
{
	struct source *const *found = tsearch(source, &metrics->known, source_compare);

	if (found == NULL)
		return -ENOMEM;
	return *found == source ? 0 : -EEXIST;
}

/* Add a source that has been filled to the set; free it if filling or adding failed. */
static int source_add(struct weir_metrics *metrics, struct source *source, int filled)
{
	const int r = filled == 0 ? source_register(metrics, source) : filled;

	if (r != 0) {
		source_free(source);
		return r;
	}
	*metrics->end = source;
	metrics->end = &source->next;
	return 0;
}

int weir_metrics_add(struct weir_metrics *metrics, const struct weir_limiter *limiter,
		     const struct weir_label *labels, size_t count)
{
	const unsigned parts = weir_partition_count(limiter);
	struct source *source;
	int r = labels_check(labels, count);

	if (r != 0)
		return r;
	source = calloc(1, sizeof(*source) + parts * sizeof(source->parts[0]));
	if (source == NULL)
		return -ENOMEM;
	source->part_count = parts;
	r = source_fill(source, limiter, labels, count);
	return source_add(metrics, source, r);
}

int weir_metrics_add_rate(struct weir_metrics *metrics, struct weir_rate *rate,
			  const struct weir_label *labels, size_t count)
{
	struct source *source;
	int r = labels_check(labels, count);

	if (r != 0)
		return r;
	source = calloc(1, sizeof(*source));
	if (source == NULL)
		return -ENOMEM;
	r = source_add(metrics, source, rate_fill(source, rate, labels, count));
	metrics->has_rates = metrics->has_rates || r == 0;
	return r;
}

/* State of adding a registry to a set: the key's label first, then the caller's. */
struct registered {
	struct weir_metrics *metrics;
	struct weir_label *labels;
	size_t count;
	int error;
};

static bool add_entry(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	struct registered *entry = arg;
	int error;

	/* A length of 0 would mean: up to the zero byte. */
	entry->labels[0].value = key_len > 0 ? key : "";
	entry->labels[0].length = key_len;
	error = weir_metrics_add(entry->metrics, limiter, entry->labels, entry->count);
	if (entry->error == 0)
		entry->error = error;
	return true;
}

int weir_metrics_add_registry(struct weir_metrics *metrics, struct weir_registry *registry,
			      const char *key_name, const struct weir_label *labels, size_t count)
{
	struct registered entry = {
		.metrics = metrics,
		.labels = malloc((count + 1) * sizeof(*labels)),
		.count = count + 1,
	};

	if (entry.labels == NULL)
		return -ENOMEM;
	entry.labels[0] = (struct weir_label){.name = key_name};
	for (size_t i = 0; i < count; i++)
		entry.labels[i + 1] = labels[i];
	(void)weir_registry_visit(registry, add_entry, &entry);
	free(entry.labels);
	return entry.error;
}
