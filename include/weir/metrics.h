/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/metrics.h - limiters' numbers as text for Prometheus and compatible scrapers.
 *
 *	const struct weir_label labels[] = {{.name = "name", .value = "checkout"}};
 *	struct weir_metrics *metrics;
 *
 *	if (weir_metrics_create(&metrics) != 0)
 *		return -1;
 *	weir_metrics_add(metrics, limiter, labels, 1);		and every other limiter
 *	length = weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text));
 *	weir_metrics_destroy(metrics);
 *
 * The format requires all samples of one metric to stand together, for all limiters. So limiters
 * are first added to a set, and the set is then written at once: in the order in which the limiters
 * were added, with the numbers that they had then. Everything added is copied, labels too, so a
 * limiter may end as soon as it has been added. Each scrape creates a set and destroys it.
 *
 * Thread safety. Limiters may be busy meanwhile. A set is used by one thread at a time, except that
 * several threads may write one set at once, since writing does not change it.
 *
 * Metrics. All names begin with weir_; counters end with _total. For each limiter: limit, burst,
 * inflight, waiting, passing, shadow, rtt_seconds, sample_every, limit_number (by label number),
 * calls_total (by label status: success, ignored, dropped, timeout, cancelled, failed),
 * admitted_total, rejected_total, shed_total, abandoned_total, bypassed_total, would_reject_total,
 * detached_total, double_releases_total, windows_total. For each partition (label partition):
 * partition_share_ratio, and with the prefix partition_: guarantee, cap, inflight, waiting,
 * reserved, delayed, admitted_total, rejected_total, shed_total, abandoned_total, calls_total
 * (status: success, overload, other). They mean the same as the fields of struct weir_snapshot and
 * struct weir_partition_snapshot. rtt_seconds is NaN while there is none. For each rate, if there
 * are any, with the prefix rate_: waiting, percent, admitted_total, refused_total, abandoned_total,
 * throttled_total; for each of its quotas (label quota: 0, 1, ...), with the prefix quota_: units,
 * available, debt, taken_total. They mean the same as the fields of struct weir_rate_snapshot.
 * Metrics of weir_metrics_add_value() follow, in the order in which they were first added.
 */
#ifndef WEIR_METRICS_H
#define WEIR_METRICS_H

#include <weir/rate.h>
#include <weir/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text formats of metrics. */
enum weir_metrics_format {
	WEIR_OPENMETRICS, /* OpenMetrics 1.0: has units, and an end marker that shows truncation */
	WEIR_PROMETHEUS,  /* Prometheus text 0.0.4: for scrapers that do not request OpenMetrics */
};

/*
 * Distinguishes a limiter from the others. A name consists of letters, digits and underscores, and
 * begins with neither a digit nor two underscores; "number", "partition", "quota" and "status" are
 * reserved. A value is any UTF-8 text without a zero byte; an empty value is the same as no label.
 */
struct weir_label {
	const char *name;  /* such as "upstream" */
	const char *value; /* such as "search.example.net" */
	size_t length;     /* length of value in bytes; 0: value ends at its zero byte */
};

/* A set of numbers of limiters, to be written together. */
struct weir_metrics;

/* Create an empty set of metrics. End it with weir_metrics_destroy(). Returns 0 or -ENOMEM. */
WEIR_API WEIR_MUST_CHECK int weir_metrics_create(struct weir_metrics **metrics);

/*
 * Add the current numbers of a limiter, with count labels in any order; count may be 0. On failure
 * the set is unchanged.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: a label's name is invalid or given twice, or a value is NULL.
 * -EILSEQ: a value, or the name of one of the limiter's partitions or numbers, is not UTF-8.
 * -EEXIST: another limiter has exactly the same labels.
 * -ENOMEM: out of memory.
 */
WEIR_API int weir_metrics_add(struct weir_metrics *metrics, const struct weir_limiter *limiter,
			      const struct weir_label *labels, size_t count);

/*
 * Add every limiter of a registry, each with its key as the label key_name and with count further
 * labels. A failure does not keep the other limiters from being added. Returns 0, or the first
 * failure of weir_metrics_add().
 */
WEIR_API int weir_metrics_add_registry(struct weir_metrics *metrics, struct weir_registry *registry,
				       const char *key_name, const struct weir_label *labels,
				       size_t count);

/* Add the current numbers of a rate likewise: another rate must not have the same labels. */
WEIR_API int weir_metrics_add_rate(struct weir_metrics *metrics, struct weir_rate *rate,
				   const struct weir_label *labels, size_t count);

enum weir_metric_kind {
	WEIR_METRIC_GAUGE,   /* may rise and fall */
	WEIR_METRIC_COUNTER, /* only rises, from 0; its samples are called NAME_total */
};

/* A metric of the program's own, or of another library. */
struct weir_metric {
	enum weir_metric_kind kind;
	/*
	 * Letters, digits and underscores, without a digit or two underscores at the beginning, and
	 * without _total at the end.
	 */
	const char *name;
	const char
		*unit; /* the word after the name's last underscores, such as "seconds"; or NULL */
	const char *help; /* a line of UTF-8 text without quotes and backslashes */
};

/*
 * Add a value of a metric of the program's own, with count labels in any order; count may be 0.
 * Whole numbers up to 2^53 are written exactly. On failure the set is unchanged.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the metric is invalid, has the name of one of this library, or that of one in the set
 *          that differs in another field; or a label's name is invalid or given twice, or a value
 *          is NULL.
 * -EILSEQ: a label's value, or help, is not UTF-8.
 * -EEXIST: the metric has a value with exactly the same labels.
 * -ENOMEM: out of memory.
 */
WEIR_API int weir_metrics_add_value(struct weir_metrics *metrics, const struct weir_metric *metric,
				    double value, const struct weir_label *labels, size_t count);

/*
 * Write the text into size bytes at text, cut there and ended by a zero byte as by snprintf(). text
 * may be NULL if size is 0. Returns the length of the whole text in bytes, without the zero byte:
 * the text is complete if this is below size. Returns 0 if there is no such format.
 */
WEIR_API size_t weir_metrics_text(const struct weir_metrics *metrics,
				  enum weir_metrics_format format, char *text, size_t size);

/*
 * Pass the text to take() in pieces of some kilobytes, which do not end with a zero byte and are
 * valid until take() returns. If take() returns anything but 0, writing stops. Allocates nothing.
 * Returns 0, or what take() returned, or -EINVAL if there is no such format.
 */
WEIR_API int weir_metrics_write(const struct weir_metrics *metrics, enum weir_metrics_format format,
				int (*take)(void *arg, const char *piece, size_t size), void *arg);

/* The Content-Type of a response; NULL if there is no such format. Any thread. */
WEIR_API const char *weir_metrics_content_type(enum weir_metrics_format format);

/* End a set. NULL is allowed. */
WEIR_API void weir_metrics_destroy(struct weir_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
