/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes.c - weir_limiter_size() of configurations that differ in one setting each. All have one
 * stripe by default, so that the table is the same on any machine.
 */
#include "bytes.h"

#include <stdio.h>
#include <weir/weir.h>

static struct weir_config small(void)
{
	struct weir_config config;

	weir_config_init(&config);
	config.stripes = 1;
	return config;
}

static void row(const char *what, uint32_t number, const struct weir_config *config)
{
	printf("%s\t%u\t%zu\n", what, (unsigned)number, weir_limiter_size(config));
}

static void by_limit(void)
{
	struct weir_config config = small();
	char name[32];

	for (unsigned i = 0; weir_limit_at(i) != NULL; i++) {
		config.limit = weir_limit_at(i);
		snprintf(name, sizeof(name), "limit-%s", config.limit->name);
		row(name, 1, &config);
	}
}

static void by_stripes(bool quantile)
{
	struct weir_config config = small();

	if (quantile) {
		config.rtt = WEIR_RTT_QUANTILE;
		config.quantile = 0.99;
	}
	for (config.stripes = 1; config.stripes <= 64; config.stripes *= 4)
		row(quantile ? "stripes-quantile" : "stripes", config.stripes, &config);
}

static void by_partitions(void)
{
	struct weir_partition partitions[WEIR_PARTITIONS_MAX];
	char names[WEIR_PARTITIONS_MAX][4];
	struct weir_config config = small();

	for (unsigned i = 0; i < WEIR_PARTITIONS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i % 100);
		partitions[i] = (struct weir_partition){.name = names[i]};
	}
	config.partitions = partitions;
	for (uint32_t n = 1; n <= WEIR_PARTITIONS_MAX; n *= 4) {
		config.partition_count = n;
		row("partitions", n, &config);
	}
}

static void by_queue(void)
{
	struct weir_config config = small();

	for (config.queue = 1; config.queue <= 10000; config.queue *= 100)
		row("queue", config.queue, &config);
}

static void by_track(void)
{
	struct weir_config config = small();

	for (config.track = 100; config.track <= 10000; config.track *= 100)
		row("track", config.track, &config);
}

static void with_priorities(void)
{
	struct weir_config config = small();

	config.shed = 1;
	row("priorities", 1, &config);
}

void bytes_print(void)
{
	struct weir_config plain = small();

	puts("what\tnumber\tbytes");
	row("plain", 1, &plain);
	by_limit();
	by_stripes(false);
	by_stripes(true);
	by_partitions();
	by_queue();
	by_track();
	with_priorities();
}
