/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_events: what a member of a capacity in partitions is notified of: its units, and refreshes
 * that fail. In simulated time.
 */

#include <errno.h>
#include <string.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

#define RESERVED 10

/* A member, and its callbacks. */
struct worker {
	struct weir_work *work;
	uint64_t units;
	unsigned changes, gained, lost;
	int failure;
	unsigned failures;
	char why[256];
};

static struct world w;
static struct worker workers[2];

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	(void)partition;
	(void)fence;
	((struct worker *)arg)->gained++;
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	(void)partition;
	(void)fence;
	(void)forced;
	((struct worker *)arg)->lost++;
}

static bool add_units(void *arg, const struct weir_work_partition *partition)
{
	*(uint64_t *)arg += partition->units;
	return true;
}

/* While it is called, the store still has what was given up. */
static void note_units(void *arg, uint64_t units)
{
	struct worker *worker = arg;
	uint64_t all = 0;

	CHECK(units != worker->units && units == weir_work_units(worker->work));
	if (weir_work_inspect(w.store, "rate", NULL, add_units, &all) == 0)
		CHECK(worker->units <= RESERVED + all);
	worker->units = units;
	worker->changes++;
}

static void note_failure(void *arg, int error)
{
	struct worker *worker = arg;

	CHECK(error != worker->failure);
	worker->failure = error;
	worker->failures++;
	weir_fleet_error(w.actors[worker - workers].fleet, worker->why, sizeof(worker->why));
}

static void enter(unsigned member, uint64_t want, uint64_t factor)
{
	struct worker *worker = &workers[member];
	struct weir_work_config config;

	world_enter(&w, member, 0);
	*worker = (struct worker){.units = RESERVED};
	weir_work_config_init(&config);
	config.name = "rate";
	config.strategy = WEIR_WORK_WANTED;
	config.capacity = 500;
	config.factor = factor;
	config.reserved = RESERVED;
	config.on_gain = gain;
	config.on_lost = lose;
	config.on_units = note_units;
	config.on_failure = note_failure;
	config.arg = worker;
	CHECK(weir_work_open(w.actors[member].fleet, &config, &worker->work, NULL, 0) == 0);
	CHECK(weir_work_demand_set(worker->work, want) == 0);
}

static struct worker *begin(uint64_t want)
{
	world_begin(&w, 100, LEASE, REFRESH);
	enter(0, want, 25);
	world_run(&w, 3 * ROUND);
	CHECK(workers[0].units == weir_work_units(workers[0].work) && workers[0].failures == 0);
	return &workers[0];
}

/* Partitions that are gained or lost together are one change. */
static void together(void)
{
	struct worker *worker = begin(RESERVED + 300);

	CHECK(worker->units == RESERVED + 300 && worker->gained == 12 && worker->changes == 1);
	CHECK(weir_work_demand_set(worker->work, RESERVED + 100) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(worker->units == RESERVED + 100 && worker->lost == 8 && worker->changes == 2);
	CHECK(weir_work_resize(w.store, "rate", 500, 50) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(worker->units == RESERVED + 100 && worker->lost == 12 && worker->changes == 4);
	world_run(&w, 3 * LEASE);
	CHECK(worker->changes == 4 && worker->failures == 0);
	weir_work_close(worker->work);
	CHECK(worker->units == RESERVED && worker->changes == 5);
	world_end(&w);
}

/* The store is away until the lease has ended, and comes back. */
static void away(void)
{
	struct worker *worker = begin(RESERVED + 500);

	w.actors[0].manner = UNREACHABLE;
	world_run(&w, ROUND);
	CHECK(worker->failure == -EIO && worker->failures == 1 && worker->why[0] != '\0');
	CHECK(worker->units == RESERVED + 500);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUND);
	CHECK(worker->failure == 0 && worker->failures == 2 && worker->units == RESERVED + 500);
	w.actors[0].manner = BLIND;
	world_run(&w, 2 * LEASE);
	CHECK(worker->failure == -EIO && worker->failures == 3 && worker->units == RESERVED);
	w.actors[0].manner = ANSWERS;
	world_run(&w, 2 * ROUND);
	CHECK(worker->failure == 0 && worker->failures == 4 && worker->units == RESERVED + 500);
	world_end(&w);
}

/* It answers, but takes no writes; or others are always first. */
static void refused(void)
{
	struct worker *worker = begin(RESERVED + 100);

	w.full = true;
	CHECK(weir_work_demand_set(worker->work, RESERVED + 200) == 0);
	world_run(&w, ROUND);
	CHECK(worker->failure == -ENOSPC && worker->units == RESERVED + 100);
	w.full = false;
	w.actors[0].manner = TOO_LATE;
	world_run(&w, ROUND);
	CHECK(worker->failure == -EAGAIN && worker->units == RESERVED + 100);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUND);
	CHECK(worker->failure == 0 && worker->failures == 3 && worker->units == RESERVED + 200);
	world_end(&w);
}

/* A member of another kind is told so, and so is one that reads nonsense. */
static void odd(void)
{
	const struct weir_store_write nonsense = {"rate/partition/3", WEIR_STORE_WRITE_PUT, "?", 1};
	struct worker *worker = begin(RESERVED + 25);

	enter(1, 100, 50);
	world_run(&w, ROUND);
	CHECK(workers[1].failure == -EEXIST && strstr(workers[1].why, "but a capacity of") != NULL);
	CHECK(workers[1].units == RESERVED && worker->failures == 0);
	/* What it has stays, as no other member can claim anything either. */
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &nonsense, 1, NULL) == 0);
	world_run(&w, ROUND);
	CHECK(worker->failure == -EPROTO && workers[1].failure == -EPROTO);
	CHECK(weir_work_units(worker->work) == RESERVED + 25);
	world_end(&w);
}

int main(void)
{
	together();
	away();
	refused();
	odd();
	puts("units and failures are reported");
	return 0;
}
