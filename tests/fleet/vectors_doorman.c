/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of Doorman's store, server, client and limiter, in terms of shares. Simulated time,
 * except where a session must end by the store's own clock.
 */

#include "vectors.h"

#include <errno.h>
#include <string.h>

#include <weir/share_of_rate.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUNDS  (3 * REFRESH)

static struct world w;

static void begin(struct test_store *test_store, uint64_t capacity)
{
	world_use(test_store);
	world_begin(&w, capacity, LEASE, REFRESH);
}

static void ask(unsigned member, uint64_t wants, uint64_t gets)
{
	if (w.actors[member].fleet == NULL)
		world_enter(&w, member, wants);
	world_want(&w, member, wants);
	CHECK(weir_fleet_refresh(w.actors[member].fleet) == 0);
	CHECK(world_units(&w, member) == gets);
}

static struct weir_share_info info_of(unsigned member)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(w.actors[member].share, &info);
	return info;
}

/* The sums over the store's rows. */
struct totals {
	uint64_t has, wants;
	unsigned members;
};

static bool add_up(void *arg, const struct weir_fleet_member *member)
{
	struct totals *t = arg;

	t->has += member->grant;
	t->wants += member->wants;
	t->members++;
	return true;
}

static struct totals totals_of(struct weir_store *store)
{
	struct weir_fleet_limit limit;
	struct totals t = {.members = 0};

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(store, "limit", &limit, add_up, &t) == 0);
	CHECK(limit.granted == t.has && limit.members == t.members);
	return t;
}

static void set_capacity(uint64_t capacity)
{
	w.capacity = capacity;
	CHECK(weir_fleet_change(w.store, "limit", capacity) == 0);
}

/*
 * The lease is as long as requested, less the margin by which it ends early here; and so is the
 * refresh.
 */
static void dm16(const char *id, struct test_store *test_store)
{
	weir_time end;

	(void)id;
	world_use(test_store);
	world_begin(&w, 100, 342 * WEIR_S, 5 * WEIR_S);
	ask(0, 10, 10);
	end = w.now + 342 * WEIR_S;
	CHECK(info_of(0).deadline == end - 342 * WEIR_S / 100 - 2 * WEIR_MS);
	world_run(&w, 65 * WEIR_S);
	CHECK(info_of(0).refreshes >= 65 / 7 && info_of(0).refreshes <= 1 + 65 / 4);
	world_end(&w);
}

/* Three members in one store; two of them end by its own clock, and the third leaves. */
struct guest {
	struct weir_fleet *fleet;
	struct weir_share *share;
};

static void enter_guest(struct guest *g, struct weir_store *store, weir_dur lease, uint64_t wants,
			int32_t priority)
{
	struct weir_fleet_config config;
	struct weir_share_config share;
	char why[256];

	weir_fleet_config_init(&config);
	config.store = store;
	config.lease = lease;
	config.manual = 1;
	CHECK(weir_fleet_open(&config, &g->fleet, why, sizeof(why)) == 0);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = 10;
	share.priority = priority;
	CHECK(weir_share_join(g->fleet, &share, &g->share, why, sizeof(why)) == 0);
	CHECK(weir_share_demand_set(g->share, wants) == 0);
	CHECK(weir_fleet_refresh(g->fleet) == 0);
}

/* 35 of 35 are held, of 44 that are wanted. */
static void enter_guests(struct guest *g, struct weir_store *store, weir_dur brief)
{
	enter_guest(&g[0], store, brief, 12, 0);
	CHECK(weir_fleet_change(store, "limit", 20) == 0);
	enter_guest(&g[1], store, brief, 12, 0);
	CHECK(weir_fleet_change(store, "limit", 35) == 0);
	enter_guest(&g[2], store, 60 * WEIR_S, 20, 1);
}

static void close_guests(struct guest *g, struct weir_store *store)
{
	for (unsigned i = 0; i < 3; i++)
		weir_fleet_close(g[i].fleet);
	weir_store_close(store);
}

static void ds1(const char *id, struct test_store *test_store)
{
	struct weir_store *store = test_store_open(test_store, NULL);
	struct guest g[3];
	struct totals t;

	(void)id;
	enter_guests(g, store, 60 * WEIR_S);
	t = totals_of(store);
	CHECK(t.has == 35 && t.wants == 44 && t.members == 3);
	CHECK(weir_share_units(g[0].share) == 10);
	close_guests(g, store);
}

static void ds2_3(const char *id, struct test_store *test_store)
{
	const weir_dur brief = strcmp(test_store->kind, "etcd") == 0 ? 2 * WEIR_S : 300 * WEIR_MS;
	struct weir_store *store = test_store_open(test_store, NULL);
	struct guest g[3];
	struct totals t;
	unsigned tries = 0;

	(void)id;
	enter_guests(g, store, brief);
	/*
	 * The limit's leases are as short as the sessions of the first two. The third member has a
	 * longer session, and joined last: when its lease has ended, those sessions have, too, but
	 * for the time that the store takes to notice.
	 */
	while (totals_of(store).members > 1 || weir_share_units(g[2].share) != 0) {
		CHECK(++tries < 3000);
		sleep_ms(5);
	}
	CHECK(weir_fleet_refresh(g[2].fleet) == 0);
	t = totals_of(store);
	CHECK(t.has == 20 && t.wants == 20);
	CHECK(weir_share_units(g[0].share) == 0 && weir_share_units(g[1].share) == 0);
	weir_share_leave(g[2].share);
	t = totals_of(store);
	CHECK(t.has == 0 && t.wants == 0 && t.members == 0);
	close_guests(g, store);
}

static void set_template(const char *pattern, uint64_t capacity, int expected)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = capacity;
	CHECK(weir_fleet_template_set(w.store, pattern, &limit, NULL, 0) == expected);
}

/* No name, invalid names, no negative values; and the existing limit is unchanged. */
static void dv(const char *id, struct test_store *test_store)
{
	static const char *const names[] = {"", "*", "[*-]", "foo*"};
	const struct weir_store_write odd = {"limit/cfg", WEIR_STORE_WRITE_PUT, "", 0};
	struct weir_share_config config;
	struct weir_share *share;
	char why[256];

	(void)id;
	begin(test_store, 100);
	ask(0, 60, 60);
	config = w.limit;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		config.name = names[i];
		why[0] = '\0';
		CHECK(weir_share_join(w.actors[0].fleet, &config, &share, why, sizeof(why)) ==
		      -EINVAL);
		CHECK(share == NULL && why[0] != '\0');
		CHECK(weir_fleet_change(w.store, names[i], 10) == -EINVAL);
	}
	config.name = "other";
	config.allotment = (enum weir_allotment)(WEIR_ALLOT_NONE + 1);
	CHECK(weir_share_join(w.actors[0].fleet, &config, &share, NULL, 0) == -EINVAL);
	CHECK(weir_share_demand_set(w.actors[0].share, (uint64_t)-10) == -EINVAL);
	CHECK(weir_fleet_change(w.store, "limit", WEIR_SHARE_UNITS_MAX + 1) == -EINVAL);
	ask(0, 60, 60);
	CHECK(info_of(0).capacity == 100);
	set_template("[*-]", 10, -EINVAL);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &odd, 1, NULL) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
	CHECK(world_units(&w, 0) == 60 && info_of(0).capacity == 100);
	world_end(&w);
}

/*
 * A limit exists once, however often it is joined, by the template that is closest to its name; and
 * other limits are independent.
 */
static void dr1(const char *id, struct test_store *test_store)
{
	struct weir_share_config config;
	struct weir_share *foo, *again;

	(void)id;
	begin(test_store, 100);
	ask(0, 60, 60);
	set_template("*", 9, 0);
	set_template("foo", 7, 0);
	config = w.limit;
	config.name = "foo";
	config.capacity = 50;
	CHECK(weir_share_join(w.actors[0].fleet, &config, &foo, NULL, 0) == 0);
	CHECK(weir_share_join(w.actors[0].fleet, &config, &again, NULL, 0) == -EEXIST);
	CHECK(again == NULL && weir_share_demand_set(foo, 100) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(weir_share_units(foo) == 7 && world_units(&w, 0) == 60);
	world_end(&w);
}

/* Two members, and the store is gone: what each has then. */
static void dr(const char *id, struct test_store *test_store)
{
	const bool said = strcmp(id, "DR2") == 0;

	begin(test_store, 100);
	w.limit.loss = said ? WEIR_LOSS_RESERVED : WEIR_LOSS_EVEN;
	w.limit.reserved = said ? 10 : 0;
	w.limit.members = said ? 2 : 0;
	world_enter(&w, 0, 100);
	world_enter(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && world_units(&w, 1) == 50);
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 0) == (said ? 10 : 50) && world_units(&w, 1) == (said ? 10 : 50));
	w.down = false;
	world_end(&w);
}

/* The store forgets, and a member without any demand creates the limit again. */
static void forget(weir_time proven, uint64_t capacity, enum weir_allotment how)
{
	world_forget(&w, proven);
	w.limit.capacity = capacity;
	w.limit.allotment = how;
	ask(9, 0, 0);
}

static void dx_learning(const char *id, struct test_store *test_store)
{
	begin(test_store, 110);
	if (strcmp(id, "DX1") == 0) {
		ask(0, 20, 20);
		forget(w.now, 110, WEIR_ALLOT_FAIR);
		ask(0, 30, 20);
	} else if (strcmp(id, "DX2") == 0) {
		ask(0, 20, 20);
		ask(1, 90, 90);
		forget(w.now, 100, WEIR_ALLOT_FAIR);
		ask(0, 20, 20);
		ask(1, 90, 80);
	} else {
		ask(0, 20, 20);
		forget(w.now, 110, WEIR_ALLOT_NONE);
		ask(0, 2000, 20);
	}
	CHECK(info_of(0).state == WEIR_SHARE_LEARNING);
	world_end(&w);
}

static void dx3(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store, 120);
	ask(0, 120, 120);
	forget(WEIR_FOREVER, 100, WEIR_ALLOT_PROPORTIONAL);
	ask(0, 120, 100);
	world_end(&w);
}

/* The first of the hosts does not exist; the other one is used immediately. */
static void other_host(const char *id, struct test_store *test_store)
{
	struct weir_fleet_config config;
	struct weir_share_config share_config;
	struct weir_fleet *fleet;
	struct weir_share *share;
	char address[128], why[256];
	unsigned tries = 0;

	(void)id;
	if (strcmp(test_store->kind, "etcd") != 0)
		return; /* the other kinds have one host */
	(void)snprintf(address, sizeof(address), "etcd://127.0.0.1:%u,127.0.0.1:%u", free_port(),
		       test_store->server.port);
	weir_fleet_config_init(&config);
	config.address = address;
	config.manual = 1;
	config.lease = 2 * WEIR_S; /* the store is new: it learns for that long */
	CHECK(weir_fleet_open(&config, &fleet, why, sizeof(why)) == 0);
	weir_share_config_init(&share_config);
	share_config.name = "elsewhere";
	share_config.capacity = 5;
	CHECK(weir_share_join(fleet, &share_config, &share, why, sizeof(why)) == 0);
	CHECK(weir_share_demand_set(share, 10) == 0);
	while (weir_share_units(share) != 5) {
		CHECK(weir_fleet_refresh(fleet) == 0 && ++tries < 600);
		sleep_ms(50);
	}
	weir_fleet_close(fleet);
}

/* A fleet without limits sends no requests, which is valid. */
static void dx5(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store, 100);
	world_enter(&w, 0, 100);
	weir_share_leave(w.actors[0].share);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	world_end(&w);
}

static void dx6(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store, 100);
	ask(0, 100, 100);
	CHECK(totals_of(w.store).has == 100);
	weir_share_leave(w.actors[0].share);
	weir_share_leave(NULL);
	CHECK(weir_store_end(w.store, UINT64_C(0x123456789)) == 0);
	CHECK(totals_of(w.store).has == 0 && totals_of(w.store).members == 0);
	world_end(&w);
}

/* The number of members is counted; where it must be configured, 0 is invalid. */
static void dx8(const char *id, struct test_store *test_store)
{
	struct weir_share_config config;
	struct weir_share *share;

	(void)id;
	begin(test_store, 100);
	ask(0, 100, 100);
	config = w.limit;
	config.name = "other";
	config.reserved = 10;
	config.members = 0;
	CHECK(weir_share_join(w.actors[0].fleet, &config, &share, NULL, 0) == -EINVAL);
	world_end(&w);
}

/* Five members that want 200 each, with weights 1 to 5; with one priority, and with five. */
static void dx9(const char *id, struct test_store *test_store)
{
	(void)id;
	for (unsigned bands = 0; bands < 2; bands++) {
		begin(test_store, 100);
		for (unsigned i = 0; i < 5; i++) {
			w.actors[i].weight = i + 1;
			w.limit.priority = bands == 1 ? (int32_t)i : 0;
			world_enter(&w, i, 200);
		}
		world_run(&w, ROUNDS);
		CHECK(world_sum(&w) == 100 && totals_of(w.store).has == 100);
		CHECK(world_units(&w, 4) == (bands == 1 ? 100 : 33));
		world_end(&w);
	}
}

/* Here with one level: nothing before the first refresh, and then all of it at once. */
static void dx10(const char *id, struct test_store *test_store)
{
	(void)id;
	world_use(test_store);
	world_begin(&w, 100, LEASE, WEIR_S);
	for (unsigned i = 0; i < 10; i++)
		world_enter(&w, i, 100);
	CHECK(world_sum(&w) == 0);
	world_run(&w, WEIR_MS);
	CHECK(world_sum(&w) == 100);
	world_run(&w, 4 * WEIR_S);
	for (unsigned i = 0; i < 10; i++)
		CHECK(world_units(&w, i) == 10);
	world_end(&w);
}

static void dc1(const char *id, struct test_store *test_store)
{
	struct weir_share *share;

	(void)id;
	begin(test_store, 100);
	ask(0, 60, 60);
	CHECK(weir_share_join(w.actors[0].fleet, &w.limit, &share, NULL, 0) == -EEXIST);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 60);
	world_end(&w);
}

static void dc3(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store, 100);
	ask(0, 60, 60);
	CHECK(weir_share_demand_set(w.actors[0].share, (uint64_t)-1) == -EINVAL);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 60);
	ask(0, 0, 0);
	world_end(&w);
}

static unsigned notified;

static void notify(void *arg, uint64_t units)
{
	(void)arg;
	(void)units;
	notified++;
}

/* A member that has left is not notified any more. */
static void dc4(const char *id, struct test_store *test_store)
{
	unsigned before;

	(void)id;
	begin(test_store, 100);
	w.limit.apply = notify;
	ask(0, 60, 60);
	weir_share_leave(w.actors[0].share);
	before = notified;
	weir_share_leave(NULL);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	weir_fleet_close(w.actors[0].fleet);
	weir_fleet_close(NULL);
	w.actors[0].fleet = NULL;
	CHECK(notified == before);
	world_end(&w);
}

static struct weir_rate *rate_of(uint64_t units, uint32_t flags)
{
	struct weir_rate_config config;
	struct weir_rate *rate;

	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = units, .flags = flags};
	config.queue = 1;
	config.clock = &w.clock;
	CHECK(weir_rate_create(&config, &rate) == 0);
	return rate;
}

/* A call that waits for a rate of 0 waits until its share is more than 0. */
static void dl1(const char *id, struct test_store *test_store)
{
	const struct weir_cost one = {{1}};
	struct weir_share_rate link;
	struct weir_wait wait;
	struct weir_rate *rate;

	(void)id;
	begin(test_store, 0);
	rate = rate_of(5, 0);
	CHECK(weir_share_of_rate(&w.limit, &link, rate, 0, NULL) == 0);
	ask(0, 10, 0);
	CHECK(weir_rate_enqueue(rate, &one, NULL, NULL, &wait) == 0);
	world_run(&w, 50 * WEIR_MS);
	CHECK(weir_rate_serve(rate) == WEIR_FOREVER && weir_rate_poll(rate, &wait) == -EAGAIN);
	set_capacity(1);
	ask(0, 10, 1);
	world_run(&w, 1200 * WEIR_MS);
	(void)weir_rate_serve(rate);
	CHECK(weir_rate_poll(rate, &wait) == 0);
	world_end(&w);
	weir_rate_destroy(rate);
}

static void dl2(const char *id, struct test_store *test_store)
{
	(void)id;
	begin(test_store, 100);
	for (unsigned i = 0; i < 10; i++) {
		struct weir_rate *rate = rate_of(10, 0);

		while (weir_rate_try(rate, 1) == 0)
			;
		w.now += 200 * WEIR_MS;
		CHECK(weir_rate_try(rate, 1) == 0);
		weir_rate_destroy(rate);
	}
	world_end(&w);
}

/* Unlimited is a flag, not a number. */
static void dl3(const char *id, struct test_store *test_store)
{
	struct weir_rate *rate;

	(void)id;
	begin(test_store, 100);
	rate = rate_of(0, WEIR_QUOTA_UNLIMITED);
	for (unsigned i = 0; i < 500; i++)
		CHECK(weir_rate_try(rate, 1) == 0);
	CHECK(weir_rate_set(rate, 0, &(const struct weir_quota){.units = (uint64_t)-1}) == -EINVAL);
	weir_rate_destroy(rate);
	world_end(&w);
}

static void dl4(const char *id, struct test_store *test_store)
{
	const struct weir_cost one = {{1}};
	struct weir_wait wait;
	struct weir_rate *rate;

	(void)id;
	begin(test_store, 100);
	rate = rate_of(0, 0);
	CHECK(weir_rate_enqueue(rate, &one, NULL, NULL, &wait) == 0);
	CHECK(weir_rate_cancel(rate, &wait) == 0);
	CHECK(weir_rate_poll(rate, &wait) == -EINVAL);
	weir_rate_destroy(rate);
	world_end(&w);
}

/* Of twenty requests long ago and one now, one is left; without requests, none. */
static void dl5(const char *id, struct test_store *test_store)
{
	struct weir_share *share;

	(void)id;
	begin(test_store, 100);
	world_enter(&w, 0, 0);
	weir_share_leave(w.actors[0].share);
	CHECK(weir_share_join(w.actors[0].fleet, &w.limit, &share, NULL, 0) == 0);
	w.actors[0].share = share;
	world_run(&w, WEIR_S);
	CHECK(info_of(0).wants == 0);
	weir_share_demand_add(share, 20);
	world_run(&w, 11 * WEIR_S);
	weir_share_demand_add(share, 1);
	world_run(&w, 1100 * WEIR_MS);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && info_of(0).wants == 1);
	world_end(&w);
}

/* Addresses of Doorman's sources: none is valid here. */
static void dp1(const char *id, struct test_store *test_store)
{
	static const char *const sources[] = {
		"config.yml",
		"file:config.yml",
		"colons:in:name:good:idea:config.yml",
		"etcd:/config.yml",
	};
	struct weir_store_config config;
	struct weir_store *store;
	char why[256];

	(void)id;
	(void)test_store;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		weir_store_config_init(&config);
		config.address = sources[i];
		why[0] = '\0';
		CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EINVAL);
		CHECK(store == NULL && why[0] != '\0');
	}
}

static const struct vector rows[] = {
	{"DM16", dm16, NULL, "a holder ends a hundredth and 2 ms early"},
	{"DS1", ds1, NULL, NULL},
	{"DS2", ds2_3, NULL, "the sessions of the first two end by the store's own time; and DS3"},
	{"DS3", NULL, "vectors_doorman.c", "with DS2"},
	{"DV1", dv, NULL, "members have random numbers, never an empty one"},
	{"DV2", dv, NULL, "no template is needed, and their order does not matter"},
	{"DV3", dv, NULL, "invalid data in the store is refused as well"},
	{"DR1", dr1, NULL, NULL},
	{"DR2", dr, NULL, "what is reserved is the safe capacity"},
	{"DR3", dr, NULL, "WEIR_LOSS_EVEN"},
	{"DX1", dx_learning, NULL, NULL},
	{"DX2", dx_learning, NULL, "80, where Doorman gives away more than there is"},
	{"DX3", dx3, NULL, NULL},
	{"DX4", other_host, NULL, "there are no masters: of several hosts, any that answers"},
	{"DX5", dx5, NULL, NULL},
	{"DX6", dx6, NULL, NULL},
	{"DX7", dx_learning, NULL, NULL},
	{"DX8", dx8, NULL, "members are counted; with reserved units, their number is configured"},
	{"DX9", dx9, NULL, "of one priority, and of five, where the highest has it"},
	{"DX10", dx10, NULL, "one level"},
	{"DC1", dc1, NULL, NULL},
	{"DC2", other_host, NULL, "at once"},
	{"DC3", dc3, NULL, "a demand of 0 is valid"},
	{"DC4", dc4, NULL, NULL},
	{"DL1", dl1, NULL, NULL},
	{"DL2", dl2, NULL, NULL},
	{"DL3", dl3, NULL, "unlimited is a flag; what would be -1 is refused"},
	{"DL4", dl4, NULL, NULL},
	{"DL5", dl5, NULL, NULL},
	{"DP1", dp1, NULL, "limits are in the store: a file is refused"},
	{"scenario 1", NULL, "doorman.c", "all of it, once each has refreshed twice"},
	{"scenario 2", NULL, "doorman.c", "all of it"},
	{"scenario 3", NULL, "doorman.c", "no phase without any"},
	{"scenario 4", NULL, "doorman.c", "one level"},
	{"scenario 5", NULL, "doorman.c", "all of it"},
	{"scenario 6", NULL, "doorman.c", "never above the capacity"},
	{"scenario 7", NULL, "doorman.c", "never above the capacity"},
};

struct family vectors_doorman(void)
{
	return (struct family){rows, sizeof(rows) / sizeof(rows[0])};
}
