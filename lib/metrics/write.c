/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics as text. The two formats differ in what they say about a metric, not in its samples. In
 * OpenMetrics a counter is called weir_calls and its samples weir_calls_total, there may be a unit,
 * and an end marker shows that nothing was cut off. In Prometheus's older text the metric has the
 * name of its samples, and there is neither a unit nor an end marker. No text suits both: a parser
 * of the other format would find counters without type and help.
 *
 * Numbers are written in the C locale, whatever the program's is: scrapers do not accept a decimal
 * comma. The locale is switched for the writing thread, around each number that has a fraction, so
 * no callback of the program ever runs under it.
 */

#include "lib/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a piece: large enough to be worth a system call in take(), small on a thread's stack. */
#define PIECE 4096

/* The decimal digits that a double always preserves, and those that always identify it. */
#define DIGITS_SAFE 15
#define DIGITS_ALL  17

/* Where text goes. Once status is not 0, text is dropped. */
struct sink {
	int (*take)(void *arg, const char *piece, size_t size);
	void *arg;
	locale_t c;
	enum weir_metrics_format format;
	int status;
	size_t used;
	char piece[PIECE];
};

static void flush(struct sink *sink)
{
	if (sink->status == 0 && sink->used > 0)
		sink->status = sink->take(sink->arg, sink->piece, sink->used);
	sink->used = 0;
}

static void put(struct sink *sink, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t size = sizeof(sink->piece) - sink->used;

		size = size < left ? size : left;
		memcpy(sink->piece + sink->used, text, size);
		sink->used += size;
		text += size;
		left -= size;
		if (sink->used == sizeof(sink->piece))
			flush(sink);
	}
}

/* With the fewest digits that give the same number when read. */
static void put_real(struct sink *sink, double real)
{
	char text[32];
	locale_t before;

	if (!isfinite(real)) {
		put(sink, isnan(real) ? "NaN" : real > 0 ? "+Inf" : "-Inf");
		return;
	}
	before = uselocale(sink->c);
	for (int digits = DIGITS_SAFE; digits <= DIGITS_ALL; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, real);
		if (strtod(text, NULL) == real)
			break;
	}
	uselocale(before);
	put(sink, text);
}

static void put_whole(struct sink *sink, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put(sink, text);
}

/* numbers: the snapshot that contains the sample. */
static void put_value(struct sink *sink, const struct sample *sample, const void *numbers)
{
	const char *at = (const char *)numbers + sample->offset;
	uint32_t narrow;
	uint64_t wide;
	double real;

	switch (sample->type) {
	case U32:
		memcpy(&narrow, at, sizeof(narrow));
		put_whole(sink, narrow);
		break;
	case U64:
		memcpy(&wide, at, sizeof(wide));
		put_whole(sink, wide);
		break;
	case REAL:
		memcpy(&real, at, sizeof(real));
		put_real(sink, real);
		break;
	case NANOSECONDS:
		memcpy(&real, at, sizeof(real));
		put_real(sink, real > 0 ? real / 1e9 : NAN);
		break;
	}
}

static void put_name(struct sink *sink, const struct family *family)
{
	put(sink, family->name);
	put(sink, family->kind == COUNTER ? "_total" : "");
}

/* One line of metadata of a metric. */
static void put_fact(struct sink *sink, const char *what, const struct family *family,
		     const char *fact)
{
	put(sink, what);
	if (sink->format == WEIR_OPENMETRICS)
		put(sink, family->name);
	else
		put_name(sink, family);
	put(sink, " ");
	put(sink, fact);
	put(sink, "\n");
}

/* A sample up to its value. Each of labels may be NULL or empty. */
static void put_series(struct sink *sink, const struct family *family, const char *const *labels,
		       size_t count)
{
	const char *before = "{";

	put_name(sink, family);
	for (size_t i = 0; i < count; i++) {
		if (labels[i] == NULL || labels[i][0] == '\0')
			continue;
		put(sink, before);
		put(sink, labels[i]);
		before = ",";
	}
	put(sink, before[0] == ',' ? "} " : " ");
}

static void put_samples(struct sink *sink, const struct family *family, const struct source *source,
			const char *part, const void *numbers)
{
	for (unsigned i = 0; i < family->count; i++) {
		const char *const labels[] = {source->labels, part, family->samples[i].label};

		put_series(sink, family, labels, 3);
		put_value(sink, &family->samples[i], numbers);
		put(sink, "\n");
	}
}

static void put_numbers(struct sink *sink, const struct family *family, const struct source *source)
{
	for (unsigned i = 0; i < source->numbers.last.count; i++) {
		const char *const labels[] = {source->labels, source->number_labels[i]};

		put_series(sink, family, labels, 2);
		put_real(sink, source->numbers.last.numbers[i]);
		put(sink, "\n");
	}
}

static void put_source(struct sink *sink, const struct family *family, const struct source *source)
{
	switch (family->owner) {
	case LIMITER:
		put_samples(sink, family, source, NULL, &source->numbers);
		break;
	case PARTITION:
		for (unsigned i = 0; i < source->part_count; i++)
			put_samples(sink, family, source, source->parts[i].label,
				    &source->parts[i].numbers);
		break;
	case NUMBERS:
		put_numbers(sink, family, source);
		break;
	case RATE:
		put_samples(sink, family, source, NULL, &source->rate);
		break;
	case QUOTA:
		for (unsigned i = 0; i < source->rate.quota_count; i++)
			put_samples(sink, family, source, source->quota_labels[i],
				    &source->rate.quotas[i]);
		break;
	}
}

static bool of_rates(const struct family *family)
{
	return family->owner == RATE || family->owner == QUOTA;
}

static void put_facts(struct sink *sink, const struct family *family)
{
	put_fact(sink, "# HELP ", family, family->help);
	put_fact(sink, "# TYPE ", family, family->kind == COUNTER ? "counter" : "gauge");
	if (family->unit != NULL && sink->format == WEIR_OPENMETRICS)
		put_fact(sink, "# UNIT ", family, family->unit);
}

static void put_own(struct sink *sink, const struct own *own)
{
	put_facts(sink, &own->family);
	for (const struct value *value = own->first; value != NULL && sink->status == 0;
	     value = value->next) {
		const char *const labels[] = {value->labels};

		put_series(sink, &own->family, labels, 1);
		put_real(sink, value->number);
		put(sink, "\n");
	}
}

static void put_family(struct sink *sink, const struct family *family, const struct source *source)
{
	put_facts(sink, family);
	for (; source != NULL && sink->status == 0; source = source->next)
		if (source->is_rate == of_rates(family))
			put_source(sink, family, source);
}

const char *weir_metrics_content_type(enum weir_metrics_format format)
{
	switch (format) {
	case WEIR_OPENMETRICS:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	case WEIR_PROMETHEUS:
		return "text/plain; version=0.0.4; charset=utf-8";
	}
	return NULL;
}

int weir_metrics_write(const struct weir_metrics *metrics, enum weir_metrics_format format,
		       int (*take)(void *arg, const char *piece, size_t size), void *arg)
{
	struct sink sink = {.take = take, .arg = arg, .c = metrics->c, .format = format};

	if (weir_metrics_content_type(format) == NULL)
		return -EINVAL;
	for (size_t i = 0; i < metric_family_count && sink.status == 0; i++)
		if (metrics->has_rates || !of_rates(&metric_families[i]))
			put_family(&sink, &metric_families[i], metrics->first);
	for (const struct own *own = metrics->own; own != NULL && sink.status == 0; own = own->next)
		put_own(&sink, own);
	if (format == WEIR_OPENMETRICS)
		put(&sink, "# EOF\n");
	flush(&sink);
	return sink.status;
}

/* A caller's buffer, and the size that the text needs. */
struct buffer {
	char *text;
	size_t size;
	size_t needed;
};

static int fill(void *arg, const char *piece, size_t size)
{
	struct buffer *buffer = arg;
	size_t left = buffer->needed < buffer->size ? buffer->size - buffer->needed : 0;

	if (left > 0)
		memcpy(buffer->text + buffer->needed, piece, size < left ? size : left);
	buffer->needed += size;
	return 0;
}

size_t weir_metrics_text(const struct weir_metrics *metrics, enum weir_metrics_format format,
			 char *text, size_t size)
{
	struct buffer buffer = {.text = text, .size = size > 0 ? size - 1 : 0};

	weir_metrics_write(metrics, format, fill, &buffer);
	if (size > 0)
		text[buffer.needed < buffer.size ? buffer.needed : buffer.size] = '\0';
	return buffer.needed;
}
