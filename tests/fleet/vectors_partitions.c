/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Published cases of partitions: of capacity (Azure's pattern, go-batcher) and of work (Event
 * Hubs). Most of them have a test of their own, over every store; these are the others.
 */

#include "vectors.h"

#include <errno.h>
#include <string.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

/* A member's partitions, and the number of its callbacks. */
struct worker {
	struct weir_work *work;
	unsigned gained, lost;
	uint64_t fence; /* of the partition that was gained last */
	uint32_t partition;
};

static struct world w;
static struct worker workers[2];

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	struct worker *worker = arg;

	worker->gained++;
	worker->partition = partition;
	worker->fence = fence;
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	(void)partition;
	(void)fence;
	(void)forced;
	((struct worker *)arg)->lost++;
}

static void begin(struct test_store *test_store)
{
	world_use(test_store);
	world_begin(&w, 100, LEASE, REFRESH);
	memset(workers, 0, sizeof(workers));
}

static int open_capacity(unsigned member, uint64_t capacity, uint64_t factor)
{
	struct weir_work_config config;
	struct worker *worker = &workers[member];

	if (w.actors[member].fleet == NULL)
		world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "rate";
	config.strategy = WEIR_WORK_WANTED;
	config.capacity = capacity;
	config.factor = factor;
	config.reserved = 0;
	config.on_gain = gain;
	config.on_lost = lose;
	config.arg = worker;
	*worker = (struct worker){.work = NULL};
	return weir_work_open(w.actors[member].fleet, &config, &worker->work, NULL, 0);
}

static int open_work(unsigned member, uint32_t count)
{
	struct weir_work_config config;
	struct worker *worker = &workers[member];

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = count;
	config.on_gain = gain;
	config.on_lost = lose;
	config.arg = worker;
	*worker = (struct worker){.work = NULL};
	return weir_work_open(w.actors[member].fleet, &config, &worker->work, NULL, 0);
}

/* Set the demand, run until it is satisfied, and return the units. */
static uint64_t get(unsigned member, uint64_t want)
{
	CHECK(weir_work_demand_set(workers[member].work, want) == 0);
	world_run(&w, 3 * ROUND);
	return weir_work_units(workers[member].work);
}

/* Too many partitions are refused, instead of being reduced to the maximum. */
static void too_many(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store);
	CHECK(open_capacity(0, 10000, 1) == -EINVAL && workers[0].work == NULL);
	world_end(&w);
}

/* The last partition is worth the remainder: 676. */
static void gb10(const char *id, struct test_store *test_store)
{
	uint64_t units;

	(void)id;
	begin(test_store);
	CHECK(open_capacity(0, 10000, 777) == 0);
	units = get(0, 1800);
	CHECK(weir_work_owned(workers[0].work) == 3);
	CHECK(units == 2331 || units == 2 * 777 + 676);
	world_end(&w);
}

static void gb12(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store);
	CHECK(open_capacity(0, 10000, 1000) == 0);
	CHECK(get(0, 1800) == 2000 && workers[0].gained == 2 && workers[0].lost == 0);
	CHECK(get(0, 0) == 0 && workers[0].gained == 2 && workers[0].lost == 2);
	world_end(&w);
}

/* A store that does not answer grants nothing, and no callback is called. */
static void gb13(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store);
	CHECK(open_capacity(0, 10000, 1000) == 0);
	w.down = true;
	CHECK(get(0, 1800) == 0 && workers[0].gained == 0 && workers[0].lost == 0);
	w.down = false;
	world_end(&w);
}

/* For the same reason, a store that cannot be opened fails at once. */
static void gb14(const char *id, struct test_store *test_store)
{
	struct weir_store_config store_config;
	struct weir_fleet_config config;
	struct weir_store *store;
	struct weir_fleet *fleet;
	char why[256] = "", same[256] = "";

	(void)id;
	(void)test_store;
	weir_store_config_init(&store_config);
	store_config.address = "shm:/a/b";
	weir_fleet_config_init(&config);
	config.address = "shm:/a/b";
	CHECK(weir_store_open(&store_config, &store, why, sizeof(why)) ==
	      weir_fleet_open(&config, &fleet, same, sizeof(same)));
	CHECK(store == NULL && fleet == NULL && why[0] != '\0' && strcmp(why, same) == 0);
}

/*
 * Partitions of another capacity are opened again: what is held is the lesser of what is wanted and
 * what there is.
 */
static void resized(const char *id, struct test_store *test_store)
{
	static const uint64_t capacities[] = {5000, 12000, 3000, 20000};
	static const uint64_t wants[] = {5000, 5000, 5000, 80000};
	static const uint64_t units[] = {5000, 5000, 3000, 20000};

	(void)id;
	begin(test_store);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(open_capacity(0, capacities[i], 1000) == 0);
		CHECK(get(0, wants[i]) == units[i]);
		weir_work_close(workers[0].work);
	}
	world_end(&w);
}

static void gb17(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store);
	CHECK(weir_fleet_change(w.store, "limit", 20000) == -ENOENT);
	world_end(&w);
}

static void gb18(const char *id, struct test_store *test_store)
{
	struct worker first;

	(void)id;
	begin(test_store);
	CHECK(open_capacity(0, 10000, 1000) == 0);
	first = workers[0];
	CHECK(open_capacity(0, 20000, 1000) == -EEXIST && workers[0].work == NULL);
	workers[0] = first;
	CHECK(get(0, 80000) == 10000);
	world_end(&w);
}

/* The sequence that is read is the one that was written last. */
static void eg11(const char *id, struct test_store *test_store)
{
	static const uint64_t sequences[] = {202, 405};
	struct worker *worker = &workers[0];
	uint64_t sequence;
	size_t size = 0;

	(void)id;
	begin(test_store);
	CHECK(open_work(0, 1) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(worker->gained == 1);
	CHECK(weir_work_load(worker->work, 0, &sequence, NULL, &size) == -ENOENT);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(weir_work_checkpoint(worker->work, 0, worker->fence, sequences[i], NULL, 0) ==
		      0);
		size = 0;
		CHECK(weir_work_load(worker->work, 0, &sequence, NULL, &size) == 0);
		CHECK(sequence == sequences[i]);
	}
	world_end(&w);
}

/*
 * A member that restarts has another number. It regains partitions when its old lease has ended,
 * and gets those that are free.
 */
static void en11(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store);
	CHECK(open_work(0, 5) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(workers[0].work) == 5);
	CHECK(weir_work_release(workers[0].work, workers[0].partition, workers[0].fence) == 0);
	world_kill(&w, 0);
	CHECK(open_work(0, 5) == 0);
	world_run(&w, LEASE + 3 * ROUND);
	CHECK(weir_work_owned(workers[0].work) == 5 && workers[0].gained == 5);
	world_end(&w);
}

/* One write to join, and one for each claim; and none as long as nothing changes. */
static void en13(const char *id, struct test_store *test_store)
{
	unsigned commits;

	(void)id;
	begin(test_store);
	CHECK(open_work(0, 4) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(workers[0].work) == 4);
	commits = w.commits;
	CHECK(commits <= 6);
	world_run(&w, 3 * LEASE);
	CHECK(w.commits == commits && weir_work_owned(workers[0].work) == 4);
	world_end(&w);
}

static const struct vector rows[] = {
	{"AZ1", NULL, "batcher.c", NULL},
	{"AZ2", NULL, "batcher.c", NULL},
	{"AZ3", NULL, "batcher.c", NULL},
	{"GB1", NULL, "work.c", NULL},
	{"GB2", too_many, NULL, "10,000 partitions are refused"},
	{"GB3", NULL, "work.c", "the last partition is worth the remainder"},
	{"GB4", NULL, "work.c", NULL},
	{"GB5", too_many, NULL, "10,000 partitions are refused"},
	{"GB6", NULL, "work.c", NULL},
	{"GB7", NULL, "work.c", NULL},
	{"GB8", NULL, "work.c", NULL},
	{"GB9", NULL, "work.c", NULL},
	{"GB10", gb10, NULL, "the last partition is worth the remainder"},
	{"GB11", NULL, "work.c", NULL},
	{"GB12", gb12, NULL, NULL},
	{"GB13", gb13, NULL, NULL},
	{"GB14", gb14, NULL, NULL},
	{"GB15", resized, NULL, "by opening them again; while they are open: resizes.c"},
	{"GB16", resized, NULL, "by opening them again; while they are open: resizes.c"},
	{"GB17", gb17, NULL, NULL},
	{"GB18", gb18, NULL, "what is configured is copied, so there is nothing to set later"},
	{"GB19", NULL, "batcher.c", NULL},
	{"BT1", NULL, "batcher.c", NULL},
	{"BT2", NULL, "batcher.c", NULL},
	{"BT3", NULL, "batcher.c", NULL},
	{"BT4", NULL, "batcher.c", "one, not two: debt is paid off over time"},
	{"BT5", NULL, "batcher.c", NULL},
	{"BT6", NULL, "batcher.c", NULL},
	{"BT7", NULL, "batcher.c", NULL},
	{"BT8", NULL, "batcher.c", NULL},
	{"BT9", NULL, "batcher.c", NULL},
	{"BT10", NULL, "batcher.c", NULL},
	{"BT11", NULL, "batcher.c", NULL},
	{"BT12", NULL, "batcher.c", NULL},
	{"BT13", NULL, "batcher.c", "as go-batcher's arithmetic alone"},
	{"BT14", NULL, "batcher.c", NULL},
	{"PR1", NULL, "../unit/rate.c", NULL},
	{"PR2", NULL, "../unit/rate.c", NULL},
	{"PR3", NULL, "../unit/rate.c", NULL},
	{"PR4", NULL, "../unit/rate.c", NULL},
	{"PR5", NULL, "../unit/rate.c", NULL},
	{"PR6", NULL, "../unit/rate.c", NULL},
	{"PR7", NULL, "../unit/rate.c", NULL},
	{"PR8", NULL, "../unit/rate.c", NULL},
	{"PR9", NULL, "../unit/rate.c", NULL},
	{"EG1", NULL, "work_balance.c", NULL},
	{"EG2", NULL, "work_balance.c", NULL},
	{"EG3", NULL, "work_balance.c", "it asks for two, and owns them when they are released"},
	{"EG4", NULL, "work_balance.c", NULL},
	{"EG5", NULL, "work_balance.c", NULL},
	{"EG5b", NULL, "work_balance.c", NULL},
	{"EG6", NULL, "work_balance.c", NULL},
	{"EG7", NULL, "work_balance.c", NULL},
	{"EG8", NULL, "work.c", NULL},
	{"EG9", NULL, "work_balance.c", NULL},
	{"EG10", NULL, "work_balance.c", NULL},
	{"EG11", eg11, NULL, NULL},
	{"EN1", NULL, "work_balance.c", NULL},
	{"EN2", NULL, "work_balance.c", NULL},
	{"EN3", NULL, "work_balance.c", NULL},
	{"EN4", NULL, "work_balance.c", NULL},
	{"EN5", NULL, "work_balance.c", NULL},
	{"EN6", NULL, "work_balance.c", NULL},
	{"EN7", NULL, "work_balance.c", NULL},
	{"EN8", NULL, "work_balance.c", NULL},
	{"EN9", NULL, "work_balance.c", NULL},
	{"EN10", NULL, "work_balance.c", NULL},
	{"EN11", en11, NULL, "it has a new number, so it waits until its old lease ends"},
	{"EN12", NULL, "work.c", NULL},
	{"EN13", en13, NULL, "no write to renew: the session is renewed, not each partition"},
	{"EN14", NULL, "work.c", NULL},
	{"EJ1", NULL, "work_balance.c", NULL},
	{"EJ2", NULL, "work_balance.c", NULL},
	{"EJ3", NULL, "work_balance.c", NULL},
	{"EJ4", NULL, "work_balance.c", NULL},
	{"EJ5", NULL, "work.c", NULL},
	{"EJ6", NULL, "work.c", NULL},
};

struct family vectors_partitions(void)
{
	return (struct family){rows, sizeof(rows) / sizeof(rows[0])};
}
