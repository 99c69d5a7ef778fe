/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares_faults [KIND]: the behaviour of a share when its process stops, when the store is lost,
 * full or forgetful, and when commits are late or not answered; case by case, in simulated time,
 * with a store in memory or of that kind.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shares_rig.h"

/*
 * T2: a member that is stopped for two leases has nothing when it continues, until it has reached
 * the store again.
 */
static void stopped(void)
{
	char key[WEIR_SHARE_KEY_SIZE], later_key[WEIR_SHARE_KEY_SIZE];
	struct weir_store_check fence, later;
	const struct weir_store_write guarded = {"guarded/row", WEIR_STORE_WRITE_PUT, "x", 1};

	begin(100);
	enter(2, 100);
	CHECK(weir_share_fence(w.actors[0].share, &fence, key) == 0);
	CHECK(weir_store_commit(w.store, 0, &fence, 1, &guarded, 1, NULL) == 0);
	world_run_without(&w, 2 * LEASE, 0);
	CHECK(world_units(&w, 0) == 0 && world_units(&w, 1) == 100);
	CHECK(weir_store_commit(w.store, 0, &fence, 1, &guarded, 1, NULL) == -EAGAIN);
	CHECK(weir_share_fence(w.actors[0].share, &later, later_key) == -ESTALE);
	w.actors[0].next = w.now;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	CHECK(weir_share_fence(w.actors[0].share, &later, later_key) == 0 &&
	      later.version > fence.version);
	CHECK(weir_store_commit(w.store, 0, &later, 1, &guarded, 1, NULL) == 0);
	end();
}

/*
 * A member that renews its session but cannot read does not see a cut: it has its lease, and no
 * longer.
 */
static void blind(void)
{
	begin(100);
	enter(2, 100);
	w.actors[0].manner = BLIND;
	CHECK(weir_fleet_change(w.store, "limit", 60) == 0);
	world_run(&w, REFRESH * 2);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) <= 10);
	world_run(&w, LEASE);
	CHECK(world_units(&w, 0) == 0);
	w.capacity = 60;
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 30 && world_units(&w, 1) == 30);
	end();
}

/* T4: without a store, a share is held, and then becomes what loss says; a refresh restores it. */
static void store_lost(enum weir_loss loss, uint64_t reserved, uint64_t left)
{
	begin(100);
	w.limit.loss = loss;
	w.limit.reserved = reserved;
	w.limit.members = reserved > 0 ? 2 : 0;
	enter(2, 100);
	CHECK(info_of(0).state == WEIR_SHARE_LEASED && world_units(&w, 0) == 50);
	w.down = true;
	world_run(&w, REFRESH * 2);
	CHECK(info_of(0).state == WEIR_SHARE_HOLDING && world_sum(&w) == 100);
	w.capacity = UINT64_MAX;
	world_run(&w, LEASE);
	CHECK(info_of(0).state == WEIR_SHARE_LOST && world_units(&w, 0) == left);
	w.down = false;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	world_run(&w, ROUNDS);
	CHECK(info_of(0).state == WEIR_SHARE_LEASED && world_sum(&w) == 100);
	end();
}

/* Includes DR2 and DR3. */
static void losses(void)
{
	store_lost(WEIR_LOSS_RESERVED, 0, 0);
	store_lost(WEIR_LOSS_RESERVED, 10, 10);
	store_lost(WEIR_LOSS_EVEN, 0, 50);
	store_lost(WEIR_LOSS_HOLD, 0, 50);
	store_lost(WEIR_LOSS_HOLD, 10, 50);
	store_lost(WEIR_LOSS_OPEN, 0, 100);
}

/* T9: commits that happen, but are not answered. */
static void lost_replies(void)
{
	begin(100);
	enter(2, 100);
	for (unsigned i = 0; i < 20; i++) {
		w.actors[i % 2].manner = LOSES;
		world_want(&w, i % 2, draw(&w.chance) % 100);
		world_run(&w, REFRESH);
		CHECK(world_sum(&w) <= 100);
		w.actors[i % 2].manner = ANSWERS;
		world_want(&w, 1 - i % 2, draw(&w.chance) % 100);
		world_run(&w, REFRESH * 3 / 2);
	}
	world_want(&w, 0, 100);
	world_want(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

/* A commit that shrinks a share, and was not answered, arrives when the units are wanted back. */
static void late_commit(bool others_first)
{
	begin(100);
	enter(2, 100);
	w.actors[0].manner = DELAYS;
	world_want(&w, 0, 10);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO);
	CHECK(world_units(&w, 0) == 10);
	w.actors[0].manner = ANSWERS;
	world_want(&w, 0, 100);
	if (others_first) {
		/*
		 * It has not arrived: the units wanted back are written first, which makes it fail.
		 */
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 50);
		CHECK(world_deliver(&w) == -EAGAIN);
	} else {
		CHECK(world_deliver(&w) == 0);
		CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
		CHECK(world_units(&w, 1) == 90 && world_units(&w, 0) == 10);
	}
	world_run(&w, 2 * ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

/* An earlier demand arrives late: the one written since stays. */
static void late_want(void)
{
	begin(100);
	enter(2, 100);
	w.actors[0].manner = DELAYS;
	world_want(&w, 0, 200);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO);
	w.actors[0].manner = ANSWERS;
	world_want(&w, 0, 300);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 50);
	CHECK(world_deliver(&w) == -EAGAIN);
	end();
}

/* The same, where nothing would have to be written to get the units back: all is unchanged. */
static void late_commit_unmoved(void)
{
	begin(100);
	enter(2, 100);
	w.actors[0].manner = DELAYS;
	world_want(&w, 0, 10);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO);
	world_want(&w, 0, 100);
	w.actors[0].manner = UNREACHABLE;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO && world_units(&w, 0) == 10);
	w.actors[0].manner = ANSWERS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 50);
	CHECK(world_deliver(&w) == -EAGAIN);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0 && world_sum(&w) == 100);
	end();
}

/*
 * A store that answers but refuses writes takes nothing away: a member that wants less keeps its
 * line of the ledger, and has the units at once when it wants more again. The state is reported,
 * and ends by itself.
 */
static void full_store(void)
{
	begin(100);
	enter(3, 100);
	CHECK(world_sum(&w) == 100);
	w.full = true;
	for (unsigned i = 0; i < 20; i++) {
		world_want(&w, i % 3, draw(&w.chance) % 100);
		world_run(&w, REFRESH);
		CHECK(world_sum(&w) == 100);
	}
	for (unsigned i = 0; i < 3; i++) {
		CHECK(info_of(i).state == WEIR_SHARE_FROZEN && info_of(i).reason[0] != '\0');
		world_want(&w, i, 40 * i);
	}
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -ENOSPC);
	w.full = false;
	world_run(&w, ROUNDS);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(info_of(i).state == WEIR_SHARE_LEASED && info_of(i).reason[0] == '\0');
		CHECK(world_units(&w, i) == (i < 2 ? 40 * i : 60));
	}
	end();
}

/*
 * Units that must be given up are given up, written or not; and a new member has what is reserved.
 */
static void full_store_cut(void)
{
	begin(100);
	w.limit.reserved = 10;
	w.limit.members = 4;
	enter(3, 100);
	CHECK(world_sum(&w) == 90);
	CHECK(weir_fleet_change(w.store, "limit", 60) == 0);
	w.full = true;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -ENOSPC);
	CHECK(world_units(&w, 0) == 16 || world_units(&w, 0) == 17);
	world_run(&w, ROUNDS);
	w.capacity = 60;
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 50);
	world_enter(&w, 3, 100);
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 3) == 10 && info_of(3).state == WEIR_SHARE_LOCAL);
	CHECK(info_of(3).reason[0] != '\0' && world_sum(&w) <= 60);
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE);
	w.full = false;
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 50 && info_of(3).state == WEIR_SHARE_LEASED);
	end();
}

/* Other members commit first each time: units that were to be given up are kept. */
static void taken_back(void)
{
	begin(100);
	enter(2, 100);
	w.actors[0].manner = TOO_LATE;
	world_want(&w, 0, 10);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 50);
	w.actors[0].manner = ANSWERS;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 10);
	end();
}

/*
 * DX1 to DX3: a store that has forgotten everything. Members keep what they hold, new ones wait
 * until old leases would have ended; then all is divided anew.
 */
static void learning(void)
{
	begin(100);
	enter(2, 100);
	CHECK(world_sum(&w) == 100);
	world_forget(&w, w.now);
	world_enter(&w, 2, 100);
	CHECK(weir_fleet_refresh(w.actors[2].fleet) == 0);
	CHECK(world_units(&w, 2) == 0 && info_of(2).state == WEIR_SHARE_LEARNING);
	world_run(&w, LEASE - WEIR_S);
	CHECK(world_units(&w, 2) == 0 && world_sum(&w) == 100);
	CHECK(info_of(0).state == WEIR_SHARE_LEARNING);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 2) == 33 || world_units(&w, 2) == 34);
	CHECK(world_sum(&w) == 100 && info_of(2).state == WEIR_SHARE_LEASED);
	end();
}

static void enter_with(unsigned member, weir_dur lease)
{
	w.lease = lease;
	w.refresh = lease / 3;
	world_enter(&w, member, 100);
}

/*
 * All leases end with those of the limit, and are renewed often enough; a member with another lease
 * reports that.
 */
static void leases_differ(void)
{
	struct weir_fleet_limit limit;

	begin(100);
	enter_with(0, 30 * WEIR_S);
	world_run(&w, 40 * WEIR_S);
	CHECK(world_units(&w, 0) == 100 && info_of(0).reason[0] == '\0');
	enter_with(1, 3 * WEIR_S);
	world_run(&w, 40 * WEIR_S);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	CHECK(strstr(info_of(1).reason, "30 s, and this process of 3 s") != NULL);
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	limit.lease = 6 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	world_run(&w, 20 * WEIR_S);
	CHECK(strstr(info_of(0).reason, "6 s, and this process of 30 s") != NULL);
	w.least = UINT64_MAX;
	world_run(&w, 40 * WEIR_S);
	CHECK(w.least == 100);
	w.actors[0].manner = UNREACHABLE;
	world_run(&w, 6 * WEIR_S);
	CHECK(world_units(&w, 0) == 0 && info_of(0).state == WEIR_SHARE_LOST);
	limit.version = 0;
	limit.lease = 19 * WEIR_MS;
	CHECK(weir_fleet_configure(w.store, "short", &limit, NULL, 0) == -EINVAL);
	limit.lease = 3601 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "long", &limit, NULL, 0) == -EINVAL);
	end();
}

/* A store that can forget also forgets how long leases are: so none is longer than learning. */
static void leases_forgotten(void)
{
	begin(100);
	w.proven = w.now - 600 * WEIR_S;
	enter_with(0, 30 * WEIR_S);
	world_run(&w, 40 * WEIR_S);
	CHECK(strstr(info_of(0).reason, "The store can forget") != NULL);
	w.least = UINT64_MAX;
	world_run(&w, 60 * WEIR_S);
	CHECK(w.least == 100);
	w.actors[0].manner = UNREACHABLE;
	world_forget(&w, w.now);
	enter_with(1, 3 * WEIR_S);
	world_run(&w, 14 * WEIR_S);
	CHECK(info_of(1).state == WEIR_SHARE_LEARNING && world_units(&w, 1) == 0);
	world_run(&w, 6 * WEIR_S);
	CHECK(world_units(&w, 0) == 0 && world_units(&w, 1) == 100);
	end();
}

static void make_learning(weir_dur lease, weir_dur learning)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = 100;
	limit.lease = lease;
	limit.learning_period = learning;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	CHECK(limit.lease == lease && limit.learning_period == learning);
}

/* A limit's time to learn counts, be it shorter than that of the members, or longer. */
static void learning_of_limit(weir_dur learning)
{
	begin(100);
	make_learning(4 * WEIR_S, learning);
	enter(2, 100);
	CHECK(world_sum(&w) == 100);
	world_forget(&w, w.now);
	make_learning(4 * WEIR_S, learning);
	world_enter(&w, 2, 100);
	CHECK(weir_fleet_refresh(w.actors[2].fleet) == 0);
	world_run(&w, learning - WEIR_S);
	CHECK(world_units(&w, 2) == 0 && world_sum(&w) == 100);
	CHECK(info_of(2).state == WEIR_SHARE_LEARNING);
	world_run(&w, 8 * WEIR_S);
	CHECK(world_units(&w, 2) == 33 || world_units(&w, 2) == 34);
	CHECK(info_of(2).state == WEIR_SHARE_LEASED);
	end();
}

/*
 * A store that has forgotten the limit has forgotten how long its leases were before they were
 * shortened: whatever members have read, they learn for their own time.
 */
static void learning_forgotten(void)
{
	begin(100);
	make_learning(4 * WEIR_S, 5 * WEIR_S);
	enter(2, 100);
	world_forget(&w, w.now);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	world_enter(&w, 2, 100);
	world_run(&w, 14 * WEIR_S);
	CHECK(world_units(&w, 2) == 0 && info_of(2).state == WEIR_SHARE_LEARNING);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 2) == 33 || world_units(&w, 2) == 34);
	end();
}

/* A claim to units that the member does not own any more is not accepted. */
static void no_claims(void)
{
	begin(100);
	enter(1, 100);
	world_run_without(&w, 2 * LEASE, 0);
	world_enter(&w, 1, 100);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0 && world_units(&w, 1) == 100);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 0);
	w.actors[0].next = w.now;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	stopped();
	blind();
	losses();
	lost_replies();
	late_commit(true);
	late_commit(false);
	late_want();
	late_commit_unmoved();
	full_store();
	full_store_cut();
	taken_back();
	learning();
	leases_differ();
	leases_forgotten();
	learning_of_limit(5 * WEIR_S);
	learning_of_limit(40 * WEIR_S);
	learning_forgotten();
	no_claims();
	test_store_end(&test_store);
	printf("shares keep their limit through faults, %s\n", test_store.kind);
	return 0;
}
