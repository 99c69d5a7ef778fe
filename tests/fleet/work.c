/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work [KIND]: members that own partitions, in simulated time. The store is in memory, or of that
 * kind.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

#define PARTITIONS 32

/* Ownership as the callbacks report it, and the number of callbacks. */
struct tally {
	struct weir_work *work;
	uint64_t fence[PARTITIONS];
	unsigned gained, lost, forced, requested;
	bool slow; /* does not release partitions that others ask for */
};

static struct world w;
static struct tally tallies[WORLD_MEMBERS_MAX];
static unsigned owners[PARTITIONS], highest_owners;
static uint64_t last_fence[PARTITIONS];

static void gained(void *arg, uint32_t partition, uint64_t fence)
{
	struct tally *t = arg;

	/*
	 * The same fence again, if it was lost by the clock and no other member has owned the
	 * partition.
	 */
	CHECK(t->fence[partition] == 0 && fence >= last_fence[partition]);
	t->fence[partition] = last_fence[partition] = fence;
	t->gained++;
	if (++owners[partition] > highest_owners)
		highest_owners = owners[partition];
}

static void lost(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	struct tally *t = arg;

	CHECK(t->fence[partition] == fence);
	t->fence[partition] = 0;
	t->lost++;
	t->forced += forced;
	owners[partition]--;
}

static void requested(void *arg, uint32_t partition, uint64_t fence)
{
	struct tally *t = arg;

	t->requested++;
	if (!t->slow)
		CHECK(weir_work_release(t->work, partition, fence) == 0);
}

static void begin(void)
{
	world_begin(&w, 100, LEASE, REFRESH);
	memset(tallies, 0, sizeof(tallies));
	memset(owners, 0, sizeof(owners));
	memset(last_fence, 0, sizeof(last_fence));
	highest_owners = 0;
}

static void enter_with(unsigned member, enum weir_work_strategy strategy, uint32_t weight,
		       weir_dur hold)
{
	struct weir_work_config config;

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	config.strategy = strategy;
	config.weight = weight;
	config.hold = hold;
	config.on_gain = gained;
	config.on_lost = lost;
	config.on_request = requested;
	config.arg = &tallies[member];
	tallies[member] = (struct tally){.work = NULL};
	CHECK(weir_work_open(w.actors[member].fleet, &config, &tallies[member].work, NULL, 0) == 0);
}

static void enter(unsigned member, enum weir_work_strategy strategy)
{
	enter_with(member, strategy, 0, 0);
}

static unsigned owned(unsigned member)
{
	return weir_work_owned(tallies[member].work);
}

static unsigned sum(unsigned from, unsigned to, size_t offset)
{
	unsigned all = 0;

	for (unsigned i = from; i < to; i++)
		all += *(const unsigned *)((const char *)&tallies[i] + offset);
	return all;
}

#define SUM(field) sum(0, WORLD_MEMBERS_MAX, offsetof(struct tally, field))

static void end(void)
{
	CHECK(highest_owners <= 1);
	world_end(&w);
}

/* T8: eight members on 32 partitions, started at the same time. */
static void cold(enum weir_work_strategy strategy, unsigned rounds)
{
	begin();
	for (unsigned i = 0; i < 8; i++)
		enter(i, strategy);
	for (unsigned i = 0; i <= rounds; i++)
		for (unsigned j = 0; j < 8; j++)
			CHECK(weir_fleet_refresh(w.actors[j].fleet) == 0);
	for (unsigned i = 0; i < 8; i++)
		CHECK(owned(i) == 4);
	CHECK(SUM(gained) == PARTITIONS && SUM(lost) == 0 && SUM(requested) == 0);
	end();
}

/* One member owns all; seven join: exactly 28 must move, and none has two owners. */
static void newcomers(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	CHECK(owned(0) == PARTITIONS);
	for (unsigned i = 1; i < 8; i++)
		enter(i, WEIR_WORK_GREEDY);
	world_run(&w, 10 * ROUND);
	for (unsigned i = 0; i < 8; i++)
		CHECK(owned(i) == 4);
	CHECK(SUM(gained) == PARTITIONS + 28 && SUM(lost) == 28 && SUM(forced) == 0);
	end();
}

static bool see_weight(void *arg, const struct weir_work_partition *partition)
{
	unsigned *weights = arg;

	CHECK(partition->owner_weight <= 3);
	weights[partition->owner_weight]++;
	return true;
}

/* By weight, and only as many move as have to. */
static void weighted(void)
{
	unsigned weights[4] = {0};

	begin();
	enter_with(0, WEIR_WORK_GREEDY, 2, 0);
	enter_with(1, WEIR_WORK_GREEDY, 1, 0);
	enter_with(2, WEIR_WORK_BALANCED, 1, 0);
	world_run(&w, 12 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 8 && owned(2) == 8);
	CHECK(SUM(lost) == SUM(gained) - PARTITIONS);
	enter_with(3, WEIR_WORK_GREEDY, 3, 0);
	CHECK(SUM(forced) == 0);
	world_run(&w, 10 * ROUND);
	/* 32 * 2 / 7 is 9.1, 32 / 7 is 4.6, and 32 * 3 / 7 is 13.7. */
	CHECK(owned(0) == 9 || owned(0) == 10);
	CHECK(owned(1) >= 4 && owned(1) <= 5 && owned(2) >= 4 && owned(2) <= 5);
	CHECK(owned(3) == 13 || owned(3) == 14);
	CHECK(weir_work_inspect(w.store, "work", NULL, see_weight, weights) == 0);
	CHECK(weights[2] == owned(0) && weights[3] == owned(3) && weights[0] == 0);
	end();
}

/*
 * What a member has held for too short is not moved to another one, but it is when its time is over;
 * and when its owner leaves or dies.
 */
static void holding(void)
{
	const weir_dur hold = 100 * WEIR_S;
	weir_time gained_at;

	begin();
	enter_with(0, WEIR_WORK_GREEDY, 0, hold);
	while (owned(0) == 0)
		world_run(&w, WEIR_S / 10);
	gained_at = w.now;
	enter_with(1, WEIR_WORK_GREEDY, 0, hold);
	world_run(&w, gained_at + hold - WEIR_S - w.now);
	CHECK(owned(0) == PARTITIONS && owned(1) == 0 && SUM(requested) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16 && SUM(requested) == 16);
	/* Without having been asked, or to a member that has died, it makes no difference. */
	world_kill(&w, 0);
	world_run(&w, LEASE + 2 * ROUND);
	CHECK(owned(1) == PARTITIONS);
	enter_with(2, WEIR_WORK_GREEDY, 0, hold);
	weir_work_close(tallies[1].work);
	world_run(&w, 3 * ROUND);
	CHECK(owned(2) == PARTITIONS);
	end();
}

/* A lease that has ended, and is regained by the same fence, does not begin the time again. */
static void held_on(void)
{
	const weir_dur hold = 100 * WEIR_S;

	begin();
	enter_with(0, WEIR_WORK_GREEDY, 0, hold);
	world_run(&w, 3 * ROUND);
	w.actors[0].manner = BLIND;
	world_run(&w, LEASE);
	CHECK(owned(0) == 0);
	w.actors[0].manner = ANSWERS;
	world_run(&w, 2 * ROUND);
	CHECK(owned(0) == PARTITIONS && SUM(gained) == 2 * PARTITIONS);
	enter(1, WEIR_WORK_GREEDY);
	world_run(&w, hold - LEASE - 2 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16);
	end();
}

/* EJ5: a member that dies is replaced; one that leaves, at once. */
static void leaving(void)
{
	begin();
	for (unsigned i = 0; i < 4; i++)
		enter(i, WEIR_WORK_GREEDY);
	world_run(&w, 4 * ROUND);
	CHECK(owned(0) == 8);
	weir_work_close(tallies[0].work);
	for (unsigned j = 0; j < 3; j++)
		for (unsigned i = 1; i < 4; i++)
			CHECK(weir_fleet_refresh(w.actors[i].fleet) == 0);
	CHECK(owned(1) + owned(2) + owned(3) == PARTITIONS && SUM(forced) == 0);
	world_kill(&w, 1);
	world_run(&w, LEASE + 4 * ROUND);
	CHECK(owned(2) == 16 && owned(3) == 16);
	end();
}

/*
 * EN14: a member that does not release a partition loses it in time, and cannot write what it has
 * done since.
 */
static void stubborn(void)
{
	uint64_t fence[PARTITIONS], sequence;
	char text[16];
	size_t size = sizeof(text);
	unsigned refused = 0;

	begin();
	enter(0, WEIR_WORK_GREEDY);
	tallies[0].slow = true;
	world_run(&w, 3 * ROUND);
	memcpy(fence, tallies[0].fence, sizeof(fence));
	for (uint32_t i = 0; i < PARTITIONS; i++)
		CHECK(weir_work_checkpoint(tallies[0].work, i, fence[i], 10, "ten", 3) == 0);
	CHECK(weir_work_checkpoint(tallies[0].work, 0, fence[0], 9, "nine", 4) == -ERANGE);
	enter(1, WEIR_WORK_GREEDY);
	world_run_without(&w, 2 * ROUND, 0);
	CHECK(owned(1) == 0);
	world_run(&w, 6 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16 && tallies[0].forced == 16);
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		const int r = weir_work_checkpoint(tallies[0].work, i, fence[i], 20, "late", 4);

		CHECK(r == (tallies[0].fence[i] != 0 ? 0 : -ESTALE));
		refused += r != 0;
		if (r == 0)
			continue;
		size = sizeof(text);
		CHECK(weir_work_load(tallies[1].work, i, &sequence, text, &size) == 0);
		CHECK(sequence == 10 && size == 3 && memcmp(text, "ten", 3) == 0);
		CHECK(weir_work_checkpoint(tallies[1].work, i, tallies[1].fence[i], 9, "", 0) ==
		      -ERANGE);
		CHECK(weir_work_checkpoint(tallies[1].work, i, tallies[1].fence[i], 11, "", 0) ==
		      0);
	}
	CHECK(refused == 16);
	end();
}

/*
 * Nothing is taken from an owner that is stopped, however long another member asks: its lease ends
 * first. An owner that continues, and does not release the partition, has its hand-over from when
 * it has read the request, by its own clock.
 */
static void patient(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	tallies[0].slow = true;
	world_run(&w, 3 * ROUND);
	enter(1, WEIR_WORK_GREEDY);
	world_run_without(&w, 2 * ROUND, 0);
	w.actors[0].next = w.now;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(owned(0) == PARTITIONS && tallies[0].requested == 16);
	/* From here on it is stopped. */
	world_run_without(&w, 2 * REFRESH - WEIR_S, 0);
	CHECK(owned(0) == PARTITIONS && owned(1) == 0);
	world_run_without(&w, WEIR_S, 0);
	CHECK(owned(0) == 16 && owned(1) == 0);
	for (unsigned i = 0; i < LEASE / WEIR_S; i++) {
		world_run_without(&w, WEIR_S, 0);
		for (uint32_t partition = 0; partition < PARTITIONS; partition++)
			CHECK(weir_work_fence(tallies[0].work, partition) == 0 ||
			      weir_work_fence(tallies[1].work, partition) == 0);
	}
	CHECK(owned(0) == 0 && owned(1) == PARTITIONS);
	highest_owners = 0; /* it is notified when it continues */
	end();
}

/*
 * A partition that was released is reserved for the member that has asked for it, but not for the
 * length of its lease.
 */
static void kept(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	enter(1, WEIR_WORK_GREEDY);
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	/* Now it is stopped. What it has asked for is released, and another member joins. */
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(owned(0) == 16 && owned(1) == 0);
	enter(2, WEIR_WORK_GREEDY);
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_fleet_refresh(w.actors[2].fleet) == 0);
	CHECK(owned(2) == 0);
	world_run_without(&w, 2 * ROUND, 1);
	CHECK(owned(2) >= PARTITIONS / 3);
	end();
}

/* T2: a member that was stopped owns nothing when it continues. */
static void stopped(void)
{
	uint64_t fence;

	begin();
	enter(0, WEIR_WORK_GREEDY);
	enter(1, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	CHECK(owned(0) == 16);
	fence = tallies[0].fence[0] != 0 ? tallies[0].fence[0] : tallies[0].fence[1];
	world_run_without(&w, 2 * LEASE, 0);
	CHECK(owned(0) == 0 && owned(1) == PARTITIONS);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		CHECK(weir_work_checkpoint(tallies[0].work, i, fence, 1, "", 0) == -ESTALE);
	w.actors[0].next = w.now;
	world_run(&w, 8 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16 && tallies[0].forced == 16);
	highest_owners = 0; /* it is notified when it continues, and could do nothing before */
	end();
}

/* Without a store: to the lease's end, and back. EN12. */
static void store_lost(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	enter(1, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	w.down = true;
	world_run(&w, 2 * REFRESH);
	CHECK(owned(0) == 16);
	world_run(&w, LEASE);
	CHECK(owned(0) == 0 && owned(1) == 0 && SUM(forced) == PARTITIONS);
	w.down = false;
	world_run(&w, 4 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16);
	end();
}

/*
 * A member that renews its session but cannot read owns its partitions for its lease, and no
 * longer.
 */
static void blind(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	enter(1, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	CHECK(owned(0) == 16);
	w.actors[0].manner = BLIND;
	world_run(&w, LEASE + ROUND);
	CHECK(owned(0) == 0 && owned(1) == 16);
	w.actors[0].manner = ANSWERS;
	world_run(&w, 4 * ROUND);
	CHECK(owned(0) == 16 && owned(1) == 16);
	end();
}

/*
 * Commits that happen but are not answered, and members that come and go: one owner at a time, and
 * an even division in the end.
 */
static void rough(void)
{
	begin();
	for (unsigned i = 0; i < 5; i++)
		enter(i, i % 2 == 0 ? WEIR_WORK_GREEDY : WEIR_WORK_BALANCED);
	for (unsigned i = 0; i < 40; i++) {
		struct actor *a = &w.actors[draw(&w.chance) % 5];

		a->manner = draw(&w.chance) % 2 == 0 ? LOSES : UNREACHABLE;
		world_run(&w, ROUND / 2 + draw(&w.chance) % ROUND);
		a->manner = ANSWERS;
	}
	world_run(&w, 20 * ROUND);
	for (unsigned i = 0; i < 5; i++)
		CHECK(owned(i) == 6 || owned(i) == 7);
	CHECK(owned(0) + owned(1) + owned(2) + owned(3) + owned(4) == PARTITIONS);
	end();
}

static struct weir_work *open_capacity(unsigned member, uint64_t capacity, uint64_t factor,
				       uint64_t kept)
{
	struct weir_work_config config;
	struct weir_work *work;

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "rate";
	config.strategy = WEIR_WORK_WANTED;
	config.capacity = capacity;
	config.factor = factor;
	config.reserved = kept;
	CHECK(weir_work_open(w.actors[member].fleet, &config, &work, NULL, 0) == 0);
	return work;
}

/*
 * GB3 (here the last partition is worth the remainder), GB6 to GB12: the demand, and the resulting
 * units.
 */
static void capacities(void)
{
	static const struct {
		const char *id;
		uint64_t capacity, factor, reserved, want, units;
		uint32_t partitions;
	} cases[] = {
		{"GB1", 10, 1, 0, 10, 10, 10},
		{"GB3", 10050, 1000, 0, 80000, 10050, 11},
		{"GB4", 10000, 1000, 2000, 80000, 12000, 10},
		{"GB6", 10000, 1000, 2000, 0, 2000, 0},
		{"GB7", 10000, 1000, 2000, 2500, 3000, 1},
		{"GB8", 10000, 1000, 0, 4000, 4000, 4},
		{"GB9", 10000, 1000, 2000, 1800, 2000, 0},
		{"GB11", 10000, 1000, 0, 80000, 10000, 10},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_work *p;

		world_begin(&w, 100, LEASE, REFRESH);
		p = open_capacity(0, cases[i].capacity, cases[i].factor, cases[i].reserved);
		CHECK(weir_work_units(p) == cases[i].reserved);
		CHECK(weir_work_demand_set(p, cases[i].want) == 0);
		world_run(&w, 3 * ROUND);
		if (weir_work_units(p) != cases[i].units ||
		    weir_work_owned(p) != cases[i].partitions) {
			fprintf(stderr, "%s: %u partitions, %llu units\n", cases[i].id,
				weir_work_owned(p), (unsigned long long)weir_work_units(p));
			abort();
		}
		/* GB12: partitions that are no longer wanted are released. */
		CHECK(weir_work_demand_set(p, 0) == 0);
		world_run(&w, ROUND);
		CHECK(weir_work_owned(p) == 0 && weir_work_units(p) == cases[i].reserved);
		world_end(&w);
	}
}

/*
 * A partition that was released stays released, by that row: the commit that erases the row may
 * arrive when the partition is wanted again.
 */
static void given_up_late(void)
{
	struct weir_work *p[2];

	world_begin(&w, 100, LEASE, REFRESH);
	p[0] = open_capacity(0, 25, 25, 0);
	p[1] = open_capacity(1, 25, 25, 0);
	CHECK(weir_work_demand_set(p[0], 25) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(p[0]) == 25);
	CHECK(weir_work_demand_set(p[0], 0) == 0);
	w.actors[0].manner = DELAYS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO && weir_work_units(p[0]) == 0);
	CHECK(weir_work_demand_set(p[0], 25) == 0 && weir_work_demand_set(p[1], 25) == 0);
	/* It reads that the row still exists, and then stops for good. */
	(void)weir_fleet_refresh(w.actors[0].fleet);
	(void)world_deliver(&w);
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(weir_work_units(p[0]) == 0 && weir_work_units(p[1]) == 25);
	world_end(&w);
}

static struct weir_work *pair[2];

/* The commit that erases a row arrives while its owner is told that it owns the partition. */
static void gained_late(void *arg, uint32_t partition, uint64_t fence)
{
	(void)arg;
	(void)fence;
	if (w.actors[1].fleet == NULL)
		return;
	if (w.late != NULL)
		(void)world_deliver(&w);
	(void)weir_fleet_refresh(w.actors[1].fleet);
	CHECK(weir_work_fence(pair[0], partition) == 0 || weir_work_fence(pair[1], partition) == 0);
}

static void open_pair(unsigned member)
{
	struct weir_work_config config;

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = 2;
	config.on_gain = member == 0 ? gained_late : NULL;
	CHECK(weir_work_open(w.actors[member].fleet, &config, &pair[member], NULL, 0) == 0);
}

/*
 * A row that is erased never counts again, also if its member did not own the partition: it had lost
 * it by the clock, and the store may have forgotten owners.
 */
static void erased_unowned(void)
{
	world_begin(&w, 100, LEASE, REFRESH);
	open_pair(0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(pair[0]) == 2);
	w.actors[0].manner = BLIND;
	open_pair(1);
	world_run(&w, LEASE);
	CHECK(weir_work_owned(pair[0]) == 0 && weir_work_owned(pair[1]) == 0);
	w.proven = w.now;
	w.actors[0].manner = DELAYS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO && w.late != NULL);
	w.proven = WEIR_FOREVER;
	w.actors[0].manner = ANSWERS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(pair[0]) == 1 && weir_work_owned(pair[1]) == 1);
	world_end(&w);
}

/*
 * In a store that may have forgotten owners, neither a missing row nor a row justifies owning a
 * partition.
 */
static void unproven(void)
{
	begin();
	enter(0, WEIR_WORK_GREEDY);
	world_run(&w, 3 * ROUND);
	CHECK(owned(0) == PARTITIONS);
	w.actors[0].manner = BLIND;
	world_run(&w, LEASE);
	CHECK(owned(0) == 0);
	w.actors[0].manner = ANSWERS;
	w.proven = w.now;
	world_run(&w, LEASE - 1);
	CHECK(owned(0) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(owned(0) == PARTITIONS);
	/* The same, since it has forgotten everything. */
	world_forget(&w, w.now);
	world_run(&w, LEASE - 1);
	CHECK(owned(0) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(owned(0) == PARTITIONS);
	end();
}

/* A store that forgets has also forgotten how long leases were. */
static void leases_forgotten(void)
{
	begin();
	w.proven = w.now - 600 * WEIR_S;
	w.lease = 30 * WEIR_S;
	w.refresh = 10 * WEIR_S;
	enter(0, WEIR_WORK_GREEDY);
	world_run(&w, 40 * WEIR_S);
	for (unsigned i = 0; i < 60; i++) {
		world_run(&w, WEIR_S);
		CHECK(owned(0) == PARTITIONS);
	}
	w.actors[0].manner = UNREACHABLE;
	world_forget(&w, w.now);
	w.lease = 3 * WEIR_S;
	w.refresh = WEIR_S;
	enter(1, WEIR_WORK_GREEDY);
	world_run(&w, 14 * WEIR_S);
	CHECK(owned(1) == 0);
	world_run(&w, 6 * WEIR_S);
	CHECK(owned(0) == 0 && owned(1) == PARTITIONS);
	end();
}

static void refused(unsigned member, const char *why)
{
	char text[256];

	CHECK(weir_fleet_refresh(w.actors[member].fleet) == -EEXIST);
	weir_fleet_error(w.actors[member].fleet, text, sizeof(text));
	if (strcmp(text, why) != 0)
		fprintf(stderr, "%s\n", text);
	CHECK(strcmp(text, why) == 0);
}

/*
 * Partitions that differ from those in the store are refused, until no member of the other kind is
 * present.
 */
static void mixed(void)
{
	struct weir_work *p[3];

	world_begin(&w, 100, LEASE, REFRESH);
	p[0] = open_capacity(0, 500, 25, 0);
	CHECK(weir_work_demand_set(p[0], 250) == 0);
	world_run(&w, 3 * ROUND);
	p[1] = open_capacity(1, 500, 50, 0);
	CHECK(weir_work_demand_set(p[1], 500) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(p[0]) == 250 && weir_work_units(p[1]) == 0);
	refused(1, "rate is a capacity of 500 in partitions of 25 for the members present, but a "
		   "capacity of 500 in partitions of 50 here.");
	p[2] = open_capacity(2, 400, 25, 0);
	refused(2, "rate is a capacity of 500 in partitions of 25 for the members present, but a "
		   "capacity of 400 in partitions of 25 here.");
	weir_work_close(p[2]);
	weir_work_close(p[0]);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(p[1]) == 500 && weir_fleet_refresh(w.actors[1].fleet) == 0);
	world_end(&w);
}

/*
 * Closed while the store was unreachable: the partitions are free once it is back, in the same
 * session.
 */
static void closed_away(void)
{
	struct weir_work *p[2];

	world_begin(&w, 100, LEASE, REFRESH);
	p[0] = open_capacity(0, 500, 25, 0);
	p[1] = open_capacity(1, 500, 25, 0);
	CHECK(weir_work_demand_set(p[0], 500) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(p[0]) == 500 && weir_work_demand_set(p[1], 500) == 0);
	w.actors[0].manner = UNREACHABLE;
	weir_work_close(p[0]);
	world_run(&w, REFRESH);
	w.actors[0].manner = ANSWERS;
	world_run(&w, 2 * ROUND);
	CHECK(weir_work_units(p[1]) == 500);
	world_end(&w);
}

/* AZ3 and the worked example: two compete for partitions, all are owned, and none twice. */
static void competition(void)
{
	struct weir_work *p[2];

	world_begin(&w, 100, LEASE, REFRESH);
	p[0] = open_capacity(0, 500, 25, 0);
	p[1] = open_capacity(1, 500, 25, 0);
	CHECK(weir_work_demand_set(p[0], 100) == 0 && weir_work_demand_set(p[1], 1000) == 0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_units(p[0]) + weir_work_units(p[1]) == 500);
	CHECK(weir_work_demand_set(p[1], 300) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(weir_work_units(p[0]) == 100 && weir_work_units(p[1]) == 300);
	/* Its work is done: what it owned is released, and others may claim it. */
	CHECK(weir_work_demand_set(p[0], 0) == 0 && weir_work_demand_set(p[1], 500) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(weir_work_units(p[0]) == 0 && weir_work_units(p[1]) == 500);
	world_kill(&w, 1);
	CHECK(weir_work_demand_set(p[0], 500) == 0);
	world_run(&w, LEASE + 2 * ROUND);
	CHECK(weir_work_units(p[0]) == 500);
	world_end(&w);
}

/*
 * EJ6: invalid data in the store is an error, and nothing is claimed; and invalid configurations.
 */
static void bad_input(void)
{
	const struct weir_store_write odd = {"work/partition/3", WEIR_STORE_WRITE_PUT, "?", 1};
	struct weir_work_config config;
	struct weir_work *work;
	uint64_t sequence;
	size_t size = 0;

	begin();
	enter(0, WEIR_WORK_GREEDY);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &odd, 1, NULL) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO && owned(0) == 0);
	CHECK(weir_work_load(tallies[0].work, 0, &sequence, NULL, &size) == -ENOENT);
	CHECK(weir_work_load(tallies[0].work, PARTITIONS, &sequence, NULL, &size) == -EINVAL);
	CHECK(weir_work_checkpoint(tallies[0].work, 0, 0, 1, "", 0) == -ESTALE);
	CHECK(weir_work_checkpoint(tallies[0].work, 0, 1, 1, NULL, 1) == -EINVAL);
	CHECK(weir_work_release(tallies[0].work, 0, 1) == -ESTALE);
	CHECK(weir_work_demand_set(tallies[0].work, 1) == -EINVAL);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EEXIST);
	config.name = "a/b";
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.name = "other";
	config.count = WEIR_WORK_MAX + 1;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.count = 0;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	/* EG8 */
	config.count = 4;
	config.strategy = (enum weir_work_strategy)17;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.strategy = WEIR_WORK_GREEDY;
	config.weight = WEIR_SHARE_WEIGHT_MAX + 1;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.strategy = WEIR_WORK_WANTED;
	config.count = 0;
	config.capacity = config.factor = 100;
	config.weight = 1;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.weight = 0;
	config.hold = 1;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	config.hold = 0;
	/* GB2 */
	config.capacity = 10000;
	config.factor = 1;
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == -EINVAL);
	end();
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	cold(WEIR_WORK_GREEDY, 1);
	cold(WEIR_WORK_BALANCED, 4);
	newcomers();
	weighted();
	holding();
	held_on();
	leaving();
	stubborn();
	patient();
	kept();
	stopped();
	store_lost();
	blind();
	unproven();
	leases_forgotten();
	rough();
	capacities();
	competition();
	given_up_late();
	erased_unowned();
	mixed();
	closed_away();
	bad_input();
	test_store_end(&test_store);
	printf("partitions behave as specified, %s\n", test_store.kind);
	return 0;
}
