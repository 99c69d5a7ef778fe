/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * early [KIND]: members that watch their store react at once, with an interval between refreshes
 * that is much longer than the test: to a change of the limit, to units that others give back, to
 * draining, to what an allocator grants; also after the store was away. Members that have what they
 * want read nothing because others change, and reports that come faster than refreshes may are
 * refreshed for together. Without watching nothing happens before the interval.
 */

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "test_store.h"

#define REFRESH  (1000 * WEIR_S)
#define LEASE    (3000 * WEIR_S)
#define PATIENCE 60000 /* ms in which a report is certain to come */
#define CAPACITY 200
#define MEMBERS  4

struct member {
	struct weir_fleet *fleet;
	struct weir_share *share;
};

static struct test_store test_store;
static struct weir_store *store;
static struct member members[MEMBERS];
static bool poll_only, allocated;

static void enter(unsigned index, uint64_t wants)
{
	struct member *m = &members[index];
	struct weir_fleet_config config;
	struct weir_share_config limit;
	char label[16];

	(void)snprintf(label, sizeof(label), "member-%u", index);
	weir_fleet_config_init(&config);
	config.store = store;
	config.lease = LEASE;
	config.refresh = REFRESH;
	config.label = label;
	config.poll_only = poll_only;
	CHECK(weir_fleet_open(&config, &m->fleet, NULL, 0) == 0);
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	limit.allocated = allocated;
	CHECK(weir_share_join(m->fleet, &limit, &m->share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(m->share, wants) == 0);
	/* It may have refreshed before its demand was set. */
	CHECK(weir_fleet_refresh(m->fleet) == 0);
}

static void leave(unsigned index)
{
	weir_fleet_close(members[index].fleet);
	members[index] = (struct member){.fleet = NULL};
}

static struct weir_share_info info_of(unsigned index)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(members[index].share, &info);
	return info;
}

static uint64_t units(unsigned index)
{
	return weir_share_units(members[index].share);
}

static void wait_for_units(unsigned index, uint64_t wanted)
{
	for (unsigned ms = 0; units(index) != wanted; ms += 5) {
		if (ms >= PATIENCE)
			fprintf(stderr, "member %u has %llu, not %llu\n", index,
				(unsigned long long)units(index), (unsigned long long)wanted);
		CHECK(ms < PATIENCE);
		sleep_ms(5);
	}
}

/* Until its thread has not refreshed for a second: then its watch is open, and nothing is due. */
static uint64_t settle(unsigned index)
{
	uint64_t refreshes;

	do {
		refreshes = info_of(index).refreshes;
		sleep_ms(2500);
	} while (info_of(index).refreshes != refreshes);
	return refreshes;
}

static void begin(void)
{
	store = test_store_open(&test_store, NULL);
}

static void finish(void)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		leave(i);
	weir_store_close(store);
}

static void change(uint64_t capacity)
{
	unsigned tries = 0;

	while (weir_fleet_change(store, "limit", capacity) != 0) {
		CHECK(++tries < 600);
		sleep_ms(100);
	}
}

/* Two that share what there is. */
static void enter_two(void)
{
	enter(0, 1000);
	enter(1, 1000);
	CHECK(weir_fleet_refresh(members[0].fleet) == 0);
	CHECK(weir_fleet_refresh(members[1].fleet) == 0);
	CHECK(units(0) == CAPACITY / 2 && units(1) == CAPACITY / 2);
}

static void limit_changes(void)
{
	begin();
	enter_two();
	change(60);
	wait_for_units(0, 30);
	wait_for_units(1, 30);
	change(400);
	wait_for_units(0, 200);
	wait_for_units(1, 200);
	finish();
}

static void units_are_given_back(void)
{
	begin();
	enter_two();
	/* It wants less. */
	CHECK(weir_share_demand_set(members[1].share, 10) == 0);
	CHECK(weir_fleet_refresh(members[1].fleet) == 0);
	wait_for_units(0, CAPACITY - 10);
	/* It leaves the limit, or the fleet. */
	weir_share_leave(members[1].share);
	wait_for_units(0, CAPACITY);
	leave(1);
	enter(1, 1000);
	CHECK(weir_fleet_refresh(members[0].fleet) == 0);
	/* It has waited for the units that the other one has given back. */
	wait_for_units(1, CAPACITY / 2);
	leave(1);
	wait_for_units(0, CAPACITY);
	finish();
}

static void drains(void)
{
	struct weir_share_info info;

	begin();
	enter_two();
	CHECK(weir_fleet_drain_label(store, "limit", "member-0", true) == 0);
	wait_for_units(0, 0);
	wait_for_units(1, CAPACITY);
	info = info_of(0);
	CHECK(info.state == WEIR_SHARE_DRAINED);
	CHECK(weir_fleet_drain_label(store, "limit", "member-0", false) == 0);
	wait_for_units(0, CAPACITY / 2);
	wait_for_units(1, CAPACITY / 2);
	finish();
}

/* Its watch is open, as it learns of a change. */
static void wait_for_watch(unsigned index)
{
	unsigned ms = 0;

	change(CAPACITY + 1);
	for (; info_of(index).capacity != CAPACITY + 1; ms += 5) {
		CHECK(ms < PATIENCE);
		sleep_ms(5);
	}
}

/*
 * One has what it wants. What others do is nothing to it. They do not do it so fast that a thread of
 * a busy machine finds more changes at once than a watch lists.
 */
static void others_change(void)
{
	uint64_t before;

	begin();
	enter(0, 10);
	enter(1, 20);
	enter(2, 1000);
	CHECK(units(0) == 10 && units(1) == 20);
	wait_for_watch(0);
	before = settle(0);
	for (unsigned i = 0; i < 16; i++) {
		CHECK(weir_share_demand_set(members[1].share, 10 + i % 30) == 0);
		CHECK(weir_fleet_refresh(members[1].fleet) == 0);
		sleep_ms(300);
	}
	enter(3, 1);
	leave(1);
	sleep_ms(2000);
	CHECK(info_of(0).refreshes == before);
	/* And it still hears what matters. */
	change(9);
	wait_for_units(0, 4);
	finish();
}

/* It writes its own rows, and lacks units. */
static void own_changes(void)
{
	uint64_t before;

	begin();
	enter(0, 1000);
	wait_for_watch(0);
	before = settle(0);
	for (unsigned i = 1; i <= 10; i++) {
		CHECK(weir_share_demand_set(members[0].share, 1000 + i) == 0);
		CHECK(weir_fleet_refresh(members[0].fleet) == 0);
		sleep_ms(200);
	}
	sleep_ms(2000);
	CHECK(info_of(0).refreshes == before + 10);
	finish();
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* At most one refresh a second, with an interval that long. */
static void pacing(void)
{
	uint64_t before, began;

	begin();
	enter(0, 1000);
	before = settle(0);
	began = now_ms();
	for (unsigned i = 0; i < 200; i++) {
		change(100 + i);
		sleep_ms(10);
	}
	wait_for_units(0, 299);
	CHECK(info_of(0).refreshes - before <= (now_ms() - began) / 1000 + 2);
	finish();
}

/* The same to one that never gets what it lacks. */
static void in_vain(void)
{
	uint64_t before, began;

	begin();
	enter_two();
	before = settle(0);
	began = now_ms();
	while (now_ms() - began < 10000) {
		CHECK(weir_share_demand_set(members[1].share, 1000 + now_ms() % 7) == 0);
		CHECK(weir_fleet_refresh(members[1].fleet) == 0);
	}
	CHECK(info_of(0).refreshes - before <= (now_ms() - began) / 4000 + 4);
	finish();
}

static void polling(void)
{
	uint64_t before;

	poll_only = true;
	begin();
	enter_two();
	before = settle(0);
	change(60);
	CHECK(weir_share_demand_set(members[1].share, 10) == 0);
	CHECK(weir_fleet_refresh(members[1].fleet) == 0);
	CHECK(weir_fleet_drain_label(store, "limit", "member-0", true) == 0);
	sleep_ms(3000);
	CHECK(info_of(0).refreshes == before && units(0) == CAPACITY / 2);
	poll_only = false;
	finish();
}

/* The allocator divides where it has something to write itself. */
static void allocate(uint64_t wants)
{
	CHECK(weir_share_demand_set(members[0].share, wants) == 0);
	CHECK(weir_fleet_refresh(members[0].fleet) == 0);
}

static void grants(void)
{
	begin();
	allocated = true;
	enter(0, 10);
	enter(1, 50);
	allocate(20);
	wait_for_units(1, 50);
	CHECK(weir_share_demand_set(members[1].share, 90) == 0);
	CHECK(weir_fleet_refresh(members[1].fleet) == 0);
	allocate(30);
	wait_for_units(1, 90);
	allocated = false;
	finish();
}

static void restarts(void)
{
	begin();
	enter_two();
	settle(0);
	settle(1);
	server_kill(&test_store.server);
	/* A report after a refresh that failed says that the store is back. */
	CHECK(weir_fleet_refresh(members[0].fleet) != 0);
	sleep_ms(1000);
	server_restart(&test_store.server);
	change(60);
	wait_for_units(0, 30);
	wait_for_units(1, 30);
	finish();
}

int main(int argc, char **argv)
{
	test_store_begin(&test_store, argc > 1 ? argv[1] : "memory");
	limit_changes();
	units_are_given_back();
	drains();
	others_change();
	own_changes();
	pacing();
	in_vain();
	polling();
	grants();
	if (test_store.remote)
		restarts();
	test_store_end(&test_store);
	printf("members that watch react at once\n");
	return 0;
}
