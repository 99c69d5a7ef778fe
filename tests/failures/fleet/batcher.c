/* SPDX-License-Identifier: BSD-2-Clause */
/* Batchers. */
#include <weir/batcher.h>

#include "fleet.h"

static struct weir_batcher *batcher;
static struct weir_rate *rate;

static void begin_batcher(void)
{
	struct weir_rate_config c;

	weir_rate_config_init(&c);
	c.quotas[0].units = 1000;
	CHECK(weir_rate_create(&c, &rate) == 0);
}

static int create_batcher(void)
{
	struct weir_batcher_config c;

	weir_batcher_config_init(&c);
	c.rate = rate;
	return weir_batcher_create(&c, &batcher);
}

static void no_batcher(void)
{
	CHECK(batcher == NULL);
}

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	(void)arg, (void)first, (void)count;
	CHECK(weir_batcher_done(batcher, batch) == 0);
}

static void use_batcher(void)
{
	static const struct weir_batch_handler handler = {.process = process};
	struct weir_operation operation = {.watcher = &handler, .cost = {{1}}};

	CHECK(weir_batcher_enqueue(batcher, &operation, WEIR_FOREVER) == 0);
	CHECK(weir_batcher_drain(batcher, WEIR_FOREVER) == 0);
}

static void end_batcher(void)
{
	CHECK(weir_batcher_destroy(batcher) == 0);
	weir_rate_destroy(rate);
	batcher = NULL;
}

static struct failure_case cases[] = {
	{"weir_batcher_create", NULL, begin_batcher, create_batcher, no_batcher, use_batcher,
	 end_batcher},
};

const struct failure_table batcher_failures = {cases, COUNT(cases)};
