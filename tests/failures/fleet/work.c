/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions of work, and of capacity. */
#include <weir/work.h>

#include "fleet.h"

#define PARTS 2

static struct weir_work *work;
static uint64_t fence;
static unsigned seen;

int open_work(void)
{
	struct weir_work_config c;

	weir_work_config_init(&c);
	c.name = "work";
	c.count = PARTS;
	why[0] = '\0';
	return weir_work_open(fleet, &c, &work, why, sizeof(why));
}

static void no_work(void)
{
	is_explained();
	CHECK(work == NULL);
}

static void owns_all(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(refresh() == 0);
	CHECK(weir_work_owned(work) == PARTS);
	fence = weir_work_fence(work, 0);
	CHECK(fence != 0);
}

static void begin_work(void)
{
	begin_fleet();
	CHECK(open_work() == 0);
}

static void begin_owner(void)
{
	begin_work();
	owns_all();
}

static void owns_some(void)
{
	CHECK(weir_work_owned(work) <= PARTS);
}

static void still_owns(void)
{
	CHECK(weir_work_fence(work, 0) == fence && weir_work_owned(work) == PARTS);
}

static int checkpoint(void)
{
	return weir_work_checkpoint(work, 0, fence, 7, "value", 5);
}

static int load(void)
{
	uint64_t sequence;
	char value[8];
	size_t size = sizeof(value);
	const int r = weir_work_load(work, 0, &sequence, value, &size);

	CHECK(r != 0 || (sequence == 7 && size == 5 && memcmp(value, "value", 5) == 0));
	return r;
}

static void no_checkpoint(void)
{
	still_owns();
	CHECK(load() == -ENOENT);
}

static void has_checkpoint(void)
{
	still_owns();
	CHECK(load() == 0);
}

static void begin_checkpoint(void)
{
	begin_owner();
	CHECK(checkpoint() == 0);
}

static int set_back(void)
{
	const int r = weir_work_rewind(store, "work", 0, 7, "value", 5, "me");

	return r == 1 ? 0 : r;
}

static int restart(void)
{
	const int r = weir_work_restart(store, "work", 0, "me");

	return r == 1 ? 0 : r;
}

static void is_restarted(void)
{
	still_owns();
	CHECK(checkpoint() == -ESTALE && load() == -ENOENT);
	CHECK(refresh() == 0 && weir_work_owned(work) == PARTS);
	CHECK(weir_work_fence(work, 0) > fence);
}

static void begin_capacity(void)
{
	struct weir_work_config c;

	begin_fleet();
	weir_work_config_init(&c);
	c.name = "rate";
	c.strategy = WEIR_WORK_WANTED;
	c.capacity = 100;
	c.factor = 25;
	CHECK(weir_work_open(fleet, &c, &work, why, sizeof(why)) == 0);
	CHECK(weir_work_demand_set(work, 100) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(refresh() == 0);
	CHECK(weir_work_units(work) == 100);
}

static void still_has(void)
{
	CHECK(weir_work_units(work) == 100);
}

static int resize(void)
{
	return weir_work_resize(store, "rate", 60, 20);
}

static void is_resized(void)
{
	CHECK(refresh() == 0 && weir_work_units(work) == 60);
}

static int take_size(void)
{
	struct weir_work_size info;
	int r;

	weir_work_size_init(&info);
	r = weir_work_size_take(store, "rate", &info);
	CHECK(r != 0 || (info.count == 4 && info.capacity == 100 && info.factor == 25));
	return r;
}

static void is_set_back(void)
{
	still_owns();
	CHECK(checkpoint() == -ESTALE && load() == 0);
	CHECK(refresh() == 0 && weir_work_owned(work) == PARTS);
	CHECK(weir_work_fence(work, 0) > fence);
}

static bool see_part(void *arg, const struct weir_work_partition *partition)
{
	(void)arg;
	seen += partition->owner != 0;
	return true;
}

static int inspect_work(void)
{
	uint32_t workers;

	seen = 0;
	return weir_work_inspect(store, "work", &workers, see_part, NULL);
}

static void saw_parts(void)
{
	CHECK(seen == PARTS);
}

void end_work(void)
{
	work = NULL;
	end_fleet();
}

static struct failure_case cases[] = {
	{"weir_fleet_refresh",
	 "of work",
	 begin_work,
	 refresh,
	 owns_some,
	 owns_all,
	 end_work,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of an owner",
	 begin_owner,
	 refresh,
	 owns_some,
	 owns_all,
	 end_work,
	 {UNEXAMINED}},
	{"weir_work_open", NULL, begin_fleet, open_work, no_work, owns_all, end_work},
	{"weir_work_checkpoint",
	 NULL,
	 begin_owner,
	 checkpoint,
	 no_checkpoint,
	 has_checkpoint,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_load",
	 NULL,
	 begin_checkpoint,
	 load,
	 still_owns,
	 has_checkpoint,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_rewind",
	 NULL,
	 begin_checkpoint,
	 set_back,
	 still_owns,
	 is_set_back,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_restart",
	 NULL,
	 begin_checkpoint,
	 restart,
	 still_owns,
	 is_restarted,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_resize",
	 NULL,
	 begin_capacity,
	 resize,
	 still_has,
	 is_resized,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_size_take",
	 NULL,
	 begin_capacity,
	 take_size,
	 still_has,
	 still_has,
	 end_work,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_inspect",
	 NULL,
	 begin_owner,
	 inspect_work,
	 NULL,
	 saw_parts,
	 end_work,
	 {UNEXAMINED}},
};

const struct failure_table work_failures = {cases, COUNT(cases)};
