/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * releases [KIND]: a partition that is released, or whose owner leaves, is free at once, and owned by
 * the member that has asked for it soon after. In simulated time, over a store in memory or of that
 * kind; and with threads, whose next refresh is hours away.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)
#define POLL    (REFRESH / 20 * 13 / 10) /* the longest time between two looks */

#define PARTITIONS 8

static struct world w;
static struct weir_work *works[3];
static unsigned requested;

/* It goes on with its work, and releases the partition when the test says so. */
static void note_request(void *arg, uint32_t partition, uint64_t fence)
{
	(void)arg;
	(void)partition;
	(void)fence;
	requested++;
}

static struct weir_work *open_work(struct weir_fleet *fleet, enum weir_work_strategy strategy)
{
	struct weir_work_config config;
	struct weir_work *work;

	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	config.strategy = strategy;
	config.on_request = note_request;
	config.handover = WEIR_FOREVER;
	CHECK(weir_work_open(fleet, &config, &work, NULL, 0) == 0);
	return work;
}

static void enter(unsigned member, enum weir_work_strategy strategy)
{
	world_enter(&w, member, 0);
	works[member] = open_work(w.actors[member].fleet, strategy);
}

static void begin(void)
{
	world_begin(&w, 100, LEASE, REFRESH);
	requested = 0;
	enter(0, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(works[0]) == PARTITIONS);
}

/* Release some, and let the thread run that is woken by it. */
static void release(unsigned member, unsigned count)
{
	for (uint32_t i = 0; i < PARTITIONS && count > 0; i++) {
		const uint64_t fence = weir_work_fence(works[member], i);

		if (fence != 0 && weir_work_release(works[member], i, fence) == 0)
			count--;
	}
	CHECK(count == 0);
	(void)weir_fleet_step(w.actors[member].fleet);
}

static bool count_owner(void *arg, const struct weir_work_partition *partition)
{
	*(unsigned *)arg += partition->owner != 0;
	return true;
}

/* Partitions with an owner, as the store has them. */
static unsigned owned_in(struct weir_store *store)
{
	unsigned count = 0;
	const int r = weir_work_inspect(store, "work", NULL, count_owner, &count);

	CHECK(r == 0 || r == -ENOENT);
	return count;
}

/* The partition is free in the store when the owner has done a single step. */
static void free_at_once(void)
{
	const weir_time before = (begin(), w.now);

	release(0, 3);
	CHECK(owned_in(w.store) == PARTITIONS - 3 && weir_work_owned(works[0]) == PARTITIONS - 3);
	CHECK(w.now == before);
	/* A member that comes to look owns one by a round trip. */
	enter(1, WEIR_WORK_GREEDY);
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(weir_work_owned(works[1]) == 3);
	world_end(&w);
}

/* Until the owner knows of the requests, and goes on with its work. */
static void ask(enum weir_work_strategy strategy)
{
	begin();
	enter(1, strategy);
	while (requested == 0)
		world_run(&w, WEIR_S / 10);
}

static void release_requested(void)
{
	for (uint32_t i = 0; i < PARTITIONS; i++)
		CHECK(weir_work_release(works[0], i, weir_work_fence(works[0], i)) == 0);
	(void)weir_fleet_step(w.actors[0].fleet);
}

/* The member that has asked owns what it asked for within a look of the release. */
static void soon(void)
{
	ask(WEIR_WORK_GREEDY);
	CHECK(requested == PARTITIONS / 2);
	world_run(&w, REFRESH);
	CHECK(weir_work_owned(works[0]) == PARTITIONS);
	release_requested();
	world_run_without(&w, POLL, 0);
	CHECK(weir_work_owned(works[1]) >= PARTITIONS / 2);
	world_end(&w);
}

/*
 * A member that starts slowly owns the one that it has asked for, and neither claims nor requests
 * another one before its next refresh. Nor does the owner take back what it has released.
 */
static void slowly(void)
{
	ask(WEIR_WORK_BALANCED);
	CHECK(requested == 1);
	world_run(&w, REFRESH);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	w.actors[1].next = w.now + 1;
	release_requested();
	world_run_without(&w, POLL, 0);
	CHECK(weir_work_owned(works[0]) == 0 && weir_work_owned(works[1]) == 1);
	release(1, 1);
	CHECK(owned_in(w.store) == 0);
	world_end(&w);
}

/* It does not look forever for what is not released. */
static unsigned steps_of(weir_dur time)
{
	const weir_time end = w.now + time;
	unsigned steps = 0;

	while (w.now < end) {
		const weir_time next = weir_fleet_step(w.actors[1].fleet);

		w.now = next < end ? next : end;
		w.actors[0].next = w.now;
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
		steps++;
	}
	return steps;
}

static void not_forever(void)
{
	ask(WEIR_WORK_GREEDY);
	CHECK(steps_of(REFRESH) > 10);
	world_run(&w, 4 * REFRESH);
	/* Once a second, for the demand that it counts, and its refreshes. */
	CHECK(steps_of(4 * REFRESH) < 4 * REFRESH / WEIR_S + 10);
	CHECK(weir_work_owned(works[0]) == PARTITIONS);
	world_end(&w);
}

/* A release that cannot be carried out is, with the next refresh that reaches the store. */
static void store_away(void)
{
	begin();
	w.actors[0].manner = UNREACHABLE;
	release(0, 2);
	CHECK(owned_in(w.store) == PARTITIONS);
	w.actors[0].manner = ANSWERS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(owned_in(w.store) == PARTITIONS - 2);
	world_end(&w);
}

/* A member that leaves erases its rows before the call returns. */
static void leaving(void)
{
	begin();
	weir_work_close(works[0]);
	CHECK(owned_in(w.store) == 0);
	world_end(&w);
}

static struct weir_fleet *open_fleet(void)
{
	struct weir_fleet_config config;
	struct weir_fleet *fleet;

	weir_fleet_config_init(&config);
	config.store = w.store;
	config.lease = 3600 * WEIR_S;
	config.refresh = 1800 * WEIR_S;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	return fleet;
}

static void release_each(void)
{
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		CHECK(weir_work_release(works[0], i, weir_work_fence(works[0], i)) == 0);
		while (owned_in(w.store) != PARTITIONS - 1 - i)
			nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	CHECK(weir_work_owned(works[0]) == 0);
}

/*
 * The thread is woken: its next refresh is more than twenty minutes away. It looks at the time once a
 * second, so if it were not woken, 200 rounds would take longer than a test may.
 */
static void woken(unsigned rounds)
{
	struct weir_fleet *fleet;

	world_begin(&w, 100, LEASE, REFRESH);
	fleet = open_fleet();
	works[0] = open_work(fleet, WEIR_WORK_GREEDY);
	for (unsigned i = 0; i < rounds; i++) {
		while (weir_work_owned(works[0]) < PARTITIONS)
			(void)weir_fleet_refresh(fleet);
		release_each();
	}
	weir_work_close(works[0]);
	weir_fleet_close(fleet);
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	free_at_once();
	soon();
	slowly();
	not_forever();
	store_away();
	leaving();
	woken(argc == 2 && strcmp(argv[1], "memory") != 0 ? 1 : 200);
	test_store_end(&test_store);
	printf("what is released is free at once, %s\n", test_store.kind);
	return 0;
}
