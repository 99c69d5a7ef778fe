/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics: what is written, and what is refused. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

/* Every metric, under the name that the scraper sees. */
static const char *const names[] = {
	"weir_limit",
	"weir_burst",
	"weir_inflight",
	"weir_waiting",
	"weir_passing",
	"weir_shadow",
	"weir_rtt_seconds",
	"weir_sample_every",
	"weir_limit_number",
	"weir_calls_total",
	"weir_admitted_total",
	"weir_rejected_total",
	"weir_shed_total",
	"weir_abandoned_total",
	"weir_bypassed_total",
	"weir_would_reject_total",
	"weir_detached_total",
	"weir_double_releases_total",
	"weir_windows_total",
	"weir_partition_share_ratio",
	"weir_partition_guarantee",
	"weir_partition_cap",
	"weir_partition_inflight",
	"weir_partition_waiting",
	"weir_partition_reserved",
	"weir_partition_delayed",
	"weir_partition_calls_total",
	"weir_partition_admitted_total",
	"weir_partition_rejected_total",
	"weir_partition_shed_total",
	"weir_partition_abandoned_total",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

static struct weir_limiter *create(const struct weir_config *config)
{
	struct weir_config vegas;
	struct weir_limiter *limiter;

	weir_config_init(&vegas);
	vegas.limit = &weir_vegas;
	cr_assert_eq(weir_limiter_create(config != NULL ? config : &vegas, &limiter), 0);
	return limiter;
}

static struct weir_limiter *fixed(uint32_t limit, const struct weir_partition *partitions,
				  uint32_t count)
{
	const struct weir_fixed_config fixed_config = {.limit = limit};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed_config;
	config.limit_config_size = sizeof(fixed_config);
	config.partitions = partitions;
	config.partition_count = count;
	config.queue = 4;
	config.shed = 1;
	return create(&config);
}

/* A call of each outcome in the partition, and some more: no two numbers are the same. */
static struct weir_limiter *busy(const struct weir_partition *partitions, uint32_t count)
{
	struct weir_limiter *l = fixed(100, partitions, count);
	const enum weir_outcome outcomes[] = {WEIR_SUCCESS,   WEIR_IGNORE,    WEIR_DROPPED,
					      WEIR_TIMED_OUT, WEIR_CANCELLED, WEIR_FAILED};
	const struct weir_call call = {.partition = (uint16_t)count};
	struct weir_token token;

	for (unsigned k = 0; k < 6; k++) {
		for (unsigned i = 0; i < 10 + k; i++) {
			cr_assert_eq(weir_try_acquire_for_at(l, &call, WEIR_S, &token), 0);
			weir_release_at(l, WEIR_S + 5 * WEIR_MS, &token, outcomes[k]);
		}
	}
	weir_release_at(l, WEIR_S, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_try_acquire_at(l, WEIR_S, &token), 0);
	cr_assert_eq(weir_detach(l, &token), 0);
	return l;
}

static struct weir_metrics *set(void)
{
	struct weir_metrics *metrics;

	cr_assert_eq(weir_metrics_create(&metrics), 0);
	return metrics;
}

static char *text_of(const struct weir_metrics *metrics, enum weir_metrics_format format)
{
	size_t length = weir_metrics_text(metrics, format, NULL, 0);
	char *text = malloc(length + 1);

	cr_assert_not_null(text);
	cr_assert_eq(weir_metrics_text(metrics, format, text, length + 1), length);
	cr_assert_eq(strlen(text), length);
	return text;
}

static void cr_has(const char *text, const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	cr_assert_not_null(strstr(text, whole), "no \"%s\" in:\n%s", line, text);
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

/* The longest of the names above that this line belongs to. */
static const char *name_of(const char *line)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strncmp(line, names[i], strlen(names[i])) == 0 &&
		    strchr("{ ", line[strlen(names[i])]) != NULL)
			return names[i];
	return NULL;
}

Test(metrics, every_metric_has_help_and_type_once_and_its_samples_stand_together)
{
	static const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	struct weir_limiter *const limiters[] = {busy(partitions, 1), busy(partitions, 1),
						 create(NULL)};
	const struct weir_label a = {.name = "name", .value = "a"};
	const struct weir_label b = {.name = "name", .value = "b"};
	struct weir_metrics *metrics = set();
	const char *present = NULL;
	unsigned changes = 0;
	char *text, *line, *rest, help[128];

	cr_assert_eq(weir_metrics_add(metrics, limiters[0], &a, 1), 0);
	cr_assert_eq(weir_metrics_add(metrics, limiters[1], &b, 1), 0);
	for (unsigned i = 0; i < 40; i++)
		weir_sample_at(limiters[2], i * WEIR_S, i * WEIR_S + WEIR_MS, 20, WEIR_SUCCESS);
	cr_assert_eq(weir_metrics_add(metrics, limiters[2], NULL, 0), 0);
	text = text_of(metrics, WEIR_PROMETHEUS);
	for (size_t i = 0; i < NAMES; i++) {
		snprintf(help, sizeof(help), "# HELP %s ", names[i]);
		cr_assert_eq(count_of(text, help), 1, "%s", help);
		snprintf(help, sizeof(help), "# TYPE %s %s\n", names[i],
			 strstr(names[i], "_total") != NULL ? "counter" : "gauge");
		cr_assert_eq(count_of(text, help), 1, "%s", help);
	}
	cr_assert_eq(count_of(text, "# HELP"), NAMES);
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		if (line[0] == '#')
			continue;
		cr_assert_not_null(name_of(line), "what is %s?", line);
		changes += name_of(line) != present;
		present = name_of(line);
	}
	cr_assert_eq(changes, NAMES);
	free(text);
	for (unsigned i = 0; i < 3; i++)
		weir_limiter_destroy(limiters[i]);
	weir_metrics_destroy(metrics);
}

Test(metrics, the_numbers_are_those_of_the_snapshots)
{
	static const struct weir_partition partitions[] = {
		{.name = "live", .share = 0.5, .max = 77, .reject_delay = WEIR_MS}};
	const struct weir_label a = {.name = "name", .value = "a"};
	struct weir_limiter *l = busy(partitions, 1);
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_gt(weir_delay_begin(l, 1), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, &a, 1), 0);
	weir_limiter_destroy(l); /* what was added is copied */
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_limit{name=\"a\"} 100");
	cr_has(text, "weir_inflight{name=\"a\"} 1");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"success\"} 10");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"ignored\"} 11");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"dropped\"} 12");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"timeout\"} 13");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"cancelled\"} 14");
	cr_has(text, "weir_calls_total{name=\"a\",status=\"failed\"} 15");
	cr_has(text, "weir_admitted_total{name=\"a\"} 76");
	cr_has(text, "weir_detached_total{name=\"a\"} 1");
	cr_has(text, "weir_double_releases_total{name=\"a\"} 1");
	cr_has(text, "weir_partition_share_ratio{name=\"a\",partition=\"live\"} 0.5");
	cr_has(text, "weir_partition_guarantee{name=\"a\",partition=\"live\"} 50");
	cr_has(text, "weir_partition_cap{name=\"a\",partition=\"live\"} 77");
	cr_has(text, "weir_partition_inflight{name=\"a\",partition=\"unknown\"} 1");
	cr_has(text, "weir_partition_delayed{name=\"a\",partition=\"live\"} 1");
	cr_has(text,
	       "weir_partition_calls_total{name=\"a\",partition=\"live\",status=\"success\"} 10");
	cr_has(text,
	       "weir_partition_calls_total{name=\"a\",partition=\"live\",status=\"overload\"} 25");
	cr_has(text,
	       "weir_partition_calls_total{name=\"a\",partition=\"live\",status=\"other\"} 40");
	cr_has(text, "weir_partition_admitted_total{name=\"a\",partition=\"live\"} 75");
	free(text);
	weir_metrics_destroy(metrics);
}

Test(metrics, refusals_waiters_and_what_is_let_through)
{
	const struct weir_call through = {.flags = WEIR_CALL_BYPASS};
	struct weir_limiter *l = fixed(1, NULL, 0);
	struct weir_metrics *metrics = set();
	struct weir_wait wait[4], gone;
	struct weir_token token;
	char *text;

	cr_assert_eq(weir_try_acquire_at(l, 1, &token), 0);
	cr_assert_eq(weir_enqueue_at(l, 1, NULL, NULL, &gone), 0);
	cr_assert_eq(weir_cancel_at(l, 2, &gone, &token), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(weir_enqueue_at(l, 1, NULL, NULL, &wait[i]), 0);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_neq(weir_try_acquire_at(l, 1, &token), 0);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(weir_try_acquire_for_at(l, &through, 1, &token), 0);
	weir_release_at(l, 2, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_waiting 3");
	cr_has(text, "weir_abandoned_total 1");
	cr_has(text, "weir_rejected_total 5");
	cr_has(text, "weir_shed_total 0");
	cr_has(text, "weir_bypassed_total 2");
	cr_has(text, "weir_passing 1");
	cr_has(text, "weir_shadow 0");
	cr_has(text, "weir_rtt_seconds NaN");
	cr_assert_null(strstr(text, "partition=\""));
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, the_last_window_and_the_limits_internal_numbers)
{
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	char *text;

	for (unsigned i = 0; i < 500; i++)
		weir_sample_at(l, WEIR_S + i * 10 * WEIR_MS, WEIR_S + i * 10 * WEIR_MS + 2500001,
			       20, WEIR_SUCCESS);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_rtt_seconds 0.002500001");
	cr_has(text, "weir_limit_number{number=\"rtt_noload\"} 2500001");
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

/* NaN, infinity, large and small numbers. */
static const char *const odd_names[] = {"a", "b", "c", "d", "e", "f", NULL};

static double odd_init(void *state, const void *config, double random)
{
	(void)state, (void)config, (void)random;
	return 5;
}

static double odd_update(void *state, const struct weir_window *w)
{
	(void)state, (void)w;
	return 5;
}

static void odd_observe(const void *state, double *values)
{
	const double odd[] = {0.0 / 0.0, 1 / 0.0, -1 / 0.0, 0.1, 1.0 / 3, 5e-324};

	(void)state;
	memcpy(values, odd, sizeof(odd));
}

static const struct weir_limit_ops odd = {
	.size = sizeof(struct weir_limit_ops),
	.name = "odd",
	.about = "Shows odd numbers.",
	.state_size = 8,
	.init = odd_init,
	.update = odd_update,
	.numbers = odd_names,
	.observe = odd_observe,
};

Test(metrics, special_numbers_are_written_as_scrapers_read_them)
{
	struct weir_metrics *metrics = set();
	struct weir_limiter *l;
	struct weir_config config;
	char *text;

	weir_config_init(&config);
	config.limit = &odd;
	config.windowing = WEIR_WINDOW_SAMPLE;
	l = create(&config);
	weir_sample_at(l, 1, 2, 1, WEIR_SUCCESS);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_limit_number{number=\"a\"} NaN");
	cr_has(text, "weir_limit_number{number=\"b\"} +Inf");
	cr_has(text, "weir_limit_number{number=\"c\"} -Inf");
	cr_has(text, "weir_limit_number{number=\"d\"} 0.1");
	cr_has(text, "weir_limit_number{number=\"e\"} 0.3333333333333333");
	cr_has(text, "weir_limit_number{number=\"f\"} 4.94065645841247e-324");
	cr_has(text, "weir_rtt_seconds 1e-09");
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, the_two_formats_differ_in_names_of_counters_units_and_end)
{
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	char *open, *plain;

	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	open = text_of(metrics, WEIR_OPENMETRICS);
	plain = text_of(metrics, WEIR_PROMETHEUS);
	cr_has(open, "# TYPE weir_calls counter");
	cr_has(plain, "# TYPE weir_calls_total counter");
	cr_has(open, "# UNIT weir_rtt_seconds seconds");
	cr_has(open, "# UNIT weir_partition_share_ratio ratio");
	cr_assert_null(strstr(plain, "# UNIT"));
	cr_assert_str_eq(open + strlen(open) - 7, "\n# EOF\n");
	cr_assert_null(strstr(plain, "# EOF"));
	cr_has(open, "weir_admitted_total 0");
	cr_has(plain, "weir_admitted_total 0");
	cr_assert_str_eq(weir_metrics_content_type(WEIR_OPENMETRICS),
			 "application/openmetrics-text; version=1.0.0; charset=utf-8");
	cr_assert_str_eq(weir_metrics_content_type(WEIR_PROMETHEUS),
			 "text/plain; version=0.0.4; charset=utf-8");
	free(open);
	free(plain);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

static int never(void *arg, const char *piece, size_t size)
{
	(void)arg, (void)piece, (void)size;
	cr_assert(false);
	return 0;
}

Test(metrics, an_unknown_format_is_refused)
{
	const enum weir_metrics_format none = (enum weir_metrics_format)7;
	struct weir_metrics *metrics = set();
	char text[8] = "old";

	cr_assert_eq(weir_metrics_text(metrics, none, text, sizeof(text)), 0);
	cr_assert_str_eq(text, "");
	cr_assert_eq(weir_metrics_write(metrics, none, never, NULL), -EINVAL);
	cr_assert_null(weir_metrics_content_type(none));
	weir_metrics_destroy(metrics);
}

Test(metrics, labels_are_sorted_escaped_and_cut_at_their_length)
{
	const struct weir_label labels[] = {
		{.name = "z_9", .value = "quote \" backslash \\ newline \n end"},
		{.name = "Host", .value = "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\t"},
		{.name = "key", .value = "checkout/and more", .length = 8},
		{.name = "_empty", .value = ""},
	};
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_eq(weir_metrics_add(metrics, l, labels, 4), 0);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_limit{Host=\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\t\",key=\"checkout\","
		     "z_9=\"quote \\\" backslash \\\\ newline \\n end\"} 20");
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, bad_label_names_are_refused)
{
	static const char *const bad[] = {"",    "9a",     "a-b",       "a:b",    "a b", "\xc3\xbc",
					  "__a", "number", "partition", "status", "a\n", NULL};
	static const char *const good[] = {"a", "_a", "A9_", "name", "le", "a__b"};
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct weir_label label = {.name = bad[i], .value = "x"};

		cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), -EINVAL, "%s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const struct weir_label label = {.name = good[i], .value = "x"};

		cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), 0, "%s", good[i]);
	}
	cr_assert_eq(weir_metrics_add(metrics, l, &(struct weir_label){.name = "a"}, 1), -EINVAL);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, values_that_are_not_utf8_are_refused)
{
	static const struct weir_label bad[] = {
		{.name = "a", .value = "\x80"},
		{.name = "a", .value = "x\xc3"},
		{.name = "a", .value = "\xc3x"},
		{.name = "a", .value = "\xe2\x82x"},
		{.name = "a", .value = "\xc3\xbc", .length = 1},
		{.name = "a", .value = "\xc0\x80"},
		{.name = "a", .value = "\xc1\xbf"},
		{.name = "a", .value = "\xe0\x9f\xbf"},
		{.name = "a", .value = "\xed\xa0\x80"},
		{.name = "a", .value = "\xf0\x8f\xbf\xbf"},
		{.name = "a", .value = "\xf4\x90\x80\x80"},
		{.name = "a", .value = "\xff"},
		{.name = "a", .value = "x\0y", .length = 3},
	};
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(weir_metrics_add(metrics, l, &bad[i], 1), -EILSEQ, "%zu", i);
	cr_assert_eq(weir_metrics_text(metrics, WEIR_OPENMETRICS, NULL, 0) > 0, 1);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, a_partition_name_that_is_not_utf8_is_refused)
{
	static const struct weir_partition partitions[] = {{.name = "good"}, {.name = "\xff"}};
	struct weir_limiter *l = fixed(1, partitions, 2);
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), -EILSEQ);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_assert_null(strstr(text, "\nweir"));
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, the_same_labels_twice_are_refused)
{
	static const struct weir_label ab[] = {{.name = "a", .value = "1"},
					       {.name = "b", .value = "2"}};
	static const struct weir_label ba[] = {{.name = "b", .value = "2"},
					       {.name = "c", .value = ""},
					       {.name = "a", .value = "1"}};
	static const struct weir_label aa[] = {{.name = "a", .value = "1"},
					       {.name = "a", .value = "2"}};
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_eq(weir_metrics_add(metrics, l, ab, 2), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, ba, 3), -EEXIST);
	cr_assert_eq(weir_metrics_add(metrics, l, aa, 2), -EINVAL);
	cr_assert_eq(weir_metrics_add(metrics, l, ab, 1), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), -EEXIST);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_assert_eq(count_of(text, "\nweir_limit{"), 2);
	cr_has(text, "weir_limit 20");
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, a_buffer_of_every_size)
{
	static const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	struct weir_limiter *l = busy(partitions, 1);
	struct weir_metrics *metrics = set();
	char *whole, *text;
	size_t length;

	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	whole = text_of(metrics, WEIR_OPENMETRICS);
	length = strlen(whole);
	cr_assert_gt(length, 4096, "more than one piece");
	text = malloc(length + 2);
	cr_assert_not_null(text);
	for (size_t size = 0; size <= length + 1; size++) {
		memset(text, 'x', length + 2);
		cr_assert_eq(weir_metrics_text(metrics, WEIR_OPENMETRICS, text, size), length);
		cr_assert_eq(text[size], 'x');
		if (size == 0)
			continue;
		cr_assert_eq(text[size - 1], '\0');
		cr_assert_eq(strncmp(text, whole, size - 1), 0);
	}
	free(text);
	free(whole);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

struct pieces {
	char *at;
	unsigned left;
};

static int take(void *arg, const char *piece, size_t size)
{
	struct pieces *pieces = arg;

	cr_assert(size > 0 && size <= 4096);
	cr_assert_gt(pieces->left, 0, "take() ended it");
	if (--pieces->left == 0)
		return -EPIPE;
	memcpy(pieces->at, piece, size);
	pieces->at += size;
	return 0;
}

Test(metrics, pieces_add_up_and_end_on_request)
{
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	struct pieces pieces;
	char *whole, *text, name[8];

	for (unsigned i = 0; i < 100; i++) {
		const struct weir_label label = {.name = "name", .value = name};

		snprintf(name, sizeof(name), "%u", i);
		cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), 0);
	}
	whole = text_of(metrics, WEIR_OPENMETRICS);
	text = calloc(1, strlen(whole) + 1);
	cr_assert_not_null(text);
	pieces = (struct pieces){.at = text, .left = 10000};
	cr_assert_eq(weir_metrics_write(metrics, WEIR_OPENMETRICS, take, &pieces), 0);
	cr_assert_str_eq(text, whole);
	for (unsigned left = 1; left < 5; left++) {
		pieces = (struct pieces){.at = text, .left = left};
		cr_assert_eq(weir_metrics_write(metrics, WEIR_OPENMETRICS, take, &pieces), -EPIPE);
	}
	free(whole);
	free(text);
	weir_metrics_destroy(metrics);
	weir_limiter_destroy(l);
}

Test(metrics, a_registry_under_its_keys)
{
	const struct weir_label labels[] = {{.name = "zone", .value = "b"}};
	static const char *const keys[] = {"a.example", "", "b\xff"};
	struct weir_limiter *limiter;
	struct weir_registry *registry;
	struct weir_metrics *metrics;
	static char text[1 << 16];

	cr_assert_eq(weir_registry_create(NULL, &registry), 0);
	cr_assert_eq(weir_metrics_create(&metrics), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_registry_get(registry, keys[i], strlen(keys[i]), &limiter), 0);
		weir_registry_put(registry, limiter);
	}
	cr_assert_eq(weir_metrics_add_registry(metrics, registry, "host", labels, 1), -EILSEQ);
	cr_assert_lt(weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text)),
		     sizeof(text));
	cr_assert_not_null(strstr(text, "\nweir_limit{host=\"a.example\",zone=\"b\"} 8\n"));
	cr_assert_not_null(strstr(text, "\nweir_limit{zone=\"b\"} 8\n"), "the empty key");
	cr_assert_eq(weir_metrics_add_registry(metrics, registry, "0", NULL, 0), -EINVAL);
	weir_metrics_destroy(metrics);
	cr_assert_eq(weir_registry_destroy(registry), 0, "none is left pinned");
}

Test(metrics, rates_have_their_own_metrics)
{
	static const struct weir_label label = {.name = "name", .value = "shop"};
	static const struct weir_label taken = {.name = "quota", .value = "7"};
	struct weir_metrics *metrics = set();
	struct weir_limiter *l = fixed(3, NULL, 0);
	struct weir_rate_config config;
	struct weir_rate *rate;
	char *text;

	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = 1, .period = 3600 * WEIR_S, .burst = 3};
	config.quotas[1] = (struct weir_quota){.flags = WEIR_QUOTA_UNLIMITED};
	config.quota_count = 2;
	cr_assert_eq(weir_rate_create(&config, &rate), 0);
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, 5), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), 0);
	cr_assert_eq(weir_metrics_add_rate(metrics, rate, &label, 1), 0);
	cr_assert_eq(weir_metrics_add_rate(metrics, rate, &label, 1), -EEXIST);
	cr_assert_eq(weir_metrics_add_rate(metrics, rate, &taken, 1), -EINVAL);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_has(text, "weir_limit{name=\"shop\"} 3");
	cr_has(text, "weir_rate_refused_total{name=\"shop\"} 1");
	cr_has(text, "weir_rate_percent{name=\"shop\"} 100");
	cr_has(text, "weir_quota_debt{name=\"shop\",quota=\"0\"} 5");
	cr_has(text, "weir_quota_available{name=\"shop\",quota=\"0\"} 0");
	cr_has(text, "weir_quota_units{name=\"shop\",quota=\"0\"} 1");
	cr_has(text, "weir_quota_taken_total{name=\"shop\",quota=\"1\"} 0");
	cr_assert_eq(count_of(text, "# TYPE weir_quota_debt "), 1);
	free(text);
	weir_metrics_destroy(metrics);
	weir_rate_destroy(rate);
	weir_limiter_destroy(l);
}

Test(metrics, a_rate_and_a_limiter_may_have_the_same_labels)
{
	struct weir_metrics *metrics = set();
	struct weir_limiter *l = create(NULL);
	struct weir_rate_config config;
	struct weir_rate *rate;

	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = 1, .period = WEIR_S};
	config.quota_count = 1;
	cr_assert_eq(weir_rate_create(&config, &rate), 0);
	cr_assert_eq(weir_metrics_add_rate(metrics, rate, NULL, 0), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	cr_assert_eq(weir_metrics_add_rate(metrics, rate, NULL, 0), -EEXIST);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), -EEXIST);
	weir_metrics_destroy(metrics);
	weir_rate_destroy(rate);
	weir_limiter_destroy(l);
}

/* A set whose one limiter has a label of that length, and the size of its text. */
static struct weir_metrics *set_of_length(struct weir_limiter *l, size_t length, size_t *size)
{
	char value[4096];
	const struct weir_label label = {.name = "a", .value = value, .length = length};
	struct weir_metrics *metrics = set();

	memset(value, 'x', sizeof(value));
	cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), 0);
	*size = weir_metrics_text(metrics, WEIR_PROMETHEUS, NULL, 0);
	return metrics;
}

/* take() asserts that it gets no empty piece, not even the last. */
Test(metrics, a_text_of_whole_pieces_ends_with_the_last)
{
	struct weir_limiter *l = create(NULL);
	size_t length = 1, size = 1;

	for (; length < 4096 && size % 4096 != 0; length++) {
		struct weir_metrics *metrics = set_of_length(l, length, &size);
		char *text = malloc(size);
		struct pieces pieces = {.at = text, .left = UINT32_MAX};

		cr_assert_not_null(text);
		if (size % 4096 == 0)
			cr_assert_eq(weir_metrics_write(metrics, WEIR_PROMETHEUS, take, &pieces),
				     0);
		free(text);
		weir_metrics_destroy(metrics);
	}
	cr_assert_lt(length, 4096, "no length makes whole pieces");
	weir_limiter_destroy(l);
}

Test(metrics, an_empty_set)
{
	struct weir_metrics *metrics = set();
	char *text = text_of(metrics, WEIR_OPENMETRICS);

	cr_assert_null(strstr(text, "\nweir"));
	cr_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
	free(text);
	weir_metrics_destroy(metrics);
	weir_metrics_destroy(NULL);
}

/* How many allocations still succeed. The linker redirects this program's allocations here. */
static unsigned allocations_left = UINT32_MAX;

static bool runs_out(void)
{
	return allocations_left-- == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));
void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));

void *__wrap_malloc(size_t size)
{
	return runs_out() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return runs_out() ? NULL : __real_calloc(count, size);
}

void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
	return runs_out() ? NULL : __real_tsearch(key, root, compare);
}

static int create_and_add(const struct weir_limiter *l, unsigned allocations)
{
	const struct weir_label label = {.name = "name", .value = "a"};
	struct weir_metrics *metrics;
	int r;

	allocations_left = allocations;
	r = weir_metrics_create(&metrics);
	if (r == 0)
		r = weir_metrics_add(metrics, l, &label, 1);
	allocations_left = UINT32_MAX;
	if (r != 0 && metrics != NULL) /* unchanged: the labels are still free */
		cr_assert_eq(weir_metrics_add(metrics, l, &label, 1), 0);
	weir_metrics_destroy(metrics);
	return r;
}

Test(metrics, running_out_of_memory_anywhere_is_harmless)
{
	static const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	struct weir_limiter *l = busy(partitions, 1);
	unsigned n = 0;

	while (create_and_add(l, n) == -ENOMEM)
		n++;
	cr_assert_eq(create_and_add(l, n), 0);
	cr_assert_eq(n, 6, "%u", n); /* the set; a limiter, its labels, two partitions', the tree */
	weir_limiter_destroy(l);
}

/* A metric of the program's own, called app_NAME. */
static const struct weir_metric queue_seconds = {
	.kind = WEIR_METRIC_GAUGE,
	.name = "app_queue_seconds",
	.unit = "seconds",
	.help = "How long the queue is.",
};
static const struct weir_metric jobs = {
	.kind = WEIR_METRIC_COUNTER,
	.name = "app_jobs",
	.help = "Jobs that were done, gr\xc3\xbcndlich.",
};

Test(metrics, metrics_of_the_program_follow_those_of_the_library)
{
	const struct weir_label zone = {.name = "zone", .value = "\"a\""};
	struct weir_limiter *l = create(NULL);
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_eq(weir_metrics_add_value(metrics, &jobs, 9007199254740992, &zone, 1), 0);
	cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, 0.25, NULL, 0), 0);
	cr_assert_eq(weir_metrics_add_value(metrics, &jobs, 7, NULL, 0), 0);
	cr_assert_eq(weir_metrics_add(metrics, l, NULL, 0), 0);
	text = text_of(metrics, WEIR_OPENMETRICS);
	cr_assert_not_null(strstr(text, "# HELP app_jobs Jobs that were done, gr\xc3\xbcndlich.\n"
					"# TYPE app_jobs counter\n"
					"app_jobs_total{zone=\"\\\"a\\\"\"} 9007199254740992\n"
					"app_jobs_total 7\n"
					"# HELP app_queue_seconds How long the queue is.\n"
					"# TYPE app_queue_seconds gauge\n"
					"# UNIT app_queue_seconds seconds\n"
					"app_queue_seconds 0.25\n"
					"# EOF\n"));
	free(text);
	text = text_of(metrics, WEIR_PROMETHEUS);
	cr_has(text, "# TYPE app_jobs_total counter");
	cr_assert_null(strstr(text, "# UNIT"));
	free(text);
	weir_limiter_destroy(l);
	weir_metrics_destroy(metrics);
}

Test(metrics, what_differs_from_a_metric_of_that_name_is_refused)
{
	const struct weir_label zone = {.name = "zone", .value = "a"};
	const struct weir_label twice[] = {zone, zone};
	struct weir_metric other = queue_seconds;
	struct weir_metrics *metrics = set();
	char *text;

	cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, 1, &zone, 1), 0);
	cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, 2, &zone, 1), -EEXIST);
	cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, 2, twice, 2), -EINVAL);
	cr_assert_eq(weir_metrics_add_value(metrics, &jobs, 2, twice, 2), -EINVAL);
	other.unit = NULL;
	cr_assert_eq(weir_metrics_add_value(metrics, &other, 2, NULL, 0), -EINVAL);
	other = queue_seconds;
	other.help = "Other.";
	cr_assert_eq(weir_metrics_add_value(metrics, &other, 2, NULL, 0), -EINVAL);
	other = queue_seconds;
	other.kind = WEIR_METRIC_COUNTER;
	cr_assert_eq(weir_metrics_add_value(metrics, &other, 2, NULL, 0), -EINVAL);
	cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, 2, NULL, 0), 0);
	text = text_of(metrics, WEIR_PROMETHEUS);
	cr_assert_eq(count_of(text, "app_queue_seconds{zone=\"a\"} 1\napp_queue_seconds 2\n"), 1);
	cr_assert_eq(count_of(text, "app_"), 4);
	free(text);
	weir_metrics_destroy(metrics);
}

Test(metrics, bad_metrics_of_the_program_are_refused)
{
	static const struct weir_metric bad[] = {
		{WEIR_METRIC_GAUGE, NULL, NULL, "Help."},
		{WEIR_METRIC_GAUGE, "", NULL, "Help."},
		{WEIR_METRIC_GAUGE, "9a", NULL, "Help."},
		{WEIR_METRIC_GAUGE, "a-b", NULL, "Help."},
		{WEIR_METRIC_GAUGE, "weir_limit", NULL, "Help."},
		{WEIR_METRIC_COUNTER, "a_total", NULL, "Help."},
		{WEIR_METRIC_GAUGE, "a_seconds", "second", "Help."},
		{WEIR_METRIC_GAUGE, "aseconds", "seconds", "Help."},
		{WEIR_METRIC_GAUGE, "seconds", "seconds", "Help."},
		{WEIR_METRIC_GAUGE, "a", "", "Help."},
		{WEIR_METRIC_GAUGE, "a", NULL, NULL},
		{WEIR_METRIC_GAUGE, "a", NULL, "Two\nlines."},
		{WEIR_METRIC_GAUGE, "a", NULL, "Say \"a\"."},
		{WEIR_METRIC_GAUGE, "a", NULL, "Back\\slash."},
		{(enum weir_metric_kind)2, "a", NULL, "Help."},
	};
	const struct weir_metric odd_help = {WEIR_METRIC_GAUGE, "a", NULL, "\xff"};
	const struct weir_metric good = {WEIR_METRIC_GAUGE, "a", NULL, ""};
	const struct weir_label odd_value = {.name = "zone", .value = "\xff"};
	struct weir_metrics *metrics = set();
	char *text;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(weir_metrics_add_value(metrics, &bad[i], 1, NULL, 0), -EINVAL, "%zu",
			     i);
	cr_assert_eq(weir_metrics_add_value(metrics, &odd_help, 1, NULL, 0), -EILSEQ);
	cr_assert_eq(weir_metrics_add_value(metrics, &good, 1, &odd_value, 1), -EILSEQ);
	text = text_of(metrics, WEIR_PROMETHEUS);
	cr_assert_eq(count_of(text, "# HELP"), NAMES);
	free(text);
	cr_assert_eq(weir_metrics_add_value(metrics, &good, 1, NULL, 0), 0);
	weir_metrics_destroy(metrics);
}

/* Pieces that may still be taken. */
static int take_some(void *arg, const char *piece, size_t size)
{
	unsigned *left = arg;

	(void)piece, (void)size;
	return (*left)-- > 0 ? 0 : -7;
}

Test(metrics, writing_stops_where_a_piece_of_the_programs_own_is_not_taken)
{
	struct weir_metrics *metrics = set();
	unsigned pieces = 100, left;

	for (unsigned i = 0; i < 500; i++) {
		char text[16];
		const struct weir_label label = {.name = "job", .value = text};

		snprintf(text, sizeof(text), "%u", i);
		cr_assert_eq(weir_metrics_add_value(metrics, &jobs, i, &label, 1), 0);
		cr_assert_eq(weir_metrics_add_value(metrics, &queue_seconds, i, &label, 1), 0);
	}
	left = pieces;
	cr_assert_eq(weir_metrics_write(metrics, WEIR_OPENMETRICS, take_some, &left), 0);
	pieces -= left;
	cr_assert_gt(pieces, 8);
	for (unsigned i = 0; i < pieces; i++) {
		left = i;
		cr_assert_eq(weir_metrics_write(metrics, WEIR_OPENMETRICS, take_some, &left), -7);
		cr_assert_eq(left, UINT32_MAX); /* no further piece was offered */
	}
	weir_metrics_destroy(metrics);
}
