/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of shares have in common: a world, and its members.
 */
#ifndef WEIR_TESTS_FLEET_SHARES_RIG_H
#define WEIR_TESTS_FLEET_SHARES_RIG_H

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUNDS  (3 * REFRESH) /* each has refreshed twice */

static struct world w;

static inline void begin(uint64_t capacity)
{
	world_begin(&w, capacity, LEASE, REFRESH);
}

static inline void enter(unsigned count, uint64_t wants)
{
	for (unsigned i = 0; i < count; i++)
		world_enter(&w, i, wants);
	world_run(&w, ROUNDS);
}

static inline struct weir_share_info info_of(unsigned member)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(w.actors[member].share, &info);
	return info;
}

static inline void end(void)
{
	CHECK(w.over == 0);
	world_end(&w);
}

#endif
