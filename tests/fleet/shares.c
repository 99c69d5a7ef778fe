/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares [KIND]: the behaviour of a share while members come and go, case by case, in simulated
 * time, with a store in memory or of that kind.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <weir/limits.h>

#include "shares_rig.h"

/*
 * DS1 to DS3, in weir's terms: a dead member holds its share until its session ends, and not
 * longer.
 */
static void death(void)
{
	begin(100);
	enter(3, 100);
	CHECK(world_sum(&w) == 100);
	world_kill(&w, 0);
	world_run(&w, LEASE - ROUNDS);
	CHECK(world_sum(&w) < 100);
	world_run(&w, LEASE);
	CHECK(world_sum(&w) == 100 && world_units(&w, 1) == 50);
	end();
}

/* DX6: a member that leaves gives its share back at once. */
static void release(void)
{
	begin(100);
	enter(2, 100);
	weir_fleet_close(w.actors[0].fleet);
	w.actors[0].fleet = NULL;
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(world_units(&w, 1) == 100);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_sum(&w) == 100);
	weir_share_leave(w.actors[0].share);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0 && world_units(&w, 1) == 100);
	w.actors[0].share = NULL;
	weir_fleet_close(w.actors[0].fleet);
	w.actors[0].fleet = NULL;
	end();
}

/* Another limit, of which nothing is wanted: the session goes on. */
static void join_another(unsigned member)
{
	struct weir_share_config other = w.limit;
	struct weir_share *share;

	other.name = "other";
	CHECK(weir_share_join(w.actors[member].fleet, &other, &share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(share, 0) == 0);
	w.actors[member].share = share;
}

/*
 * A member that leaves while the store is unreachable is removed by a refresh of the same session.
 */
static void release_unanswered(void)
{
	struct weir_share *left;

	begin(100);
	enter(2, 100);
	left = w.actors[0].share;
	join_another(0);
	w.actors[0].manner = UNREACHABLE;
	weir_share_leave(left);
	world_run(&w, WEIR_S);
	CHECK(world_units(&w, 1) == 50);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 100);
	/* The same limit again, at once. */
	w.actors[0].manner = UNREACHABLE;
	left = w.actors[0].share;
	CHECK(weir_share_join(w.actors[0].fleet, &w.limit, &w.actors[0].share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(w.actors[0].share, 100) == 0);
	weir_share_leave(left);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

static unsigned members_of(const char *name)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, name, &limit, NULL, NULL) == 0);
	return limit.members;
}

/* Joining was not answered, and happened, or happens after the member has left. */
static void release_uncertain(bool late)
{
	struct weir_share *left;

	begin(100);
	enter(1, 100);
	join_another(0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	w.limit.name = "third";
	CHECK(weir_share_join(w.actors[0].fleet, &w.limit, &left, NULL, 0) == 0);
	w.actors[0].manner = late ? DELAYS : LOSES;
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EIO);
	w.actors[0].manner = UNREACHABLE;
	weir_share_leave(left);
	w.actors[0].manner = ANSWERS;
	if (late) {
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
		CHECK(world_deliver(&w) == 0 && members_of("third") == 1);
	}
	world_run(&w, ROUNDS);
	CHECK(members_of("third") == 0);
	world_run(&w, 2 * LEASE);
	end();
}

/*
 * T6: 120 becomes 60 while all of it is held: no share grows before the sum fits, and none is
 * negative.
 */
static void cut(void)
{
	begin(120);
	enter(2, 100);
	world_want(&w, 0, 20);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 20 && world_units(&w, 1) == 100);
	CHECK(weir_fleet_change(w.store, "limit", 60) == 0);
	world_want(&w, 0, 100);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(world_units(&w, 0) == 0);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(world_units(&w, 1) == 30);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(world_units(&w, 0) == 30);
	w.capacity = 60;
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 60 && info_of(0).capacity == 60);
	CHECK(weir_fleet_change(w.store, "limit", UINT64_MAX) == -EINVAL);
	end();
}

/* Reserved units are available before the store is reached, and without a store. */
static void reserved(void)
{
	begin(100);
	w.limit.reserved = 10;
	w.limit.members = 3;
	w.down = true;
	world_enter(&w, 0, 100);
	CHECK(world_units(&w, 0) == 10 && info_of(0).state == WEIR_SHARE_LOCAL);
	world_run(&w, LEASE);
	CHECK(world_units(&w, 0) == 10);
	w.down = false;
	world_run(&w, ROUNDS);
	/* What is set aside for two members that are not present is not given to others. */
	CHECK(world_units(&w, 0) == 80);
	world_enter(&w, 1, 12);
	world_enter(&w, 2, 5);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 78 && world_units(&w, 1) == 12 && world_units(&w, 2) == 10);
	end();
}

static bool add_promised(void *arg, const struct weir_fleet_member *member)
{
	*(uint64_t *)arg += member->grant + member->reserved;
	return true;
}

/* The sum that the store says its members may use. */
static uint64_t promised(void)
{
	struct weir_fleet_limit limit;
	uint64_t sum = 0;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, add_promised, &sum) == 0);
	return sum;
}

/*
 * More members than units are reserved for: the last one has only its shared part, and reports
 * that, until another one is gone.
 */
static void too_many(void)
{
	begin(100);
	w.limit.reserved = 20;
	w.limit.members = 4;
	enter(4, 20);
	CHECK(world_sum(&w) == 80 && promised() == 80);
	/* Before they have reached the store, they cannot know. */
	w.capacity = 200;
	for (unsigned i = 4; i < 10; i++)
		world_enter(&w, i, 20);
	CHECK(world_sum(&w) == 200 && info_of(9).state == WEIR_SHARE_LOCAL);
	for (unsigned i = 4; i < 10; i++)
		CHECK(weir_fleet_refresh(w.actors[i].fleet) == 0);
	CHECK(world_sum(&w) == 100 && promised() == 100);
	w.capacity = 100;
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 100 && promised() == 100);
	for (unsigned i = 0; i < 10; i++)
		CHECK(info_of(i).state == (i < 4 ? WEIR_SHARE_LEASED : WEIR_SHARE_SURPLUS));
	CHECK(strstr(info_of(9).reason, "There are 10 members, and units are reserved for 4") !=
	      NULL);
	/*
	 * The first is cut off: what was reserved for it is passed on, so it ends with its lease.
	 */
	w.actors[0].manner = UNREACHABLE;
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 0) == 0 && info_of(0).state == WEIR_SHARE_LOST);
	CHECK(info_of(4).state == WEIR_SHARE_LEASED && world_sum(&w) == 100 && promised() == 100);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(info_of(0).state == WEIR_SHARE_SURPLUS && world_sum(&w) == 100);
	/* The others leave. */
	for (unsigned i = 1; i < 7; i++) {
		weir_fleet_close(w.actors[i].fleet);
		w.actors[i].fleet = NULL;
		world_run(&w, ROUNDS);
		CHECK(world_sum(&w) <= 100 && promised() <= 100);
	}
	CHECK(world_sum(&w) == 80 && info_of(0).state == WEIR_SHARE_LEASED);
	/* No member is surplus: reserved units need no store. */
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(world_sum(&w) == 80);
	end();
}

/* The store forgets which member came first. */
static void too_many_learning(void)
{
	begin(100);
	w.limit.reserved = 20;
	w.limit.members = 4;
	enter(4, 20);
	w.capacity = 200;
	for (unsigned i = 4; i < 8; i++)
		world_enter(&w, i, 20);
	world_run(&w, ROUNDS);
	w.capacity = 100;
	CHECK(world_sum(&w) == 100);
	world_forget(&w, w.now);
	for (unsigned i = 8; i-- > 0;) {
		CHECK(weir_fleet_refresh(w.actors[i].fleet) == 0);
		CHECK(world_sum(&w) <= 100);
	}
	world_run(&w, LEASE + ROUNDS);
	CHECK(world_sum(&w) == 100 && promised() == 100);
	end();
}

/*
 * However many members report overload, the limit is lowered once per refresh; and it is restored
 * in steps.
 */
static void throttled(void)
{
	uint64_t last;

	begin(1000);
	enter(4, 1000);
	CHECK(world_sum(&w) == 1000);
	for (unsigned i = 0; i < 4; i++)
		weir_share_throttled(w.actors[i].share);
	for (unsigned i = 0; i < 4; i++)
		CHECK(weir_fleet_refresh(w.actors[i].fleet) == 0);
	CHECK(info_of(0).effective == 700 && world_sum(&w) <= 700);
	last = world_sum(&w);
	for (unsigned i = 0; i < 6; i++) {
		world_run(&w, REFRESH * 13 / 10);
		CHECK(world_sum(&w) >= last);
		last = world_sum(&w);
	}
	world_run(&w, 8 * REFRESH);
	CHECK(info_of(0).effective == 1000 && world_sum(&w) == 1000);
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned j = 0; j < 4; j++)
			weir_share_throttled(w.actors[j].share);
		world_run(&w, REFRESH);
	}
	CHECK(info_of(0).effective >= 100 && info_of(0).effective <= 300);
	end();
}

/* Demand is estimated from requests, with the most weight on the newest. */
static void demand(void)
{
	begin(1000);
	world_enter(&w, 0, 0);
	weir_share_leave(w.actors[0].share);
	CHECK(weir_share_join(w.actors[0].fleet, &w.limit, &w.actors[0].share, NULL, 0) == 0);
	for (unsigned i = 0; i < 30; i++) {
		weir_share_demand_add(w.actors[0].share, 100);
		world_run(&w, WEIR_S);
	}
	CHECK(info_of(0).wants >= 95 && info_of(0).wants <= 105);
	world_run(&w, 12 * WEIR_S + 2 * REFRESH);
	/* Then it has headroom: half of what is idle. */
	CHECK(info_of(0).wants == 0 && world_units(&w, 0) == 500);
	end();
}

static unsigned notified;
static uint64_t last_units;

static void note(void *arg, uint64_t units)
{
	(void)arg;
	notified++;
	last_units = units;
}

static uint64_t sixty(void *arg)
{
	(void)arg;
	return 60;
}

static void callbacks(void)
{
	begin(100);
	w.limit.apply = note;
	w.limit.wants = sixty;
	enter(1, 0);
	CHECK(last_units == 60 && notified == 2);
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(last_units == 0 && notified == 3);
	end();
}

/* Units that a member has lent, and what it was told last that it is to have. */
static uint64_t lent_units, told_units;

static uint64_t lent(void *arg, uint64_t units)
{
	(void)arg;
	told_units = units;
	return lent_units;
}

/* Lend that much from now on, and let all refresh. */
static void lend(uint64_t units)
{
	lent_units = units;
	world_run(&w, ROUNDS);
}

/* Units that are lent are given back when they are back, or when the lease ends. */
static void lending(void)
{
	begin(100);
	w.limit.lent = lent;
	enter(1, 100);
	CHECK(told_units == 100);
	lent_units = 80;
	w.limit.lent = NULL;
	world_enter(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(told_units == 50 && world_units(&w, 0) == 80 && world_units(&w, 1) == 20);
	lend(60);
	CHECK(world_units(&w, 0) == 60 && world_units(&w, 1) == 40);
	lend(1000);
	CHECK(world_units(&w, 0) == 60 && world_units(&w, 1) == 40);
	lend(0);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	/* A drained member may lend nothing more. */
	lent_units = 30;
	CHECK(weir_fleet_drain_label(w.store, "limit", "member", true) == 0);
	world_run(&w, ROUNDS);
	CHECK(told_units == 0 && world_units(&w, 0) == 0 && world_sum(&w) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "member", false) == 0);
	world_run(&w, ROUNDS);
	CHECK(told_units == 50 && world_sum(&w) == 100);
	lent_units = 50;
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 1) == 100);
	end();
}

/* What is reserved is not in the ledger, and part of what may be lent. */
static void lending_reserved(void)
{
	begin(100);
	w.limit.reserved = 10;
	w.limit.members = 2;
	w.limit.lent = lent;
	lent_units = 70;
	enter(1, 100);
	CHECK(told_units == 90 && world_units(&w, 0) == 90);
	w.limit.lent = NULL;
	world_enter(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(told_units == 50 && world_units(&w, 0) == 70 && world_units(&w, 1) == 30);
	lend(10);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	end();
}

static struct weir_limiter *limiter_of(uint32_t limit)
{
	const struct weir_fixed_config fixed = {.limit = limit};
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	return limiter;
}

/* Begin as many calls as are admitted, and keep them. */
static unsigned call(struct weir_limiter *limiter, unsigned calls)
{
	unsigned admitted = 0;

	for (unsigned i = 0; i < calls; i++) {
		struct weir_token token;

		admitted += weir_try_acquire(limiter, &token) == 0;
	}
	return admitted;
}

/* A limiter's own limit and its share, the lesser of both; it wants what it could use. */
static void limiters(void)
{
	struct weir_limiter *limiters[2] = {limiter_of(100), limiter_of(20)};
	struct weir_share_limiter links[2];

	begin(60);
	for (unsigned i = 0; i < 2; i++) {
		weir_share_of_limiter(&w.limit, &links[i], limiters[i]);
		world_enter(&w, i, 0);
		CHECK(weir_limit(limiters[i]) == 0 && call(limiters[i], 10) == 0);
	}
	world_run(&w, ROUNDS);
	CHECK(weir_limit(limiters[0]) + weir_limit(limiters[1]) <= 60);
	for (unsigned i = 0; i < 10; i++) {
		(void)call(limiters[0], 100);
		(void)call(limiters[1], 100);
		world_run(&w, REFRESH);
	}
	/* The second has learned that 20 are enough. */
	CHECK(weir_limit(limiters[0]) == 40 && weir_inflight(limiters[0]) == 40);
	CHECK(weir_limit(limiters[1]) == 20 && weir_inflight(limiters[1]) == 20);
	world_kill(&w, 1);
	weir_limiter_destroy(limiters[1]);
	for (unsigned i = 0; i < 10; i++) {
		(void)call(limiters[0], 100);
		world_run(&w, REFRESH);
	}
	CHECK(weir_limit(limiters[0]) == 60 && weir_inflight(limiters[0]) == 60);
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(weir_limit(limiters[0]) == 0 && call(limiters[0], 10) == 0);
	world_kill(&w, 0);
	weir_limiter_destroy(limiters[0]);
	end();
}

static double always_pause(void *state, const struct weir_window *window)
{
	(void)state;
	(void)window;
	return -1;
}

/* A limiter that pauses needs a unit for the call that it tries afterwards. */
static void pausing_limiter(void)
{
	struct weir_limiter *limiter, *busy = limiter_of(100);
	struct weir_limit_ops ops = weir_fixed;
	struct weir_share_limiter link, other;
	struct weir_config config;
	struct weir_token token;
	weir_time now;

	ops.flags |= WEIR_LIMIT_PAUSES;
	ops.update = always_pause;
	weir_config_init(&config);
	config.limit = &ops;
	config.windowing = WEIR_WINDOW_SAMPLE;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	begin(60);
	weir_share_of_limiter(&w.limit, &link, limiter);
	world_enter(&w, 0, 0);
	weir_share_of_limiter(&w.limit, &other, busy);
	world_enter(&w, 1, 0);
	world_run(&w, ROUNDS);
	now = weir_now();
	CHECK(weir_try_acquire_at(limiter, now - 2000, &token) == 0);
	weir_release_at(limiter, now - 1000, &token, WEIR_SUCCESS);
	CHECK(weir_limit(limiter) == 0);
	for (unsigned i = 0; i < 10; i++) {
		(void)call(busy, 100);
		world_run(&w, REFRESH);
	}
	CHECK(weir_try_acquire(limiter, &token) == 0);
	weir_release(limiter, &token, WEIR_IGNORE);
	world_kill(&w, 0);
	world_kill(&w, 1);
	end();
	weir_limiter_destroy(limiter);
	weir_limiter_destroy(busy);
}

static bool add_up(void *arg, const struct weir_fleet_member *member)
{
	*(uint64_t *)arg += member->grant;
	return member->weight == 1 && member->wants == 100 && member->fence != 0;
}

/* An observer sees what members have. */
static void looking(void)
{
	struct weir_fleet_limit limit;
	uint64_t sum = 0;

	begin(100);
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -ENOENT);
	CHECK(weir_fleet_inspect(w.store, "a/b", &limit, NULL, NULL) == -EINVAL);
	CHECK(weir_fleet_change(w.store, "limit", 50) == -ENOENT);
	w.limit.reserved = 5;
	w.limit.members = 4;
	enter(3, 100);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, add_up, &sum) == 0);
	CHECK(limit.capacity == 100 && limit.effective == 100 && limit.members == 3);
	CHECK(limit.granted == 80 && sum == 80 && limit.lease == LEASE && limit.reserved == 5);
	CHECK(weir_fleet_change(w.store, "limit", 19) == -EINVAL);
	world_kill(&w, 0);
	world_run(&w, LEASE);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0 && limit.members == 2);
	end();
}

/* T10, DV1, DC1 to DC4: invalid input is refused, and changes nothing. */
static void bad_input(void)
{
	static const char *const names[] = {"", "a/b", "a b", "\xc3\xa4", NULL};
	char longest[WEIR_SHARE_NAME_MAX + 2], why[256];
	struct weir_share_config config;
	struct weir_fleet *fleet;
	struct weir_fleet_config fleet_config;
	struct weir_share *share;

	begin(100);
	enter(1, 100);
	fleet = w.actors[0].fleet;
	CHECK(weir_share_join(fleet, &w.limit, &share, why, sizeof(why)) == -EEXIST);
	CHECK(share == NULL && why[0] != '\0');
	memset(longest, 'n', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	config = w.limit;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		config.name = names[i];
		CHECK(weir_share_join(fleet, &config, &share, why, sizeof(why)) == -EINVAL);
	}
	config.name = longest;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	longest[sizeof(longest) - 2] = '\0';
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == 0);
	CHECK(weir_fleet_refresh(fleet) == 0);
	weir_share_leave(share);
	config.name = "other";
	config.capacity = WEIR_SHARE_UNITS_MAX + 1;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	config.capacity = 100;
	config.weight = WEIR_SHARE_WEIGHT_MAX + 1;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	config.weight = 0;
	config.headroom = (enum weir_headroom)3;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	config.headroom = WEIR_HEADROOM_MEASURED;
	config.reserved = 51;
	config.members = 2;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	config.members = 0;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == -EINVAL);
	CHECK(weir_share_demand_set(w.actors[0].share, (uint64_t)-10) == -EINVAL);
	CHECK(weir_share_demand_set(w.actors[0].share, UINT64_C(1) << 63) == -EINVAL);
	CHECK(weir_share_demand_set(w.actors[0].share, 0) == 0);
	CHECK(weir_fleet_refresh(fleet) == 0 && world_units(&w, 0) == 0);
	weir_fleet_config_init(&fleet_config);
	fleet_config.lease = WEIR_MS;
	CHECK(weir_fleet_open(&fleet_config, &fleet, why, sizeof(why)) == -EINVAL);
	fleet_config.lease = WEIR_S;
	fleet_config.refresh = WEIR_S;
	CHECK(weir_fleet_open(&fleet_config, &fleet, why, sizeof(why)) == -EINVAL);
	fleet_config.refresh = 0;
	fleet_config.clock = &w.clock;
	CHECK(weir_fleet_open(&fleet_config, &fleet, why, sizeof(why)) == -EINVAL);
	end();
}

static const char *const damaged[] = {
	"",
	"weir-ledger 2 1000000\n",
	"weir-ledger 1 1000000",
	"weir-ledger 1 -1\n",
	"weir-ledger 1 1000000\n1 2\n",
	"weir-ledger 1 1000000\nx 1 1\n",
	"weir-ledger 1 1000000\n1 1 99999999999999999999999\n",
};

/* Foreign data in the store is not interpreted: shares stay as they are. */
static void damage(void)
{
	begin(100);
	enter(1, 100);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		const struct weir_store_write write = {"limit/led", WEIR_STORE_WRITE_PUT,
						       damaged[i], strlen(damaged[i])};

		CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
		CHECK(world_units(&w, 0) == 100);
	}
	end();
}

/* A process in many limits reads all of them together. */
static void many(void)
{
	static struct weir_share *shares[WEIR_FLEET_SHARES_MAX];
	struct weir_share_config config;
	char name[32];

	begin(100);
	world_enter(&w, 0, 100);
	config = w.limit;
	config.name = name;
	for (unsigned i = 1; i < WEIR_FLEET_SHARES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "limit-%u", i);
		CHECK(weir_share_join(w.actors[0].fleet, &config, &shares[i], NULL, 0) == 0);
		CHECK(weir_share_demand_set(shares[i], i) == 0);
	}
	(void)snprintf(name, sizeof(name), "one-more");
	CHECK(weir_share_join(w.actors[0].fleet, &config, &shares[0], NULL, 0) == -ENOSPC);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	for (unsigned i = 1; i < WEIR_FLEET_SHARES_MAX; i++)
		CHECK(weir_share_units(shares[i]) == (i < 100 ? i : 100));
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	death();
	release();
	release_unanswered();
	release_uncertain(false);
	release_uncertain(true);
	cut();
	reserved();
	too_many();
	too_many_learning();
	throttled();
	demand();
	callbacks();
	lending();
	lending_reserved();
	limiters();
	pausing_limiter();
	looking();
	bad_input();
	damage();
	many();
	test_store_end(&test_store);
	printf("shares behave as specified, %s\n", test_store.kind);
	return 0;
}
