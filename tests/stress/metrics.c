/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads scrape limiters that are in use, each with a set of its own, and all with one shared set.
 *
 *   stress-metrics [SCRAPES [THREADS]]
 *
 * Checked: every text is complete; no counter decreases from one scrape to the next; a set that
 * several threads write at once gives each the same text.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <weir/weir.h>

#include "check.h"

#define LIMITERS     3
#define TEXT_MAX     65536
#define COUNTERS_MAX 512

static struct weir_limiter *limiters[LIMITERS];
static struct weir_metrics *shared;
static char expected[TEXT_MAX];
static atomic_bool done;

struct scraper {
	_Alignas(128) uint64_t scrapes;
	uint64_t counters[COUNTERS_MAX];
	char text[TEXT_MAX];
};

static void *work(void *arg)
{
	static const enum weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_IGNORE, WEIR_DROPPED,
						     WEIR_FAILED};
	uint64_t seed = *(uint64_t *)arg;
	struct weir_token token;

	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		struct weir_limiter *l = limiters[draw(&seed) % LIMITERS];
		const struct weir_call call = {.partition = (uint16_t)(draw(&seed) % 2)};

		if (weir_try_acquire_for(l, &call, &token) == 0)
			weir_release(l, &token, outcomes[draw(&seed) % 4]);
	}
	return NULL;
}

static void add_all(struct weir_metrics *metrics)
{
	static const char *const names[LIMITERS] = {"a", "b", "c"};

	for (unsigned i = 0; i < LIMITERS; i++) {
		const struct weir_label label = {.name = "name", .value = names[i]};

		CHECK(weir_metrics_add(metrics, limiters[i], &label, 1) == 0);
	}
}

static bool only_grows(const char *line, const char *value)
{
	const char *total = strstr(line, "_total{");

	return line[0] != '#' && total != NULL && total < value;
}

static void check_counters(struct scraper *s)
{
	unsigned n = 0;

	for (char *line = s->text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		const char *value;
		uint64_t counter;

		*end = '\0';
		value = strrchr(line, ' ');
		if (value == NULL || !only_grows(line, value))
			continue;
		counter = strtoull(value, NULL, 10);
		CHECK(n < COUNTERS_MAX && counter >= s->counters[n]);
		s->counters[n++] = counter;
	}
	CHECK(n == LIMITERS * (6 + 9 + 2 * (3 + 4)));
}

static void *scrape(void *arg)
{
	struct scraper *s = arg;
	struct weir_metrics *metrics;
	size_t size;

	for (uint64_t i = 0; i < s->scrapes; i++) {
		CHECK(weir_metrics_create(&metrics) == 0);
		add_all(metrics);
		size = weir_metrics_text(metrics, WEIR_OPENMETRICS, s->text, TEXT_MAX);
		CHECK(size < TEXT_MAX && strcmp(s->text + size - 6, "# EOF\n") == 0);
		check_counters(s);
		weir_metrics_destroy(metrics);

		weir_metrics_text(shared, WEIR_OPENMETRICS, s->text, TEXT_MAX);
		CHECK(strcmp(s->text, expected) == 0);
	}
	return NULL;
}

static void make_limiters(void)
{
	static const struct weir_partition partition = {.name = "live", .share = 0.5};
	struct weir_config config;

	weir_config_init(&config);
	config.partitions = &partition;
	config.partition_count = 1;
	config.window_min = WEIR_MS;
	for (unsigned i = 0; i < LIMITERS; i++)
		CHECK(weir_limiter_create(&config, &limiters[i]) == 0);
}

int main(int argc, char **argv)
{
	const uint64_t scrapes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	const unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
	uint64_t seeds[] = {1, 2};
	struct scraper *scrapers = aligned_alloc(_Alignof(struct scraper),
						 threads * sizeof(*scrapers));
	struct crew workers, crew;

	CHECK(scrapers != NULL && weir_metrics_create(&shared) == 0);
	memset(scrapers, 0, threads * sizeof(*scrapers));
	make_limiters();
	add_all(shared);
	CHECK(weir_metrics_text(shared, WEIR_OPENMETRICS, expected, TEXT_MAX) < TEXT_MAX);
	for (unsigned i = 0; i < threads; i++)
		scrapers[i].scrapes = scrapes / threads;
	crew_start(&workers, 2, work, (char *)seeds, sizeof(seeds[0]));
	crew_start(&crew, threads, scrape, (char *)scrapers, sizeof(*scrapers));
	crew_join(&crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	crew_join(&workers);
	for (unsigned i = 0; i < LIMITERS; i++)
		weir_limiter_destroy(limiters[i]);
	weir_metrics_destroy(shared);
	free(scrapers);
	puts("every text was complete, and no counter decreased");
	return 0;
}
