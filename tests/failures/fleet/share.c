/* SPDX-License-Identifier: BSD-2-Clause */
/* Fleets and their shares, over a store that cannot have forgotten a lease. */
#include <sys/mman.h>

#include "../../fleet/test_store.h"
#include "fleet.h"

struct weir_fleet *fleet;
struct weir_share *share;

struct weir_fleet_config fleet_config(void)
{
	struct weir_fleet_config c;

	weir_fleet_config_init(&c);
	c.store = store;
	c.manual = 1;
	c.label = "failures";
	return c;
}

static int open_fleet_of(const struct weir_fleet_config *c)
{
	why[0] = '\0';
	return weir_fleet_open(c, &fleet, why, sizeof(why));
}

int open_fleet(void)
{
	const struct weir_fleet_config c = fleet_config();

	return open_fleet_of(&c);
}

static int open_own_fleet(void)
{
	struct weir_fleet_config c = fleet_config();

	c.store_config = &config;
	c.manual = 0;
	return open_fleet_of(&c);
}

static void no_fleet(void)
{
	is_explained();
	CHECK(fleet == NULL);
}

static bool allocated; /* the limit has an allocator */

int join(void)
{
	struct weir_share_config c;

	weir_share_config_init(&c);
	c.allocated = allocated;
	c.name = "limit";
	c.capacity = CAPACITY;
	why[0] = '\0';
	return weir_share_join(fleet, &c, &share, why, sizeof(why));
}

static void no_share(void)
{
	is_explained();
	CHECK(share == NULL);
}

int refresh(void)
{
	return weir_fleet_refresh(fleet);
}

static int step(void)
{
	(void)weir_fleet_step(fleet);
	return 0;
}

void has_sentence(void)
{
	weir_fleet_error(fleet, why, sizeof(why));
	is_explained();
	CHECK(weir_share_units(share) <= CAPACITY);
}

void has_units(void)
{
	CHECK(refresh() == 0 && refresh() == 0);
	CHECK(weir_share_units(share) == CAPACITY);
}

static void use_fleet(void)
{
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
	has_units();
}

static void use_own_fleet(void)
{
	CHECK(join() == 0);
	CHECK(refresh() == 0);
}

void begin_trusted(void)
{
	begin_store();
	store = test_store_trusted(store, strcmp(kind, "shm") == 0 ? address + strlen("shm:") : "");
}

void begin_fleet(void)
{
	begin_trusted();
	CHECK(open_fleet() == 0);
}

void begin_share(void)
{
	begin_fleet();
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

void begin_with_units(void)
{
	begin_share();
	has_units();
}

static void begin_allocated(void)
{
	allocated = true;
	begin_share();
}

/* It is elected, and wants more than its grant. */
static void begin_allocator(void)
{
	begin_allocated();
	CHECK(weir_share_demand_set(share, CAPACITY / 2) == 0);
	CHECK(refresh() == 0 && weir_share_units(share) == CAPACITY / 2);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

void end_fleet(void)
{
	allocated = false;
	weir_fleet_close(fleet);
	weir_store_close(store);
	fleet = NULL;
	store = NULL;
	share = NULL;
}

static void end_own_fleet(void)
{
	weir_fleet_close(fleet);
	fleet = NULL;
	share = NULL;
	if (strcmp(kind, "shm") == 0)
		CHECK(shm_unlink(address + strlen("shm:")) == 0);
}

/* Three members that want more than there is, so that units are divided and rounded. */

static struct weir_fleet *others[2];
static struct weir_share *their_shares[2];
static enum weir_allotment allotment;

static void begin_three(void)
{
	struct weir_fleet_config c;
	struct weir_share_config limit;

	begin_trusted();
	c = fleet_config();
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	limit.allotment = allotment;
	for (int i = 0; i < 2; i++) {
		CHECK(weir_fleet_open(&c, &others[i], NULL, 0) == 0);
		CHECK(weir_share_join(others[i], &limit, &their_shares[i], NULL, 0) == 0);
		CHECK(weir_share_demand_set(their_shares[i], CAPACITY) == 0);
	}
	CHECK(open_fleet() == 0);
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(weir_fleet_refresh(others[0]) == 0 && weir_fleet_refresh(others[1]) == 0);
}

static void begin_three_fair(void)
{
	allotment = WEIR_ALLOT_FAIR;
	begin_three();
}

static void begin_three_proportional(void)
{
	allotment = WEIR_ALLOT_PROPORTIONAL;
	begin_three();
}

static uint64_t sum(void)
{
	return weir_share_units(share) + weir_share_units(their_shares[0]) +
	       weir_share_units(their_shares[1]);
}

static void not_too_much(void)
{
	has_sentence();
	CHECK(sum() <= CAPACITY);
}

static void all_used(void)
{
	for (int i = 0; i < 4; i++) {
		CHECK(refresh() == 0);
		CHECK(weir_fleet_refresh(others[0]) == 0 && weir_fleet_refresh(others[1]) == 0);
		CHECK(sum() <= CAPACITY);
	}
	CHECK(sum() == CAPACITY);
}

static void end_three(void)
{
	weir_fleet_close(others[0]);
	weir_fleet_close(others[1]);
	end_fleet();
}

static struct failure_case cases[] = {
	{"weir_fleet_open",
	 "with a store",
	 begin_trusted,
	 open_fleet,
	 no_fleet,
	 use_fleet,
	 end_fleet,
	 {NO_RANDOM}},
	{"weir_fleet_open",
	 NULL,
	 new_name,
	 open_own_fleet,
	 no_fleet,
	 use_own_fleet,
	 end_own_fleet,
	 {NO_ROOM, NO_RANDOM}},
	{"weir_share_join", NULL, begin_fleet, join, no_share, NULL, end_fleet},
	{"weir_fleet_refresh",
	 "at first",
	 begin_share,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of a lease",
	 begin_with_units,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "that elects an allocator",
	 begin_allocated,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of an allocator",
	 begin_allocator,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	/* Without memory, units are not rounded, and some are not used. */
	{"weir_fleet_refresh",
	 "of one of three members",
	 begin_three_fair,
	 refresh,
	 not_too_much,
	 all_used,
	 end_three,
	 {UNEXAMINED, UNROUNDED}},
	{"weir_fleet_refresh",
	 "by unmet demand",
	 begin_three_proportional,
	 refresh,
	 not_too_much,
	 all_used,
	 end_three,
	 {UNEXAMINED, UNROUNDED}},
	{"weir_fleet_step",
	 NULL,
	 begin_share,
	 step,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED, NOT_TOLD}},
};

const struct failure_table share_failures = {cases, COUNT(cases)};
