/*
 * weir/metrics.h - limiters as the text that Prometheus and its kin scrape.
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
 * The format wants all samples of one metric to stand together, those of all limiters. So
 * limiters are added first, then written at once: in the order they were added, with the
 * numbers that they had then. What is added is copied, labels too: a limiter may
 * go as soon as it has been added. A scrape makes a set of its own, and ends it.
 *
 * Thread safety. Limiters may be busy meanwhile. A set is one thread's at a time; but
 * writing changes nothing, so several may write one set.
 *
 * Metrics. All begin with weir_; counters end with _total. Of each limiter, limit, burst,
 * inflight, waiting, passing, shadow, rtt_seconds, limit_number (by label number),
 * calls_total (by label status: success, ignored, dropped, timeout, cancelled, failed),
 * admitted_total, rejected_total, shed_total, abandoned_total, bypassed_total,
 * would_reject_total, detached_total, double_releases_total, windows_total. Of each partition
 * (label partition), partition_share_ratio and partition_ guarantee, cap, inflight,
 * waiting, kept, delayed, admitted_total, rejected_total, shed_total, abandoned_total,
 * calls_total (status: success, overload, other). They mean what their fields mean in
 * struct weir_snapshot and struct weir_partition_snapshot. rtt_seconds is NaN while there
 * is none. Of each rate, if there are any, rate_ waiting, percent, admitted_total, refused_total,
 * abandoned_total, throttled_total; of each of its quotas (label quota: 0, 1, ...), quota_ units,
 * available, debt, taken_total. They mean what they mean in struct weir_rate_snapshot.
 */
#ifndef WEIR_METRICS_H
#define WEIR_METRICS_H

#include <weir/rate.h>
#include <weir/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats of metrics. */
enum weir_metrics_format {
	WEIR_OPENMETRICS, /* OpenMetrics 1.0: with units, and an end that shows what was cut */
	WEIR_PROMETHEUS,  /* Prometheus text 0.0.4: for scrapers that do not ask for OpenMetrics */
};

/*
 * Tells a limiter from the others. A name is letters, digits and underscores, and begins
 * with no digit and no two underscores; "number", "partition", "quota" and "status" are taken. A
 * value is any UTF-8 text without a zero byte; an empty one is as good as no label.
 */
struct weir_label {
	const char *name;  /* such as "upstream" */
	const char *value; /* such as "search.example.net" */
	size_t length;     /* of value, in bytes; 0: up to its zero byte */
};

/* Limiters' numbers, to be written together. */
struct weir_metrics;

/* Make an empty set of metrics. 0, -ENOMEM. End with weir_metrics_destroy(). */
WEIR_API WEIR_MUST_CHECK int weir_metrics_create(struct weir_metrics **metrics);

/*
 * Add a limiter's numbers of this moment, under count labels in any order, which may
 * be none. On failure the set is as it was. 0; -EINVAL: a label's name is not one, or is
 * given twice, or a value is NULL; -EILSEQ: a value, or
 * a name of the limiter's partitions or numbers, is not UTF-8; -EEXIST: another limiter
 * has the very same labels; -ENOMEM.
 */
WEIR_API int weir_metrics_add(struct weir_metrics *metrics, const struct weir_limiter *limiter,
			      const struct weir_label *labels, size_t count);

/*
 * Add every limiter of a registry: under its key, as the label key_name, and count further
 * labels. 0, or the first failure of weir_metrics_add(); all others are added all the same.
 */
WEIR_API int weir_metrics_add_registry(struct weir_metrics *metrics, struct weir_registry *registry,
				       const char *key_name, const struct weir_label *labels,
				       size_t count);

/* Add a rate's numbers of this moment, likewise: another rate must not have the same labels. */
WEIR_API int weir_metrics_add_rate(struct weir_metrics *metrics, struct weir_rate *rate,
				   const struct weir_label *labels, size_t count);

/*
 * Write the text into size bytes of the caller's, cut there and ended by a zero byte as by
 * snprintf(). text may be NULL if size is 0. The number of bytes of the whole text, without that
 * zero byte, which is complete if this is below size; or 0: there is no such format.
 */
WEIR_API size_t weir_metrics_text(const struct weir_metrics *metrics,
				  enum weir_metrics_format format, char *text, size_t size);

/*
 * Hand the text over in pieces of some kilobytes, which are not ended by a zero byte and
 * live until take() returns. 0; -EINVAL: there is no such format; or what take() answered
 * when that was not 0, which ends it. Allocates nothing.
 */
WEIR_API int weir_metrics_write(const struct weir_metrics *metrics, enum weir_metrics_format format,
				int (*take)(void *arg, const char *piece, size_t size), void *arg);

/* What a response's Content-Type should say; NULL if there is no such format. Any thread. */
WEIR_API const char *weir_metrics_content_type(enum weir_metrics_format format);

/* End a set. NULL is allowed. */
WEIR_API void weir_metrics_destroy(struct weir_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
