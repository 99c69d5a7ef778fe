/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.c - limiters of every kind as metrics, in the locale of the environment.
 *
 *	weir-print-metrics openmetrics|prometheus
 *	weir-print-metrics point			the locale's decimal point
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "print-metrics: %s failed\n", what);
	exit(EXIT_FAILURE);
}

static struct weir_limiter *create(const struct weir_config *config)
{
	struct weir_config vegas;
	struct weir_limiter *limiter;

	weir_config_init(&vegas);
	vegas.limit = &weir_vegas;
	must(weir_limiter_create(config != NULL ? config : &vegas, &limiter) == 0,
	     "creating a limiter");
	return limiter;
}

/* Windows whose numbers have fractions that no double represents exactly. */
static struct weir_limiter *learned(void)
{
	struct weir_limiter *limiter = create(NULL);

	for (unsigned i = 0; i < 500; i++) {
		weir_time end = WEIR_S + i * 10 * WEIR_MS;

		weir_sample_at(limiter, end - 1234567, end, 20,
			       i % 7 == 0 ? WEIR_TIMED_OUT : WEIR_SUCCESS);
	}
	return limiter;
}

/* One call in flight and one waiting in each of two partitions, and one refused. */
static struct weir_limiter *shared(void)
{
	static const struct weir_fixed_config two = {.limit = 2};
	static const struct weir_partition partitions[] = {
		{.name = "live", .share = 0.7},
		{.name = "say \"no\"\\\n", .share = 0.3},
	};
	struct weir_limiter *limiter;
	struct weir_config config;
	struct weir_token token;
	struct weir_wait wait;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &two;
	config.limit_config_size = sizeof(two);
	config.partitions = partitions;
	config.partition_count = 2;
	config.queue = 1;
	limiter = create(&config);
	for (uint16_t i = 1; i <= 2; i++) {
		const struct weir_call call = {.partition = i};

		must(weir_try_acquire_for_at(limiter, &call, WEIR_S, &token) == 0, "acquiring");
	}
	must(weir_enqueue_at(limiter, WEIR_S, NULL, NULL, &wait) == 0, "waiting");
	must(weir_try_acquire_at(limiter, WEIR_S, &token) != 0, "being refused");
	return limiter;
}

static int print(void *arg, const char *piece, size_t size)
{
	return fwrite(piece, 1, size, arg) == size ? 0 : -1;
}

/* Metrics of the program's own. */
static const struct weir_metric queue = {
	.kind = WEIR_METRIC_GAUGE,
	.name = "app_queue_seconds",
	.unit = "seconds",
	.help = "How long the queue is, gr\u00fcndlich.",
};
static const struct weir_metric jobs = {
	.kind = WEIR_METRIC_COUNTER,
	.name = "app_jobs",
	.help = "Jobs that were done.",
};

static void print_all(enum weir_metrics_format format)
{
	static const struct weir_label labels[][2] = {
		{{.name = "name", .value = "learned"}, {.name = "host", .value = "gr\u00fcn"}},
		{{.name = "name", .value = "shared"}, {.name = "host", .value = "C:\\a \"b\"\nc"}},
		{{.name = "name", .value = ""}},
	};
	struct weir_limiter *const limiters[] = {learned(), shared(), create(NULL)};
	struct weir_metrics *metrics;

	must(weir_metrics_create(&metrics) == 0, "creating metrics");
	for (unsigned i = 0; i < 3; i++) {
		must(weir_metrics_add(metrics, limiters[i], labels[i], i < 2 ? 2 : 1) == 0,
		     "adding a limiter");
		weir_limiter_destroy(limiters[i]);
	}
	must(weir_metrics_add_value(metrics, &queue, 0.125, labels[1], 2) == 0, "adding a value");
	must(weir_metrics_add_value(metrics, &jobs, 12, labels[0], 2) == 0, "adding another");
	must(weir_metrics_write(metrics, format, print, stdout) == 0, "writing");
	weir_metrics_destroy(metrics);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	must(setlocale(LC_ALL, "") != NULL, "setting the locale");
	if (strcmp(what, "point") == 0)
		puts(localeconv()->decimal_point);
	else
		print_all(strcmp(what, "prometheus") == 0 ? WEIR_PROMETHEUS : WEIR_OPENMETRICS);
	return EXIT_SUCCESS;
}
