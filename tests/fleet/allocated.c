/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocated [KIND]: limits with an allocator, case by case, in simulated time, with a store in
 * memory or of that kind.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shares_rig.h"

#define SETTLED (6 * REFRESH)

static void begin_allocated(uint64_t capacity)
{
	begin(capacity);
	w.limit.allocated = 1;
	for (unsigned i = 0; i < WORLD_MEMBERS_MAX; i++)
		w.actors[i].label = NULL;
}

static struct weir_fleet_limit inspect(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	return limit;
}

/* The index of the member that is the allocator, by its label; or WORLD_MEMBERS_MAX. */
static unsigned allocator(void)
{
	const struct weir_fleet_limit limit = inspect();

	for (unsigned i = 0; i < w.count; i++)
		if (w.actors[i].label != NULL && strcmp(w.actors[i].label, limit.allocator) == 0)
			return i;
	return WORLD_MEMBERS_MAX;
}

static const char *const labels[] = {"a", "b", "c", "d"};

static void enter_labelled(unsigned count, uint64_t wants)
{
	for (unsigned i = 0; i < count; i++) {
		w.actors[i].label = labels[i];
		world_enter(&w, i, wants);
	}
	world_run(&w, SETTLED);
}

/* Each has its part; members that come and want something else are divided anew. */
static void divided(void)
{
	begin_allocated(100);
	enter_labelled(4, 100);
	CHECK(world_sum(&w) == 100 && world_units(&w, 0) == 25);
	CHECK(inspect().allocated == 1 && allocator() < 4);
	world_want(&w, 0, 10);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 10 && world_units(&w, 1) == 30 && world_sum(&w) == 100);
	w.actors[4].weight = 3;
	w.actors[4].label = "e";
	world_enter(&w, 4, 100);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 4) == 45 && world_units(&w, 1) == 15 && world_sum(&w) == 100);
	weir_fleet_close(w.actors[4].fleet);
	w.actors[4].fleet = NULL;
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 1) == 30 && inspect().members == 4 && inspect().granted == 100);
	end();
}

/* Whatever happens to it, the others keep what they have, and another one goes on. */
static void replaced(void)
{
	unsigned first, second;

	begin_allocated(100);
	enter_labelled(4, 100);
	first = allocator();
	world_kill(&w, first);
	world_run(&w, LEASE / 2);
	CHECK(world_sum(&w) == 75);
	world_run(&w, LEASE / 2 + SETTLED);
	second = allocator();
	CHECK(second < 4 && second != first && world_sum(&w) == 100);
	/* One that leaves is replaced at once. */
	weir_fleet_close(w.actors[second].fleet);
	w.actors[second].fleet = NULL;
	world_run(&w, SETTLED);
	CHECK(allocator() < 4 && allocator() != second && world_sum(&w) == 100);
	/* One that is cut off loses all it has, and is a member again later. */
	first = allocator();
	w.actors[first].manner = UNREACHABLE;
	world_run(&w, LEASE + SETTLED);
	CHECK(allocator() != first && world_units(&w, first) == 0 && world_sum(&w) == 100);
	w.actors[first].manner = ANSWERS;
	world_run(&w, SETTLED);
	CHECK(world_units(&w, first) == 50 && world_sum(&w) == 100);
	end();
}

struct seen {
	const char *label;
	uint64_t id;
};

static bool note_id(void *arg, const struct weir_fleet_member *member)
{
	struct seen *seen = arg;

	if (strcmp(member->label, seen->label) == 0)
		seen->id = member->id;
	return true;
}

/* A grant is for one row of its member: if the row is made anew, the grant is void. */
static void regranted(void)
{
	struct weir_fleet_limit limit;
	struct weir_store_write gone = {NULL, WEIR_STORE_WRITE_ERASE, NULL, 0};
	struct seen seen = {.id = 0};
	unsigned first, other;
	char key[64];

	begin_allocated(100);
	enter_labelled(2, 100);
	first = allocator();
	other = first == 0 ? 1 : 0;
	seen.label = labels[other];
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, note_id, &seen) == 0 && seen.id != 0);
	(void)snprintf(key, sizeof(key), "limit/m/%016" PRIx64, seen.id);
	gone.key = key;
	world_kill(&w, first);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &gone, 1, NULL) == 0);
	world_run(&w, 2 * REFRESH);
	CHECK(inspect().members == 2 && world_units(&w, other) == 0);
	world_run(&w, LEASE + SETTLED);
	CHECK(world_units(&w, other) == 100);
	end();
}

static bool says_none(void *arg, const struct weir_fleet_member *member)
{
	*(bool *)arg |= strstr(member->reason, "It has no allocator") != NULL;
	return true;
}

/* While there is none, observers say so. */
static void missing(void)
{
	const struct weir_store_write gone = {"limit/allocator", WEIR_STORE_WRITE_ERASE, NULL, 0};
	bool said = false;
	struct weir_fleet_limit limit;

	begin_allocated(100);
	enter_labelled(2, 100);
	world_want(&w, 1, 0);
	world_run(&w, SETTLED);
	w.actors[0].manner = w.actors[1].manner = UNREACHABLE;
	w.actors[2].label = labels[2];
	world_enter(&w, 2, 100);
	CHECK(weir_fleet_refresh(w.actors[2].fleet) == 0);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &gone, 1, NULL) == 0);
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, says_none, &said) == 0 && said);
	CHECK(limit.allocated == 1 && limit.allocator[0] == '\0');
	w.actors[0].manner = w.actors[1].manner = ANSWERS;
	world_run(&w, SETTLED);
	CHECK(allocator() < 3 && world_sum(&w) == 100 && world_units(&w, 2) == 50);
	end();
}

/* What a member is to give up is not granted to another one before it has acknowledged that. */
static void acknowledged(void)
{
	unsigned leader, other;

	begin_allocated(100);
	enter_labelled(2, 100);
	leader = allocator();
	other = 1 - leader;
	/* The other one goes on with its lease, but sees nothing. */
	world_want(&w, leader, 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, other) == 100);
	world_want(&w, leader, 100);
	world_run_without(&w, LEASE / 2, other);
	CHECK(world_units(&w, leader) == 0 && world_units(&w, other) == 100);
	world_run_without(&w, LEASE + REFRESH, other);
	CHECK(world_units(&w, leader) == 100 && world_units(&w, other) == 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, leader) == 50 && world_units(&w, other) == 50);
	end();
}

/* Until a member has kept its session, in a regular refresh. */
static void run_until_kept(unsigned member)
{
	const unsigned before = w.actors[member].keeps;

	while (w.actors[member].keeps == before)
		world_run(&w, REFRESH / 100);
}

/*
 * A member that wants more writes that within a second, without keeping its session, and looks for
 * what it is granted before its next regular refresh.
 */
static void asking(void)
{
	unsigned other, before;

	begin_allocated(100);
	enter_labelled(2, 10);
	other = 1 - allocator();
	for (uint64_t wants = 20; wants <= 80; wants += 20) {
		run_until_kept(other);
		before = w.actors[other].keeps;
		world_want(&w, other, wants);
		world_run(&w, WEIR_S + REFRESH / 100);
		CHECK(info_of(other).wants == wants && w.actors[other].keeps == before);
		world_run(&w, 7 * REFRESH / 10 - WEIR_S / 10);
		CHECK(world_units(&w, other) == wants);
	}
	end();
}

/* What could not be written was not given up. */
static void not_given_up(void)
{
	unsigned other;

	begin_allocated(100);
	enter_labelled(2, 50);
	other = 1 - allocator();
	w.actors[other].manner = TOO_LATE;
	world_want(&w, other, 10);
	world_run(&w, 2 * REFRESH);
	world_want(&w, other, 50);
	world_run(&w, 2 * REFRESH);
	CHECK(world_units(&w, other) == 50);
	w.actors[other].manner = ANSWERS;
	world_want(&w, other, 10);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, other) == 10);
	end();
}

/* A regular refresh that is due soon comes when it is asked for one, and not once more. */
static void asked_soon(void)
{
	unsigned came = 0;

	begin_allocated(100);
	enter_labelled(1, 10);
	for (unsigned round = 0; round < 20; round++) {
		unsigned before;

		run_until_kept(0);
		world_run(&w, 7 * REFRESH / 10);
		before = w.actors[0].keeps;
		world_want(&w, 0, round % 2 == 0 ? 50 : 10);
		world_run(&w, WEIR_S / 10);
		if (w.actors[0].keeps == before)
			continue;
		came++;
		world_run(&w, 7 * REFRESH / 10);
		CHECK(w.actors[0].keeps == before + 1);
	}
	CHECK(came > 0);
	end();
}

/* Units that the first member has lent, and what it was told last that it is to have. */
static uint64_t lent_units, told_units;

static uint64_t lent(void *arg, uint64_t units)
{
	(void)arg;
	told_units = units;
	return lent_units;
}

static void lend(uint64_t units)
{
	lent_units = units;
	world_run(&w, 2 * SETTLED);
}

/* Nothing is given back as long as more is lent than is granted. */
static void lending(void)
{
	begin_allocated(100);
	lent_units = 80;
	w.limit.lent = lent;
	enter_labelled(1, 100);
	CHECK(told_units == 100 && world_units(&w, 0) == 100);
	w.limit.lent = NULL;
	world_enter(&w, 1, 100);
	lend(80);
	CHECK(told_units == 50 && world_units(&w, 0) == 80 && world_units(&w, 1) == 0);
	lend(60);
	CHECK(world_units(&w, 0) == 60 && world_units(&w, 1) == 0);
	lend(50);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	lend(1000);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	lent_units = 50;
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE + SETTLED);
	CHECK(world_units(&w, 1) == 100);
	end();
}

/* A commit of an allocator that arrives after its successor has written is refused. */
static void late(void)
{
	unsigned first;

	begin_allocated(100);
	enter_labelled(3, 30);
	first = allocator();
	w.actors[first].manner = DELAYS;
	world_want(&w, first, 40);
	world_run(&w, 2 * REFRESH);
	CHECK(w.late != NULL);
	w.actors[first].manner = UNREACHABLE;
	for (unsigned i = 0; i < 3; i++)
		if (i != first)
			world_want(&w, i, 100);
	world_run(&w, LEASE + SETTLED);
	CHECK(world_sum(&w) == 100 && allocator() != first);
	CHECK(world_deliver(&w) < 0);
	w.actors[first].manner = ANSWERS;
	world_run(&w, SETTLED);
	CHECK(world_sum(&w) == 100);
	end();
}

/* Commits that are not answered, of all members, whether they happen or come later. */
static void unanswered(enum manner manner)
{
	begin_allocated(100);
	enter_labelled(3, 100);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 3; i++) {
			w.actors[i].manner = (round + i) % 2 == 0 ? manner : ANSWERS;
			world_want(&w, i, 10 + 17 * (round + i) % 90);
		}
		world_run(&w, REFRESH);
		if (w.late != NULL && round % 3 == 0)
			(void)world_deliver(&w);
	}
	late_commit_free(w.late);
	w.late = NULL;
	for (unsigned i = 0; i < 3; i++) {
		w.actors[i].manner = ANSWERS;
		world_want(&w, i, 100);
	}
	world_run(&w, SETTLED + LEASE);
	CHECK(world_sum(&w) == 100);
	end();
}

/* A cut applies also while there is no allocator. */
static void cut(void)
{
	unsigned leader;

	begin_allocated(100);
	enter_labelled(4, 100);
	leader = allocator();
	world_kill(&w, leader);
	CHECK(weir_fleet_change(w.store, "limit", 50) == 0);
	world_run(&w, 2 * REFRESH);
	CHECK(world_sum(&w) <= 50 && world_sum(&w) >= 33);
	w.capacity = 50;
	world_run(&w, LEASE + SETTLED);
	CHECK(world_sum(&w) == 50);
	CHECK(weir_fleet_change(w.store, "limit", 200) == 0);
	w.capacity = 200;
	world_run(&w, SETTLED);
	CHECK(world_sum(&w) == 200);
	end();
}

/* Reserved units have as many seats as members are configured. */
static void reserved(void)
{
	begin_allocated(100);
	w.limit.reserved = 10;
	w.limit.members = 2;
	world_enter(&w, 0, 100);
	CHECK(world_units(&w, 0) == 10);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 90);
	world_enter(&w, 1, 100);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	w.capacity = 110; /* until it is told that it has no seat */
	world_enter(&w, 2, 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 2) == 0 && info_of(2).state == WEIR_SHARE_SURPLUS);
	CHECK(world_units(&w, 0) + world_units(&w, 1) == 100);
	world_kill(&w, 0);
	world_run(&w, LEASE + SETTLED);
	CHECK(world_units(&w, 2) == 10 && world_units(&w, 1) == 90);
	end();
}

static void drained(void)
{
	begin_allocated(100);
	enter_labelled(2, 100);
	CHECK(weir_fleet_drain_label(w.store, "limit", "b", true) == 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 100 && world_units(&w, 1) == 0);
	CHECK(info_of(1).state == WEIR_SHARE_DRAINED);
	CHECK(weir_fleet_drain_label(w.store, "limit", "b", false) == 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

/* The backend throttles one member: there is less for all, and it comes back in steps. */
static void throttled(void)
{
	begin_allocated(100);
	enter_labelled(2, 100);
	weir_share_throttled(w.actors[1].share);
	world_run(&w, 3 * REFRESH);
	CHECK(world_sum(&w) >= 70 && world_sum(&w) <= 80);
	world_run(&w, 12 * REFRESH);
	CHECK(world_sum(&w) == 100);
	end();
}

/* A store that forgets: members claim what they hold, and no other gets it. */
static void forgotten(void)
{
	begin_allocated(100);
	enter_labelled(3, 100);
	w.proven = w.now;
	world_forget(&w, w.now);
	world_enter(&w, 3, 100);
	world_run(&w, LEASE / 2);
	CHECK(world_sum(&w) <= 100 && world_sum(&w) >= 99 && world_units(&w, 3) == 0);
	world_run(&w, LEASE + SETTLED);
	CHECK(world_sum(&w) == 100 && world_units(&w, 3) == 25);
	end();
}

/* Measured demand has headroom. */
static void headroom(void)
{
	begin_allocated(100);
	w.measured = true;
	world_enter(&w, 0, 0);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 50);
	end();
}

/* Processes that know nothing of it take part; it changes only without members. */
static void configured(void)
{
	struct weir_fleet_limit limit;

	begin_allocated(100);
	enter_labelled(1, 100);
	w.limit.allocated = 0;
	world_enter(&w, 1, 100);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 1) == 50 && world_sum(&w) == 100);
	limit = inspect();
	limit.allocated = 0;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == -EBUSY);
	limit.allocated = 1;
	limit.capacity = 80;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	world_run(&w, SETTLED);
	CHECK(world_sum(&w) == 80);
	for (unsigned i = 0; i < 2; i++) {
		weir_fleet_close(w.actors[i].fleet);
		w.actors[i].fleet = NULL;
	}
	limit = inspect();
	limit.allocated = 0;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	w.limit.allocated = 1; /* the store says otherwise */
	world_enter(&w, 0, 100);
	world_enter(&w, 1, 100);
	world_run(&w, SETTLED);
	CHECK(inspect().allocated == 0 && inspect().allocator[0] == '\0');
	CHECK(world_units(&w, 0) == 40 && world_units(&w, 1) == 40);
	for (unsigned i = 0; i < 2; i++) {
		weir_fleet_close(w.actors[i].fleet);
		w.actors[i].fleet = NULL;
	}
	limit = inspect();
	limit.allocated = 1;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	world_enter(&w, 0, 100);
	world_run(&w, SETTLED);
	CHECK(world_units(&w, 0) == 80 && inspect().allocated == 1);
	CHECK(weir_fleet_remove(w.store, "limit") == -EBUSY);
	weir_fleet_close(w.actors[0].fleet);
	w.actors[0].fleet = NULL;
	CHECK(weir_fleet_remove(w.store, "limit") == 0);
	CHECK(weir_fleet_remove(w.store, "limit") == -ENOENT);
	world_end(&w);
}

static bool count_rows(void *arg, const struct weir_store_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return true;
}

static void put(const char *key, const char *text)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, text, strlen(text)};

	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
}

/* Rows that are no rows, or of members that are not there. */
static void damaged(void)
{
	static const char *const prefix = "limit/grant/";
	static const char *const wrong[] = {
		"",
		"weir-grants 1 1000000 0 1 0 100\n",
		"weir-grants 1 1000001 1 1 0 100\n",
		"weir-grants 1 1000000 1 1 2 100\n",
		"weir-grants 2 1000000 1 1 0 100\n",
		"weir-grants 1 1000000 1 1 0 99999999999999999999\n",
	};
	unsigned rows = 0;

	begin_allocated(100);
	enter_labelled(2, 100);
	put("limit/grant/0000000000000007", "weir-grant 1 7 1 100 100 1 0\n");
	world_run(&w, SETTLED);
	CHECK(weir_store_read(w.store, &prefix, 1, count_rows, &rows, NULL) == 0 && rows == 2);
	CHECK(world_sum(&w) == 100);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put("limit/grants", wrong[i]);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
		CHECK(world_sum(&w) == 100);
	}
	end();
}

/* A hundred limits of one process, of which some are allocated. */
static void many(void)
{
	static struct weir_share *shares[100];
	struct weir_share_config config;
	char name[32];

	begin_allocated(100);
	world_enter(&w, 0, 100);
	config = w.limit;
	config.name = name;
	for (unsigned i = 1; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "limit-%u", i);
		config.allocated = i % 3 > 0;
		CHECK(weir_share_join(w.actors[0].fleet, &config, &shares[i], NULL, 0) == 0);
		CHECK(weir_share_demand_set(shares[i], i) == 0);
	}
	world_run(&w, SETTLED);
	for (unsigned i = 1; i < 100; i++)
		CHECK(weir_share_units(shares[i]) == i);
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	divided();
	replaced();
	regranted();
	missing();
	acknowledged();
	asking();
	asked_soon();
	not_given_up();
	lending();
	late();
	unanswered(LOSES);
	unanswered(DELAYS);
	unanswered(OVERTAKEN);
	cut();
	reserved();
	drained();
	throttled();
	forgotten();
	headroom();
	configured();
	damaged();
	many();
	test_store_end(&test_store);
	printf("allocated limits behave as specified, %s\n", test_store.kind);
	return 0;
}
