/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resizes [KIND]: a capacity of partitions, and what each is worth, are changed while members own
 * some of them: all members together never have more than the greater of the old and the new one.
 * In simulated time, over a store in memory or of that kind.
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

#define MEMBERS 5
#define ALL     UINT64_C(100000) /* more than there is */

static struct world w;
static struct weir_work *works[MEMBERS];
static unsigned gained, lost, forced;

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	(void)arg;
	(void)partition;
	CHECK(fence != 0);
	gained++;
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool by_force)
{
	(void)arg;
	(void)partition;
	(void)fence;
	lost++;
	forced += by_force;
}

static void enter_as(unsigned member, uint64_t want, uint64_t capacity, uint64_t factor)
{
	struct weir_work_config config;

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "rate";
	config.strategy = WEIR_WORK_WANTED;
	config.capacity = capacity;
	config.factor = factor;
	config.on_gain = gain;
	config.on_lost = lose;
	CHECK(weir_work_open(w.actors[member].fleet, &config, &works[member], NULL, 0) == 0);
	CHECK(weir_work_demand_set(works[member], want) == 0);
}

static void enter(unsigned member, uint64_t want)
{
	enter_as(member, want, 500, 25);
}

static uint64_t units(unsigned member)
{
	return w.actors[member].fleet != NULL ? weir_work_units(works[member]) : 0;
}

static uint64_t sum(void)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		all += units(i);
	return all;
}

static bool add_units(void *arg, const struct weir_work_partition *partition)
{
	CHECK((partition->owner != 0) == (partition->units != 0));
	*(uint64_t *)arg += partition->units;
	return true;
}

/* Units of all owners, as the store has them. */
static uint64_t sum_in_store(void)
{
	uint64_t all = 0;
	const int r = weir_work_inspect(w.store, "rate", NULL, add_units, &all);

	CHECK(r == 0 || r == -ENOENT);
	return all;
}

/* Let time pass, and look at all members often. */
static void pass(weir_dur time, uint64_t bound)
{
	const weir_time end = w.now + time;

	while (w.now < end) {
		world_run(&w, WEIR_S / 5);
		CHECK(sum() <= bound && sum_in_store() <= bound);
	}
}

static void begin(unsigned members)
{
	world_begin(&w, 100, LEASE, REFRESH);
	gained = lost = forced = 0;
	for (unsigned i = 0; i < members; i++)
		enter(i, ALL);
	world_run(&w, 3 * ROUND);
	CHECK(sum() == 500);
}

static void resize(uint64_t capacity, uint64_t factor)
{
	CHECK(weir_work_resize(w.store, "rate", capacity, factor) == 0);
}

/* With the same factor nothing is lost that stays as it is. */
static void same_factor(void)
{
	begin(2);
	CHECK(gained == 20);
	resize(600, 0);
	pass(2 * ROUND, 600);
	CHECK(sum() == 600 && gained == 24 && lost == 0);
	/* 9 of 25, and one of 15 in place of 25. */
	resize(240, 0);
	pass(2 * ROUND, 600);
	CHECK(sum() == 240 && sum_in_store() == 240 && gained == 25 && lost == 15 && forced == 0);
	resize(255, 0);
	pass(2 * ROUND, 255);
	CHECK(sum() == 255 && gained == 27 && lost == 16);
	world_end(&w);
}

/* Another factor: all partitions are others. */
static void other_factor(void)
{
	begin(3);
	resize(500, 50);
	pass(3 * ROUND, 500);
	CHECK(sum() == 500 && lost == 20 && gained == 30 && forced == 0);
	resize(500, 10);
	pass(3 * ROUND, 500);
	CHECK(sum() == 500 && lost == 30 && gained == 80);
	resize(70, 7);
	pass(3 * ROUND, 500);
	CHECK(sum() == 70);
	resize(1024, 1);
	pass(3 * ROUND, 1024);
	CHECK(sum() == 1024 && weir_work_owned(works[0]) > 10);
	world_end(&w);
}

/* What a stopped member owns is not claimed in other pieces before its lease has ended. */
static void stopped(void)
{
	const uint64_t before = 300;
	weir_time end;

	begin(2);
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_work_demand_set(works[i], i == 0 ? before : 500 - before) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(units(0) == before && units(1) == 500 - before);
	CHECK(weir_work_demand_set(works[1], ALL) == 0);
	w.actors[0].manner = UNREACHABLE;
	resize(500, 100);
	end = w.now + LEASE - 2 * ROUND;
	while (w.now < end) {
		pass(WEIR_S, 500);
		CHECK(units(0) == before && units(1) <= 500 - before);
	}
	pass(3 * ROUND, 500);
	CHECK(units(0) == 0 && units(1) == 500);
	w.actors[0].manner = ANSWERS;
	CHECK(weir_work_demand_set(works[1], 200) == 0);
	pass(3 * ROUND, 500);
	CHECK(units(0) == 300 && units(1) == 200);
	world_end(&w);
}

/* A claim of the former capacity arrives when it is no longer in force. */
static void late(void)
{
	begin(1);
	CHECK(weir_work_demand_set(works[0], 0) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && sum() == 0);
	CHECK(weir_work_demand_set(works[0], 25) == 0);
	w.actors[0].manner = DELAYS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO);
	resize(100, 10);
	CHECK(world_deliver(&w) == -EAGAIN && sum_in_store() == 0);
	w.actors[0].manner = ANSWERS;
	pass(2 * ROUND, 100);
	CHECK(sum() == 30);
	world_end(&w);
}

/* Whatever a member is configured with, it follows what was changed; also when all have left. */
static void mixed(void)
{
	struct weir_work_size info;
	char why[256];

	begin(1);
	enter_as(1, ALL, 500, 100);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == -EEXIST);
	resize(400, 40);
	pass(3 * ROUND, 500);
	CHECK(sum() == 400 && weir_fleet_refresh(w.actors[1].fleet) == 0);
	weir_fleet_error(w.actors[1].fleet, why, sizeof(why));
	CHECK(why[0] == '\0');
	CHECK(weir_work_demand_set(works[0], 40) == 0);
	pass(3 * ROUND, 400);
	CHECK(units(0) == 40 && units(1) == 360);
	weir_work_close(works[0]);
	weir_work_close(works[1]);
	w.actors[2].fleet = NULL;
	enter_as(2, ALL, 7, 7);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(works[2]) == 400);
	weir_work_size_init(&info);
	CHECK(weir_work_size_take(w.store, "rate", &info) == 0);
	CHECK(info.count == 10 && info.capacity == 400 && info.factor == 40 && info.changes == 1);
	CHECK(info.lease == LEASE);
	world_end(&w);
}

/* Its lease has ended, its rows are still there, and are for what is no longer a partition. */
static void blind(void)
{
	begin(1);
	w.actors[0].manner = BLIND;
	pass(LEASE + ROUND, 500);
	CHECK(sum() == 0 && sum_in_store() == 500 && gained == 20 && lost == 20);
	resize(500, 50);
	w.actors[0].manner = ANSWERS;
	pass(2 * ROUND, 500);
	CHECK(sum() == 500 && gained == 30 && lost == 20);
	world_end(&w);
}

/* A store that has forgotten that it was changed learns it from those that remember. */
static void forgotten(void)
{
	begin(1);
	resize(400, 40);
	pass(2 * ROUND, 500);
	world_forget(&w, w.now);
	world_run(&w, 2 * LEASE);
	CHECK(sum() == 400 && weir_work_demand_set(works[0], 80) == 0);
	enter(1, ALL);
	pass(3 * ROUND, 400);
	CHECK(units(0) == 80 && units(1) == 320);
	world_end(&w);
}

static void bad_input(void)
{
	const struct weir_store_write odd = {"rate/partitions", WEIR_STORE_WRITE_PUT,
					     "weir-parts 1 3 500 25 1000 1\n", 29};
	struct weir_work_size info;

	weir_work_size_init(&info);
	begin(1);
	CHECK(weir_work_resize(w.store, "rate", 0, 25) == -EINVAL);
	CHECK(weir_work_resize(w.store, "rate", 1025, 1) == -EINVAL);
	CHECK(weir_work_resize(w.store, "rate", WEIR_SHARE_UNITS_MAX + 1, 0) == -EINVAL);
	CHECK(weir_work_resize(w.store, "a/b", 1, 1) == -EINVAL);
	CHECK(weir_work_resize(w.store, "other", 1, 1) == -ENOENT);
	CHECK(weir_work_size_take(w.store, "other", &info) == -ENOENT);
	CHECK(weir_work_size_take(w.store, "a/b", &info) == -EINVAL);
	/* An older program gets the fields that it knows. */
	memset(&info, 0x55, sizeof(info));
	weir_work_size_init_sized(&info, offsetof(struct weir_work_size, factor));
	CHECK(weir_work_size_take(w.store, "rate", &info) == 0);
	CHECK(info.size == offsetof(struct weir_work_size, factor) && info.capacity == 500);
	CHECK(info.factor == UINT64_C(0x5555555555555555));
	/* The number of partitions is not what the rest of the row says: they stay as they are. */
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &odd, 1, NULL) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO && sum() == 500);
	world_end(&w);
}

/* Capacities that were in the store within a lease, by which a member may still own something. */
static struct past {
	weir_time until;
	uint64_t capacity;
} past[64];

static uint64_t bound_of(uint64_t capacity)
{
	uint64_t bound = capacity;

	for (unsigned i = 0; i < 64; i++)
		if (past[i].until + LEASE >= w.now && past[i].capacity > bound)
			bound = past[i].capacity;
	return bound;
}

static uint64_t below(uint64_t most)
{
	return draw(&w.chance) % most;
}

static void disturb(void)
{
	static const enum manner manners[] = {ANSWERS, ANSWERS, UNREACHABLE, BLIND, LOSES, DELAYS};
	const unsigned member = (unsigned)below(MEMBERS);

	if (w.late != NULL && below(2) == 0)
		(void)world_deliver(&w);
	w.actors[member].manner = manners[below(6)];
	CHECK(weir_work_demand_set(works[member], below(3) == 0 ? ALL : below(300)) == 0);
}

/* Returns the capacity, which may be another one now. */
static uint64_t change(uint64_t capacity)
{
	static unsigned changes;
	uint64_t next;

	if (below(6) != 0)
		return capacity;
	past[changes++ % 64] = (struct past){w.now, capacity};
	next = 50 + below(700);
	resize(next, 1 + next / (1 + below(60)));
	return next;
}

/* Once all answer, everything is owned. */
static void calm_down(uint64_t capacity)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		w.actors[i].manner = ANSWERS;
		CHECK(weir_work_demand_set(works[i], ALL) == 0);
	}
	world_run(&w, LEASE + 4 * ROUND);
	CHECK(sum() == capacity && sum_in_store() == capacity);
}

/*
 * Members that cannot reach the store, or cannot read it, whose claims are late or not answered,
 * want more or less, while the capacity and the factor change again and again.
 */
static void rough(uint64_t seed)
{
	uint64_t capacity = 500;

	begin(MEMBERS);
	w.chance += seed * 7919;
	memset(past, 0, sizeof(past));
	for (unsigned i = 0; i < 300; i++) {
		disturb();
		capacity = change(capacity);
		for (unsigned j = 0; j < 5; j++) {
			world_run(&w, WEIR_S / 4);
			CHECK(sum() <= bound_of(capacity));
		}
	}
	calm_down(capacity);
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	same_factor();
	other_factor();
	stopped();
	late();
	mixed();
	blind();
	forgotten();
	bad_input();
	for (uint64_t seed = 0; seed < (argc == 2 ? 2 : 20); seed++)
		rough(seed);
	test_store_end(&test_store);
	printf("never more than the greater capacity, %s\n", test_store.kind);
	return 0;
}
