/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * headroom [KIND]: members whose demand is measured, and comes at random, in simulated time, with a
 * store in memory or of that kind. Idle capacity admits bursts, a share that is outgrown asks at
 * once, and members that come or grow get what is theirs.
 */

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <weir/share_of_rate.h>

#include "shares_rig.h"

#define CAPACITY    500
#define SENDERS     3
#define SLICE       (5 * WEIR_MS)
#define REFRESH_MAX (REFRESH * 13 / 10)

/* A member that sends at random times at a mean pace, and does not wait. */
struct sender {
	struct weir_rate *rate;
	struct weir_share_rate link;
	double pace; /* calls per second; 0: none */
	weir_time next;
	unsigned offered, refused;
};

static struct sender senders[SENDERS];

static void set_pace(unsigned member, double pace)
{
	senders[member].pace = pace;
	senders[member].next = w.now;
}

static void start(unsigned member, double pace)
{
	struct weir_rate_config config;
	struct sender *s = &senders[member];

	weir_rate_config_init(&config);
	config.clock = &w.clock;
	CHECK(weir_rate_create(&config, &s->rate) == 0);
	CHECK(weir_share_of_rate(&w.limit, &s->link, s->rate, 0, NULL) == 0);
	world_enter(&w, member, 0);
	set_pace(member, pace);
}

static void begin_measured(void)
{
	world_begin(&w, CAPACITY, LEASE, REFRESH);
	w.measured = true;
}

static void end_measured(void)
{
	end();
	for (unsigned i = 0; i < SENDERS; i++)
		weir_rate_destroy(senders[i].rate);
	memset(senders, 0, sizeof(senders));
}

static void call(unsigned member)
{
	struct sender *s = &senders[member];
	const double even = (double)(1 + draw(&w.chance) % 1000000) / 1000000;

	s->offered++;
	weir_share_demand_add(w.actors[member].share, 1);
	s->refused += weir_rate_try(s->rate, 1) != 0;
	s->next += (weir_time)(-log(even) * (double)WEIR_S / s->pace);
}

static void run(weir_dur time)
{
	const weir_time last = w.now + time;

	while (w.now < last) {
		world_run(&w, SLICE);
		for (unsigned i = 0; i < SENDERS; i++)
			while (senders[i].pace > 0 && senders[i].next < w.now)
				call(i);
		CHECK(world_sum(&w) <= CAPACITY);
	}
}

/* What part of its calls is refused in that time. */
static double refused_in(unsigned member, weir_dur time)
{
	struct sender *s = &senders[member];

	s->offered = s->refused = 0;
	run(time);
	CHECK(s->offered > 0);
	return (double)s->refused / s->offered;
}

static uint64_t units(unsigned member)
{
	return world_units(&w, member);
}

static uint64_t refreshes(unsigned member)
{
	return info_of(member).refreshes;
}

static void await_refresh(unsigned member)
{
	const uint64_t before = refreshes(member);

	while (refreshes(member) == before)
		run(SLICE);
}

/* One member alone is served from its first refresh on, steadily, and after a step. */
static void alone(void)
{
	begin_measured();
	start(0, 100);
	run(SLICE);
	CHECK(refreshes(0) == 1 && units(0) == CAPACITY / 2);
	run(WEIR_S);
	CHECK(refused_in(0, 120 * WEIR_S) < 0.001);
	set_pace(0, 300);
	run(WEIR_S);
	CHECK(units(0) >= 330);
	CHECK(refused_in(0, 15 * WEIR_S) < 0.01);
	set_pace(0, 450);
	run(WEIR_S);
	CHECK(units(0) >= 450);
	/* It forgets a burst slowly, and completely. */
	set_pace(0, 0);
	run(12 * WEIR_S + REFRESH_MAX);
	CHECK(info_of(0).wants == 0 && units(0) <= CAPACITY * 5 / 8);
	end_measured();
}

/* Half of what is idle is free: a new member has a part of that before the others know of it. */
static void newcomer(void)
{
	uint64_t known;

	begin_measured();
	start(0, 100);
	run(30 * WEIR_S);
	known = refreshes(0);
	start(1, 40);
	run(SLICE);
	CHECK(refreshes(0) == known && refreshes(1) == 1 && units(1) >= 40);
	run(WEIR_S);
	CHECK(refused_in(1, 60 * WEIR_S) < 0.001);
	end_measured();
}

static void check_even(void)
{
	run(2 * REFRESH_MAX);
	CHECK(units(0) + units(1) == CAPACITY);
	CHECK(units(0) >= CAPACITY / 2 - 5 && units(1) >= CAPACITY / 2 - 5);
}

/* Two members that step against each other are even within two refreshes. */
static void against(void)
{
	begin_measured();
	start(0, 100);
	start(1, 100);
	run(30 * WEIR_S);
	set_pace(0, 450);
	set_pace(1, 450);
	check_even();
	set_pace(1, 20);
	run(60 * WEIR_S);
	CHECK(units(0) >= 440);
	set_pace(1, 450);
	check_even();
	set_pace(0, 0);
	run(60 * WEIR_S);
	start(2, 0);
	set_pace(0, 1000);
	check_even();
	end_measured();
}

/* A share asks as soon as it is outgrown, but not while that brings nothing. */
static void asking(void)
{
	uint64_t before;

	begin_measured();
	start(0, 20);
	start(1, 20);
	run(30 * WEIR_S);
	before = refreshes(0);
	set_pace(0, 400);
	run(WEIR_S);
	CHECK(refreshes(0) > before && refreshes(0) <= before + 4 && units(0) >= 350);
	/* An overload by so few calls that their number varies much. */
	CHECK(weir_fleet_change(w.store, "limit", 20) == 0);
	set_pace(0, 30);
	set_pace(1, 30);
	run(30 * WEIR_S);
	before = refreshes(0);
	run(300 * WEIR_S);
	CHECK(refreshes(0) - before <= 300 * WEIR_S / (REFRESH * 8 / 10) + 20);
	end_measured();
}

/* What is due but held by others is asked for again, before the next regular refresh. */
static void lacking(void)
{
	uint64_t before;

	begin(CAPACITY);
	enter(1, CAPACITY);
	w.actors[0].manner = UNREACHABLE;
	world_enter(&w, 1, CAPACITY);
	world_run(&w, SLICE);
	before = refreshes(1);
	CHECK(before > 0 && units(1) == 0);
	world_run(&w, REFRESH * 8 / 10 - 2 * SLICE);
	CHECK(refreshes(1) >= before + 2);
	end();
}

static uint64_t ledger;

static bool note_ledger(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	ledger = row->version;
	return true;
}

/* As long as demand varies but little, the ledger hardly ever changes: here, in ten minutes. */
static void quiet(void)
{
	static const char *const row = "limit/led";
	unsigned changes = 0;
	uint64_t before;

	begin_measured();
	start(0, 100);
	start(1, 50);
	run(30 * WEIR_S);
	before = refreshes(0);
	ledger = 0;
	for (unsigned i = 0; i < 600; i++) {
		const uint64_t known = ledger;

		run(WEIR_S);
		CHECK(weir_store_read(w.store, &row, 1, note_ledger, NULL, NULL) == 0);
		changes += ledger != known;
	}
	CHECK(changes >= 1 && changes <= 8 && refreshes(0) - before >= 90);
	end_measured();
}

/* What is wanted now, and from the next call on: as a count since the last call. */
static uint64_t wanted, wanted_then;

static uint64_t on_wants(void *arg)
{
	const uint64_t now = wanted;

	(void)arg;
	wanted = wanted_then;
	return now;
}

/* Demand that the application states is all that it gets, unless it says otherwise. */
static void stated(void)
{
	begin(CAPACITY);
	enter(2, 100);
	CHECK(units(0) == 100 && units(1) == 100);
	world_want(&w, 0, 150);
	world_run(&w, 2 * WEIR_S);
	CHECK(units(0) == 150);
	end();
	begin(CAPACITY);
	wanted = wanted_then = 100;
	w.limit.wants = on_wants;
	enter(1, 0);
	CHECK(units(0) == 100);
	await_refresh(0);
	wanted = 200;
	world_run(&w, REFRESH_MAX / 10 + 200 * WEIR_MS);
	CHECK(units(0) == 200 && wanted == 100);
	world_run(&w, 2 * REFRESH_MAX);
	CHECK(units(0) == 100);
	end();
	begin(CAPACITY);
	w.limit.headroom = WEIR_HEADROOM_ALWAYS;
	enter(1, 100);
	CHECK(units(0) == 300);
	end();
	begin_measured();
	w.limit.headroom = WEIR_HEADROOM_NEVER;
	start(0, 0);
	run(ROUNDS);
	CHECK(units(0) == 0);
	end_measured();
}

/* A limit that is not divided, and one that only counts. */
static void undivided(void)
{
	static const enum weir_allotment all[] = {WEIR_ALLOT_STATIC, WEIR_ALLOT_NONE};

	for (unsigned i = 0; i < 2; i++) {
		world_begin(&w, CAPACITY, LEASE, REFRESH);
		w.measured = true;
		w.limit.allotment = all[i];
		enter(2, 0);
		CHECK(units(0) == CAPACITY && units(1) == CAPACITY);
		world_end(&w);
	}
}

/* To ask more often does not bring back sooner what throttling takes. */
static void throttled(void)
{
	uint64_t before;

	begin_measured();
	start(0, 20);
	run(30 * WEIR_S);
	weir_share_throttled(w.actors[0].share);
	while (info_of(0).effective == CAPACITY)
		run(SLICE);
	CHECK(info_of(0).effective == CAPACITY * 7 / 10);
	before = refreshes(0);
	set_pace(0, 300);
	run(REFRESH * 8 / 10 - SLICE);
	CHECK(refreshes(0) > before);
	CHECK(info_of(0).effective == CAPACITY * 7 / 10);
	end_measured();
}

/* Nor does it keep what the backend reports from the others, or for longer. */
static void reported(void)
{
	uint64_t before;

	begin_measured();
	start(0, 20);
	run(30 * WEIR_S);
	await_refresh(0);
	before = refreshes(0);
	weir_share_throttled(w.actors[0].share);
	set_pace(0, 250);
	run(2 * WEIR_S);
	set_pace(0, 450);
	run(REFRESH * 8 / 10 - 2 * WEIR_S - SLICE);
	CHECK(refreshes(0) >= before + 2 && info_of(0).effective == CAPACITY);
	run(REFRESH / 2 + 2 * SLICE);
	CHECK(info_of(0).effective < CAPACITY);
	end_measured();
}

/* Once old leases must have ended, members do not wait for their next refresh. */
static void learned(void)
{
	begin_measured();
	w.proven = w.now;
	start(0, 100);
	run(LEASE - SLICE);
	CHECK(units(0) == 0);
	run(REFRESH / 10 + 2 * SLICE);
	CHECK(units(0) >= CAPACITY / 2);
	end_measured();
}

/* In a store that has forgotten, a member goes on with all that it holds. */
static void forgotten(void)
{
	uint64_t held;

	begin_measured();
	start(0, 100);
	run(30 * WEIR_S);
	held = units(0);
	world_forget(&w, w.now);
	CHECK(refused_in(0, LEASE) < 0.001 && units(0) == held);
	end_measured();
}

/* In real time: with half an hour between two refreshes, a share grows when it is outgrown. */
static void in_time(struct test_store *test_store)
{
	struct weir_store *store = test_store_open(test_store, NULL);
	struct weir_share_config limit;
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	struct weir_share *share;

	weir_fleet_config_init(&config);
	config.store = store;
	config.lease = config.learning = 3600 * WEIR_S;
	config.refresh = 1800 * WEIR_S;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	CHECK(weir_share_join(fleet, &limit, &share, NULL, 0) == 0);
	while (weir_share_units(share) == 0)
		sleep_ms(1);
	CHECK(weir_share_units(share) == CAPACITY / 2);
	while (weir_share_units(share) == CAPACITY / 2) {
		weir_share_demand_add(share, 10);
		sleep_ms(1);
	}
	CHECK(weir_share_units(share) > CAPACITY / 2);
	weir_fleet_close(fleet);
	weir_store_close(store);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	alone();
	newcomer();
	against();
	asking();
	lacking();
	quiet();
	stated();
	undivided();
	throttled();
	reported();
	learned();
	forgotten();
	in_time(&test_store);
	test_store_end(&test_store);
	printf("shares have headroom, %s\n", test_store.kind);
	return 0;
}
