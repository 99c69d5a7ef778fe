/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_members MEMBERS: many members of one limit, refreshed by several threads at the same time,
 * without any pause. After each has refreshed three times, all have exactly their fair share; and
 * meanwhile the ledger never grants more than the capacity.
 */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "fleet/protocol/plan.h"

#define THREADS  4
#define ROUNDS   3
#define CAPACITY 100000

struct member {
	struct weir_fleet *fleet;
	struct weir_share *share;
	uint64_t wants;
};

static struct member *members;
static unsigned count;
static struct weir_store *store;
static _Atomic unsigned turn;

static void enter(unsigned index)
{
	struct weir_fleet_config config;
	struct weir_share_config share;
	struct member *m = &members[index];

	weir_fleet_config_init(&config);
	config.store = store;
	config.manual = 1;
	config.lease = 3600 * WEIR_S;
	CHECK(weir_fleet_open(&config, &m->fleet, NULL, 0) == 0);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = CAPACITY;
	CHECK(weir_share_join(m->fleet, &share, &m->share, NULL, 0) == 0);
	m->wants = 1 + index * 7919 % (4 * CAPACITY / count);
	CHECK(weir_share_demand_set(m->share, m->wants) == 0);
}

static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		const unsigned next = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);

		if (next >= ROUNDS * count)
			return NULL;
		CHECK(weir_fleet_refresh(members[next % count].fleet) == 0);
	}
}

static bool take(void *arg, const struct weir_store_row *row)
{
	return view_take(arg, strchr(row->key, '/') + 1, row);
}

static void *read_ledger(void *arg)
{
	struct limit_view view = {.count = 0};
	const char *prefix = "limit/";

	(void)arg;
	while (atomic_load_explicit(&turn, memory_order_relaxed) < ROUNDS * count) {
		uint64_t sum = 0;

		view_clear(&view);
		CHECK(weir_store_read(store, &prefix, 1, take, &view, NULL) == 0);
		for (size_t i = 0; i < view.ledger.count; i++)
			sum += view.ledger.lines[i].grant;
		CHECK(sum <= CAPACITY);
	}
	view_free(&view);
	return NULL;
}

static void check_fair(void)
{
	struct claim *claims = calloc(count, sizeof(*claims));
	uint64_t sum = 0, conflicts = 0;

	CHECK(claims != NULL);
	for (unsigned i = 0; i < count; i++)
		claims[i] = (struct claim){.id = i, .wants = members[i].wants, .weight = 1};
	allot(WEIR_ALLOT_FAIR, CAPACITY, claims, count);
	for (unsigned i = 0; i < count; i++) {
		const struct member *m = &members[claims[i].id];
		const uint64_t units = weir_share_units(m->share);
		struct weir_share_info info;

		/* Which member gets the last unit depends on random numbers. */
		CHECK(units + 1 >= claims[i].target && units <= claims[i].target + 1);
		sum += units;
		weir_share_info_init(&info);
		weir_share_info_take(m->share, &info);
		conflicts += info.conflicts;
	}
	CHECK(sum == CAPACITY);
	printf("%u members, %u refreshes by %d threads: %.2f conflicts each\n", count,
	       ROUNDS * count, THREADS, (double)conflicts / (ROUNDS * count));
	free(claims);
}

int main(int argc, char **argv)
{
	static char unused[THREADS];
	pthread_t reader;
	struct crew crew;

	count = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	CHECK(count > 1);
	members = calloc(count, sizeof(*members));
	CHECK(members != NULL && weir_store_open(NULL, &store, NULL, 0) == 0);
	for (unsigned i = 0; i < count; i++)
		enter(i);
	CHECK(pthread_create(&reader, NULL, read_ledger, NULL) == 0);
	crew_start(&crew, THREADS, work, unused, 1);
	crew_join(&crew);
	CHECK(pthread_join(reader, NULL) == 0);
	/* The last ones have left units that others may not have taken yet. */
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < count; i++)
			CHECK(weir_fleet_refresh(members[i].fleet) == 0);
	check_fair();
	for (unsigned i = 0; i < count; i++)
		weir_fleet_close(members[i].fleet);
	weir_store_close(store);
	free(members);
	return 0;
}
