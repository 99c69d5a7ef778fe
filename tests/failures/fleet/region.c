/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions: the limit above and that below are in one store. */
#include "fleet.h"

static struct weir_fleet *above;
static struct weir_region *region;

static int open_region(void)
{
	struct weir_fleet_config c = fleet_config();
	struct weir_region_config r;
	struct weir_share_config limit;

	weir_share_config_init(&limit);
	limit.name = "above";
	limit.capacity = CAPACITY;
	weir_region_config_init(&r);
	r.above = &c;
	r.limit = &limit;
	r.below = &c;
	r.name = "limit";
	why[0] = '\0';
	return weir_region_open(&r, &region, why, sizeof(why));
}

static void no_region(void)
{
	is_explained();
	CHECK(region == NULL);
}

static void use_region(void)
{
	above = weir_region_fleet(region);
	CHECK(weir_fleet_refresh(above) == 0);
}

static void begin_region(void)
{
	begin_with_units();
	CHECK(open_region() == 0);
	above = weir_region_fleet(region);
}

static int refresh_region(void)
{
	return weir_fleet_refresh(above);
}

static void end_region(void)
{
	weir_region_close(region);
	region = NULL;
	end_fleet();
}

static struct failure_case cases[] = {
	{"weir_region_open",
	 NULL,
	 begin_with_units,
	 open_region,
	 no_region,
	 use_region,
	 end_region,
	 {NO_RANDOM}},
	{"weir_fleet_refresh",
	 "of a region",
	 begin_region,
	 refresh_region,
	 NULL,
	 use_region,
	 end_region,
	 {UNEXAMINED}},
};

const struct failure_table region_failures = {cases, COUNT(cases)};
