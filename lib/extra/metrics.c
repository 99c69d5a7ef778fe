/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics: limiters' snapshots as text for scrapers.
 *
 * One table lists all metrics. The two formats differ in what they say about a metric, not in its
 * samples. In OpenMetrics a counter is called weir_calls and its samples weir_calls_total, there
 * may be a unit, and an end marker shows that nothing was cut off. In Prometheus's older text the
 * metric has the name of its samples, and there is neither a unit nor an end marker. No text suits
 * both: a parser of the other format would find counters without type and help.
 *
 * Numbers are written in the C locale, whatever the program's is: scrapers do not accept a decimal
 * comma. The locale is switched for the writing thread, around each number that has a fraction, so
 * no callback of the program ever runs under it.
 *
 * This file uses public functions only.
 */

#include <weir/metrics.h>

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/observe.h>
#include <weir/partition.h>
#include <weir/rate.h>

/* Bytes of a piece: large enough to be worth a system call in take(), small on a thread's stack. */
#define PIECE 4096

/* The decimal digits that a double always preserves, and those that always identify it. */
#define DIGITS_SAFE 15
#define DIGITS_ALL  17

#define SAMPLES_MAX 6

enum type {
	U32,
	U64,
	REAL,
	NANOSECONDS, /* a double; 0 means unknown */
};

/* Location of a sample's value, in the snapshot that it belongs to. */
struct sample {
	enum type type;
	size_t offset;
	const char *label; /* NULL: none besides those of its limiter or partition */
};

enum kind {
	GAUGE,
	COUNTER,
};

enum owner {
	LIMITER,
	PARTITION,
	NUMBERS, /* internal values of the limit, which names them */
	RATE,
	QUOTA,
};

struct family {
	enum owner owner;
	enum kind kind;
	const char *name;
	const char *unit; /* the suffix of name; NULL: none */
	const char *help;
	unsigned count;
	struct sample samples[SAMPLES_MAX];
};

struct part {
	struct weir_partition_snapshot numbers;
	char *label;
};

/* Snapshot of one limiter or rate. Labels are stored as they are written: a="b",c="d". */
struct source {
	struct source *next;
	char *labels;
	bool is_rate; /* it is a rate */
	struct weir_rate_snapshot rate;
	char *quota_labels[WEIR_QUOTAS_MAX];
	struct weir_snapshot numbers;
	char *number_labels[WEIR_NUMBERS_MAX];
	unsigned part_count;
	struct part parts[];
};

/* A value of a metric of the program's own. */
struct value {
	struct value *next;
	const struct own *metric;
	char *labels;
	double number;
};

/* A metric of the program's own, with its values. Its family has no owner. */
struct own {
	struct own *next;
	struct family family;
	struct value *first, **end;
	char text[]; /* name, unit and help */
};

struct weir_metrics {
	struct source *first, **end;
	void *known;    /* sources by their labels: a tree of tsearch() */
	bool has_rates; /* there are rates in the set */
	struct own *own, **own_end;
	void *values; /* of the program's own metrics, by metric and labels: likewise */
	locale_t c;
};

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

#define OF_LIMITER(type, field)                                                                    \
	.count = 1, .samples = {{type, offsetof(struct weir_snapshot, field), NULL}}
#define OF_PARTITION(type, field)                                                                  \
	.count = 1, .samples = {{type, offsetof(struct weir_partition_snapshot, field), NULL}}
#define OF_RATE(type, field)                                                                       \
	.count = 1, .samples = {{type, offsetof(struct weir_rate_snapshot, field), NULL}}
#define OF_QUOTA(type, field)                                                                      \
	.count = 1, .samples = {{type, offsetof(struct weir_quota_snapshot, field), NULL}}
#define ENDED(status, field)                                                                       \
	{                                                                                          \
		U64, offsetof(struct weir_snapshot, field), "status=\"" status "\""                \
	}
#define PART_ENDED(status, field)                                                                  \
	{                                                                                          \
		U64, offsetof(struct weir_partition_snapshot, field), "status=\"" status "\""      \
	}

/* clang-format off */
static const struct family families[] = {
	{LIMITER, GAUGE, "weir_limit", NULL,
	 "Permits that may be out at once, as learned, without any burst.", OF_LIMITER(U32, limit)},
	{LIMITER, GAUGE, "weir_burst", NULL,
	 "Permits above the limit that are available now.", OF_LIMITER(U32, burst)},
	{LIMITER, GAUGE, "weir_inflight", NULL,
	 "Permits that are out.", OF_LIMITER(U32, inflight)},
	{LIMITER, GAUGE, "weir_waiting", NULL,
	 "Calls that wait for a permit.", OF_LIMITER(U32, waiting)},
	{LIMITER, GAUGE, "weir_passing", NULL,
	 "Calls let through without a permit that have not ended.", OF_LIMITER(U32, passing)},
	{LIMITER, GAUGE, "weir_shadow", NULL,
	 "1 in shadow mode, when nothing is refused.", OF_LIMITER(U32, shadow)},
	{LIMITER, GAUGE, "weir_rtt_seconds", "seconds",
	 "Latency of the last window, as the limit saw it.",
	 OF_LIMITER(NANOSECONDS, last.window.rtt)},
	{LIMITER, GAUGE, "weir_sample_every", NULL,
	 "Calls for each one whose latency is measured.", OF_LIMITER(REAL, sample_every)},
	{NUMBERS, GAUGE, "weir_limit_number", NULL,
	 "Internal numbers of the limit, in its own units: latencies in nanoseconds.", .count = 0},

	{LIMITER, COUNTER, "weir_calls", NULL, "Calls that were admitted and have ended.",
	 .count = 6, .samples = {
		ENDED("success", succeeded), ENDED("ignored", ignored), ENDED("dropped", dropped),
		ENDED("timeout", timed_out), ENDED("cancelled", cancelled), ENDED("failed", failed)}},
	{LIMITER, COUNTER, "weir_admitted", NULL,
	 "Calls that got a permit.", OF_LIMITER(U64, admitted)},
	{LIMITER, COUNTER, "weir_rejected", NULL,
	 "Calls refused at once.", OF_LIMITER(U64, rejected)},
	{LIMITER, COUNTER, "weir_shed", NULL,
	 "Calls refused for their priority, of the rejected.", OF_LIMITER(U64, shed)},
	{LIMITER, COUNTER, "weir_abandoned", NULL,
	 "Calls that left the queue without a permit.", OF_LIMITER(U64, abandoned)},
	{LIMITER, COUNTER, "weir_bypassed", NULL,
	 "Calls let through because they requested a bypass.", OF_LIMITER(U64, bypassed)},
	{LIMITER, COUNTER, "weir_would_reject", NULL,
	 "Calls let through in shadow mode, in place of a refusal or a wait.",
	 OF_LIMITER(U64, would_reject)},
	{LIMITER, COUNTER, "weir_detached", NULL,
	 "Admitted calls that became long-lived.", OF_LIMITER(U64, detached)},
	{LIMITER, COUNTER, "weir_double_releases", NULL,
	 "Tokens released twice, a bug in the program.", OF_LIMITER(U64, double_released)},
	{LIMITER, COUNTER, "weir_windows", NULL,
	 "Windows that the limit has seen.", OF_LIMITER(U64, windows)},

	{PARTITION, GAUGE, "weir_partition_share_ratio", "ratio",
	 "The partition's configured share of the limit.", OF_PARTITION(REAL, share)},
	{PARTITION, GAUGE, "weir_partition_guarantee", NULL,
	 "Permits that its share guarantees.", OF_PARTITION(U32, guarantee)},
	{PARTITION, GAUGE, "weir_partition_cap", NULL,
	 "Permits that it never exceeds.", OF_PARTITION(U32, cap)},
	{PARTITION, GAUGE, "weir_partition_inflight", NULL,
	 "Permits of its calls that are out.", OF_PARTITION(U32, inflight)},
	{PARTITION, GAUGE, "weir_partition_waiting", NULL,
	 "Its calls that wait for a permit.", OF_PARTITION(U32, waiting)},
	{PARTITION, GAUGE, "weir_partition_reserved", NULL,
	 "Permits reserved for it.", OF_PARTITION(U32, reserved)},
	{PARTITION, GAUGE, "weir_partition_delayed", NULL,
	 "Its refusals that are being delayed.", OF_PARTITION(U32, delayed)},
	{PARTITION, COUNTER, "weir_partition_calls", NULL,
	 "Its calls that were admitted and have ended.", .count = 3, .samples = {
		PART_ENDED("success", succeeded), PART_ENDED("overload", dropped),
		PART_ENDED("other", other)}},
	{PARTITION, COUNTER, "weir_partition_admitted", NULL,
	 "Its calls that got a permit.", OF_PARTITION(U64, admitted)},
	{PARTITION, COUNTER, "weir_partition_rejected", NULL,
	 "Its calls refused at once.", OF_PARTITION(U64, rejected)},
	{PARTITION, COUNTER, "weir_partition_shed", NULL,
	 "Its calls refused for their priority, of the rejected.", OF_PARTITION(U64, shed)},
	{PARTITION, COUNTER, "weir_partition_abandoned", NULL,
	 "Its calls that left the queue without a permit.", OF_PARTITION(U64, abandoned)},

	{RATE, GAUGE, "weir_rate_waiting", NULL,
	 "Calls that wait.", OF_RATE(U32, waiting)},
	{RATE, GAUGE, "weir_rate_percent", NULL,
	 "The pace: 100, or less after the backend throttled; 0: nothing passes yet.",
	 OF_RATE(U32, percent)},
	{RATE, COUNTER, "weir_rate_admitted", NULL,
	 "Calls that were admitted.", OF_RATE(U64, admitted)},
	{RATE, COUNTER, "weir_rate_refused", NULL,
	 "Calls refused at once.", OF_RATE(U64, refused)},
	{RATE, COUNTER, "weir_rate_abandoned", NULL,
	 "Calls that left the queue without being admitted.", OF_RATE(U64, abandoned)},
	{RATE, COUNTER, "weir_rate_throttled", NULL,
	 "Times that the backend throttled.", OF_RATE(U64, throttled)},
	{QUOTA, GAUGE, "weir_quota_units", NULL,
	 "Units that may be taken in a period.", OF_QUOTA(U64, quota.units)},
	{QUOTA, GAUGE, "weir_quota_available", NULL,
	 "Units that are left now.", OF_QUOTA(U64, available)},
	{QUOTA, GAUGE, "weir_quota_debt", NULL,
	 "Units taken that have not been added yet.", OF_QUOTA(U64, debt)},
	{QUOTA, COUNTER, "weir_quota_taken", NULL,
	 "Units that calls have taken.", OF_QUOTA(U64, taken)},
};
/* clang-format on */

#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* Size of the UTF-8 character that begins here, in bytes; 0 if it is invalid. */
static size_t character(const unsigned char *text, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code = text[0];
	size_t size;

	if (code < 0x80)
		return code != 0;
	size = code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
	if (code < 0xc0 || code > 0xf4 || size > left)
		return 0;
	code &= 0x7fu >> size;
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return size;
}

static bool is_text(const char *value, size_t length)
{
	size_t size;

	for (size_t i = 0; i < length; i += size) {
		size = character((const unsigned char *)value + i, length - i);
		if (size == 0)
			return false;
	}
	return true;
}

static bool is_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char digits[] = "0123456789";
	const char *rest;

	if (name == NULL || strncmp(name, "__", 2) == 0 || strspn(name, letters) == 0)
		return false;
	for (rest = name; *rest != '\0'; rest++)
		if (strchr(letters, *rest) == NULL && strchr(digits, *rest) == NULL)
			return false;
	return true;
}

/* Reserved for metrics that have more than a limiter's own labels. */
static bool is_taken(const char *name)
{
	return strcmp(name, "number") == 0 || strcmp(name, "partition") == 0 ||
	       strcmp(name, "quota") == 0 || strcmp(name, "status") == 0;
}

static size_t length_of(const struct weir_label *label)
{
	return label->length > 0 ? label->length : strlen(label->value);
}

/* The label whose name follows that of before, or the first; NULL: there is none. */
static const struct weir_label *next_label(const struct weir_label *labels, size_t count,
					   const struct weir_label *before)
{
	const struct weir_label *next = NULL;

	for (size_t i = 0; i < count; i++) {
		if (before != NULL && strcmp(labels[i].name, before->name) <= 0)
			continue;
		if (next == NULL || strcmp(labels[i].name, next->name) < 0)
			next = &labels[i];
	}
	return next;
}

static int check_labels(const struct weir_label *labels, size_t count)
{
	const struct weir_label *label = NULL;
	size_t names = 0;

	for (size_t i = 0; i < count; i++)
		if (!is_name(labels[i].name) || is_taken(labels[i].name) || labels[i].value == NULL)
			return -EINVAL;
	while ((label = next_label(labels, count, label)) != NULL)
		names++;
	return names == count ? 0 : -EINVAL;
}

static char *append_escaped(char *to, const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (value[i] == '"' || value[i] == '\\' || value[i] == '\n')
			*to++ = '\\';
		*to++ = value[i] == '\n' ? 'n' : value[i];
	}
	return to;
}

/*
 * Labels as they are written, in the order of their names, so that equal labels give equal text. To
 * scrapers an empty value is the same as no label. Returns 0, -EILSEQ or -ENOMEM.
 */
static int write_labels(const struct weir_label *labels, size_t count, char **text)
{
	const struct weir_label *label = NULL;
	size_t size = 1;
	char *to;

	for (size_t i = 0; i < count; i++) {
		if (!is_text(labels[i].value, length_of(&labels[i])))
			return -EILSEQ;
		size += strlen(labels[i].name) + 2 * length_of(&labels[i]) + strlen("=\"\",");
	}
	*text = to = malloc(size);
	if (to == NULL)
		return -ENOMEM;
	while ((label = next_label(labels, count, label)) != NULL) {
		if (length_of(label) == 0)
			continue;
		to = stpcpy(to, to == *text ? "" : ",");
		to = stpcpy(to, label->name);
		to = stpcpy(to, "=\"");
		to = append_escaped(to, label->value, length_of(label));
		to = stpcpy(to, "\"");
	}
	*to = '\0';
	return 0;
}

static int write_label(const char *name, const char *value, char **text)
{
	const struct weir_label label = {.name = name, .value = value};

	return write_labels(&label, 1, text);
}

static void source_free(struct source *source)
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
	int r = write_labels(labels, count, &source->labels);

	weir_snapshot_init(&source->numbers);
	weir_snapshot_take(limiter, &source->numbers);
	for (unsigned i = 0; r == 0 && i < last->count; i++)
		r = write_label("number", last->names[i], &source->number_labels[i]);
	for (unsigned i = 0; r == 0 && i < source->part_count; i++) {
		struct part *part = &source->parts[i];

		weir_partition_snapshot_init(&part->numbers);
		r = weir_partition_snapshot_take(limiter, i, &part->numbers);
		if (r == 0)
			r = write_label("partition", part->numbers.name, &part->label);
	}
	return r;
}

static int rate_fill(struct source *source, struct weir_rate *rate, const struct weir_label *labels,
		     size_t count)
{
	int r = write_labels(labels, count, &source->labels);

	source->is_rate = true;
	weir_rate_snapshot_init(&source->rate);
	weir_rate_snapshot_take(rate, &source->rate);
	for (unsigned i = 0; r == 0 && i < source->rate.quota_count; i++) {
		const char index[] = {(char)('0' + i), '\0'};

		r = write_label("quota", index, &source->quota_labels[i]);
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
	int r = check_labels(labels, count);

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
	int r = check_labels(labels, count);

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

/* Whether a metric of this library has that name. */
static bool is_ours(const char *name)
{
	for (size_t i = 0; i < FAMILIES; i++)
		if (strcmp(families[i].name, name) == 0)
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), rest = strlen(end);

	return length > rest && strcmp(text + length - rest, end) == 0;
}

static bool is_unit_of(const char *unit, const char *name)
{
	return is_name(unit) && ends_with(name, unit) &&
	       name[strlen(name) - strlen(unit) - 1] == '_';
}

/* Returns 0, -EINVAL or -EILSEQ. */
static int check_metric(const struct weir_metric *metric)
{
	if ((unsigned)metric->kind > WEIR_METRIC_COUNTER || !is_name(metric->name) ||
	    ends_with(metric->name, "_total") || is_ours(metric->name))
		return -EINVAL;
	if (metric->unit != NULL && !is_unit_of(metric->unit, metric->name))
		return -EINVAL;
	if (metric->help == NULL || strpbrk(metric->help, "\"\\\n") != NULL)
		return -EINVAL;
	return is_text(metric->help, strlen(metric->help)) ? 0 : -EILSEQ;
}

static enum kind kind_of(const struct weir_metric *metric)
{
	return metric->kind == WEIR_METRIC_COUNTER ? COUNTER : GAUGE;
}

static bool is_same(const struct family *family, const struct weir_metric *metric)
{
	const char *unit = metric->unit != NULL ? metric->unit : "";

	return family->kind == kind_of(metric) && strcmp(family->help, metric->help) == 0 &&
	       strcmp(family->unit != NULL ? family->unit : "", unit) == 0;
}

static struct own *own_create(const struct weir_metric *metric)
{
	const char *unit = metric->unit != NULL ? metric->unit : "";
	const size_t name_size = strlen(metric->name) + 1, unit_size = strlen(unit) + 1;
	const size_t help_size = strlen(metric->help) + 1;
	struct own *own = calloc(1, sizeof(*own) + name_size + unit_size + help_size);

	if (own == NULL)
		return NULL;
	memcpy(own->text, metric->name, name_size);
	memcpy(own->text + name_size, unit, unit_size);
	memcpy(own->text + name_size + unit_size, metric->help, help_size);
	own->family = (struct family){
		.kind = kind_of(metric),
		.name = own->text,
		.unit = metric->unit != NULL ? own->text + name_size : NULL,
		.help = own->text + name_size + unit_size,
	};
	own->end = &own->first;
	return own;
}

/*
 * The metric of that name, created at the end of the list, where *created is set, if there is none.
 * Returns 0, -EINVAL or -ENOMEM.
 */
static int own_find(struct weir_metrics *metrics, const struct weir_metric *metric,
		    struct own **found, bool *created)
{
	*created = false;
	for (*found = metrics->own; *found != NULL; *found = (*found)->next)
		if (strcmp((*found)->family.name, metric->name) == 0)
			return is_same(&(*found)->family, metric) ? 0 : -EINVAL;
	*found = own_create(metric);
	*created = true;
	return *found != NULL ? 0 : -ENOMEM;
}

static int value_compare(const void *a, const void *b)
{
	const struct value *one = a, *other = b;
	const int r = strcmp(one->metric->family.name, other->metric->family.name);

	return r != 0 ? r : strcmp(one->labels, other->labels);
}

static void value_free(struct value *value)
{
	free(value->labels);
	free(value);
}

/* Returns 0, -EILSEQ, -EEXIST or -ENOMEM; in the latter cases it is freed. */
static int value_register(struct weir_metrics *metrics, struct value *value,
			  const struct weir_label *labels, size_t count)
{
	struct value *const *found = NULL;
	int r = write_labels(labels, count, &value->labels);

	if (r == 0) {
		found = tsearch(value, &metrics->values, value_compare);
		r = found == NULL ? -ENOMEM : *found == value ? 0 : -EEXIST;
	}
	if (r != 0)
		value_free(value);
	return r;
}

static int value_add(struct weir_metrics *metrics, struct own *own, double number,
		     const struct weir_label *labels, size_t count)
{
	struct value *value = malloc(sizeof(*value));
	int r;

	if (value == NULL)
		return -ENOMEM;
	*value = (struct value){.metric = own, .number = number};
	r = value_register(metrics, value, labels, count);
	if (r != 0)
		return r;
	*own->end = value;
	own->end = &value->next;
	return 0;
}

int weir_metrics_add_value(struct weir_metrics *metrics, const struct weir_metric *metric,
			   double value, const struct weir_label *labels, size_t count)
{
	struct own *own = NULL;
	bool created = false;
	int r = check_metric(metric);

	if (r == 0)
		r = check_labels(labels, count);
	if (r == 0)
		r = own_find(metrics, metric, &own, &created);
	if (r == 0)
		r = value_add(metrics, own, value, labels, count);
	if (!created)
		return r;
	if (r != 0) {
		free(own);
		return r;
	}
	*metrics->own_end = own;
	metrics->own_end = &own->next;
	return 0;
}

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
	for (size_t i = 0; i < FAMILIES && sink.status == 0; i++)
		if (metrics->has_rates || !of_rates(&families[i]))
			put_family(&sink, &families[i], metrics->first);
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

int weir_metrics_create(struct weir_metrics **metrics)
{
	struct weir_metrics *m = calloc(1, sizeof(*m));

	*metrics = NULL;
	if (m == NULL)
		return -ENOMEM;
	m->end = &m->first;
	m->own_end = &m->own;
	m->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (m->c == (locale_t)0) {
		free(m);
		return -ENOMEM;
	}
	*metrics = m;
	return 0;
}

static void leave(void *source)
{
	(void)source;
}

static void own_free(struct own *own)
{
	for (struct value *value = own->first, *next; value != NULL; value = next) {
		next = value->next;
		value_free(value);
	}
	free(own);
}

void weir_metrics_destroy(struct weir_metrics *metrics)
{
	struct source *next;

	if (metrics == NULL)
		return;
	tdestroy(metrics->known, leave);
	tdestroy(metrics->values, leave);
	for (struct own *own = metrics->own, *after; own != NULL; own = after) {
		after = own->next;
		own_free(own);
	}
	for (struct source *source = metrics->first; source != NULL; source = next) {
		next = source->next;
		source_free(source);
	}
	freelocale(metrics->c);
	free(metrics);
}
