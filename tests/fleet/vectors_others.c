/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters in a server and locks: redis-cell, redis_rate, gubernator, redsync. A share is not a
 * counter that is queried for each call, so counters are compared with what a rate does alike; and
 * locks with a row that is bound to a session.
 */

#include "vectors.h"

#include <errno.h>
#include <string.h>

#include <weir/fleet.h>
#include <weir/rate.h>

#include "../stress/check.h"

static weir_time given_time;

static weir_time read_clock(const struct weir_clock *clock)
{
	(void)clock;
	return given_time;
}

static const struct weir_clock given_clock = {.now = read_clock};

/* A rate whose burst is what falls due in a period. */
static struct weir_rate *window_of(uint64_t units, weir_dur period)
{
	struct weir_rate_config config;
	struct weir_rate *rate;

	given_time = 1000 * WEIR_S;
	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = units, .period = period};
	config.slot = period;
	config.clock = &given_clock;
	CHECK(weir_rate_create(&config, &rate) == 0);
	return rate;
}

static uint64_t left(struct weir_rate *rate)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	return s.quotas[0].available;
}

static void take(struct weir_rate *rate, uint64_t units, int expected, uint64_t leaves)
{
	CHECK(weir_rate_try(rate, units) == expected && left(rate) == leaves);
}

static void over_the_limit(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate = window_of(2, 9 * WEIR_S);

	(void)id;
	(void)test_store;
	take(rate, 1, 0, 1);
	take(rate, 1, 0, 0);
	take(rate, 1, -EAGAIN, 0);
	weir_rate_destroy(rate);
}

static void token_bucket(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate = window_of(2, 5 * WEIR_MS);

	(void)id;
	(void)test_store;
	take(rate, 1, 0, 1);
	take(rate, 1, 0, 0);
	given_time += 100 * WEIR_MS;
	take(rate, 1, 0, 1);
	weir_rate_destroy(rate);
}

static void minute(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate = window_of(60, 60 * WEIR_S);

	(void)id;
	(void)test_store;
	take(rate, 1, 0, 59);
	take(rate, 1, 0, 58);
	take(rate, 58, 0, 0);
	take(rate, 1, -EAGAIN, 0);
	given_time += 61 * WEIR_S;
	CHECK(left(rate) == 60);
	weir_rate_destroy(rate);
}

static void leaky_division(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate = window_of(2000, WEIR_S);

	(void)id;
	(void)test_store;
	take(rate, 1, 0, 1999);
	take(rate, 100, 0, 1899);
	weir_rate_destroy(rate);
}

/* No period means a second, no units mean none at all, and an empty name is refused. */
static void missing_fields(const char *id, struct test_store *test_store)
{
	struct weir_store *store = test_store_open(test_store, NULL);
	struct weir_fleet_config fleet_config;
	struct weir_share_config config;
	struct weir_rate *rate;
	struct weir_fleet *fleet;
	struct weir_share *share;
	char why[256] = "";

	(void)id;
	rate = window_of(10, 0);
	take(rate, 1, 0, left(rate) - 1);
	weir_rate_destroy(rate);
	rate = window_of(0, WEIR_S);
	take(rate, 1, -EAGAIN, 0);
	weir_rate_destroy(rate);
	weir_fleet_config_init(&fleet_config);
	fleet_config.store = store;
	fleet_config.manual = 1;
	CHECK(weir_fleet_open(&fleet_config, &fleet, NULL, 0) == 0);
	weir_share_config_init(&config);
	CHECK(weir_share_join(fleet, &config, &share, why, sizeof(why)) == -EINVAL);
	CHECK(share == NULL && why[0] != '\0');
	weir_fleet_close(fleet);
	weir_store_close(store);
}

/* 0 per second is a rate too: nothing passes. */
static void zero_rate(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate = window_of(0, WEIR_S);

	(void)id;
	(void)test_store;
	take(rate, 1, -EAGAIN, 0);
	given_time += 3600 * WEIR_S;
	take(rate, 1, -EAGAIN, 0);
	weir_rate_destroy(rate);
}

static int erase(struct weir_store *store, uint64_t made)
{
	const struct weir_store_check check = {"lock/one", WEIR_STORE_CHECK_MADE, made};
	const struct weir_store_write gone = {"lock/one", WEIR_STORE_WRITE_ERASE, NULL, 0};

	return weir_store_commit(store, 0, &check, 1, &gone, 1, NULL);
}

/*
 * A row of a session is a lock with a fence: created once, renewed, and erased only by its creator.
 */
static void redsync(const char *id, struct test_store *test_store)
{
	const struct weir_store_check free = {"lock/one", WEIR_STORE_CHECK_ABSENT, 0};
	const struct weir_store_write mine = {"lock/one", WEIR_STORE_WRITE_BIND, "x", 1};
	struct weir_store *store = test_store_open(test_store, NULL);
	uint64_t session, other, made, again;
	weir_dur granted;

	(void)id;
	CHECK(weir_store_begin(store, 60 * WEIR_S, &session, &granted) == 0);
	CHECK(weir_store_begin(store, 60 * WEIR_S, &other, &granted) == 0);
	CHECK(weir_store_commit(store, session, &free, 1, &mine, 1, &made) == 0);
	/* Taken; and not released by another session. */
	CHECK(weir_store_commit(store, other, &free, 1, &mine, 1, NULL) == -EAGAIN);
	CHECK(erase(store, made + 1) == -EAGAIN);
	CHECK(weir_store_keep(store, session, &granted) == 0);
	CHECK(weir_store_end(store, session) == 0);
	CHECK(weir_store_commit(store, other, &free, 1, &mine, 1, &again) == 0 && again > made);
	/* It is not renewed any more, and another session has the row. */
	CHECK(weir_store_keep(store, session, &granted) == -ESTALE);
	CHECK(erase(store, made) == -EAGAIN);
	CHECK(erase(store, again) == 0);
	weir_store_close(store);
}

static const struct vector rows[] = {
	{"redis-cell", NULL, NULL,
	 "a counter in a server: a call of 6 of 5 is refused there, and leaves debt here"},
	{"zero", zero_rate, NULL, "no error: nothing passes"},
	{"redis_rate", NULL, NULL, "as redis-cell"},
	{"OverTheLimit", over_the_limit, NULL, NULL},
	{"TokenBucket", token_bucket, NULL, NULL},
	{"Gregorian", minute, NULL, "a minute from when it began"},
	{"NegativeHits", NULL, NULL,
	 "what was taken is given back by weir_rate_settle(), not more"},
	{"DrainOverLimit", NULL, NULL,
	 "a call that is admitted leaves debt, so nothing is drained"},
	{"MoreThanAvailable", NULL, NULL,
	 "1500 of 1000 left are refused there, and leave debt here"},
	{"LeakyBucket", NULL, NULL, "begins full there; a rate begins with what a slot is worth"},
	{"LeakyBurst", NULL, NULL, "begins full there; a rate begins with what a slot is worth"},
	{"LeakyDivBug", leaky_division, NULL, NULL},
	{"ChangeLimit", NULL, NULL,
	 "adds the difference at once there; here a higher rate counts from its next slot on"},
	{"MissingFields", missing_fields, NULL, NULL},
	{"GLOBAL", NULL, NULL, "copies of a counter that are merged later, unlike shares"},
	{"redsync", redsync, NULL, "one store: there is no quorum of several"},
};

struct family vectors_others(void)
{
	return (struct family){rows, sizeof(rows) / sizeof(rows[0])};
}
