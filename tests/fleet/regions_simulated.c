/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions in simulated time, case by case; after each, when all faults are over, each member has
 * its fair share.
 *
 * regions_simulated [SEEDS]: SEEDS random runs with each of two topologies.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "regions.h"

/* Two regions, with unequal weights and wants, and one member at the root itself. */
static void build_two_regions(uint64_t reserved)
{
	struct region *root, *east, *west;

	sim_begin(0, reserved);
	root = sim_add_region(NULL);
	east = sim_add_region(root);
	west = sim_add_region(root);
	sim_add_leaf(root, 400, 1);
	for (unsigned i = 0; i < 4; i++)
		sim_add_leaf(east, 300, 1 + i % 2);
	sim_add_leaf(west, 500, 2);
	sim_add_leaf(west, 50, 1);
}

static void build_three_levels(void)
{
	struct region *root, *north, *south;

	sim_begin(1, 0);
	root = sim_add_region(NULL);
	north = sim_add_region(root);
	south = sim_add_region(root);
	for (unsigned i = 0; i < 4; i++) {
		struct region *p = sim_add_region(i < 2 ? north : south);

		for (unsigned j = 0; j < 3; j++)
			sim_add_leaf(p, 100 + 50 * j, 1 + (i + j) % 2);
	}
}

static void fair(void)
{
	build_two_regions(0);
	sim_run(120);
	sim_check_fair(CAPACITY);
	CHECK(region_sum(NULL) == CAPACITY);
	/* What one region leaves goes to the other. */
	for (unsigned i = 1; i < 5; i++) {
		sim.leaves[i].wants = 10;
		CHECK(weir_share_demand_set(sim.leaves[i].share, 10) == 0);
	}
	sim_run(120);
	sim_check_fair(CAPACITY);
	CHECK(region_sum(NULL) == 990);
	sim_end();
	build_three_levels();
	sim_run(200);
	sim_check_fair(CAPACITY);
	CHECK(region_sum(NULL) == CAPACITY);
	sim_end();
}

static struct leader *current_leader(struct region *p)
{
	for (unsigned i = 0; i < LEADERS_PER_REGION; i++) {
		struct weir_share_info info;

		weir_share_info_init(&info);
		if (p->leaders[i].region == NULL)
			continue;
		weir_share_info_take(weir_region_share(p->leaders[i].region), &info);
		if (info.state == WEIR_SHARE_LEASED || info.state == WEIR_SHARE_HOLDING)
			return &p->leaders[i];
	}
	return NULL;
}

/* Another leader takes over what the region holds, without effect on its members. */
static void leader_dies(void)
{
	struct region *east;
	struct leader *first;

	build_two_regions(0);
	sim_run(120);
	east = &sim.regions[1];
	first = current_leader(east);
	CHECK(first != NULL);
	sim.least = UINT64_MAX;
	leader_kill(first);
	sim_run(300);
	CHECK(sim.least == CAPACITY);
	CHECK(current_leader(east) != NULL && current_leader(east) != first);
	/* Without any leader, it ends with the lease, and goes to the others. */
	leader_kill(current_leader(east));
	sim_run(200);
	CHECK(region_sum(east) == 0 && region_sum(NULL) == 950);
	leader_open(east, &east->leaders[0]);
	sim_run(120);
	sim_check_fair(CAPACITY);
	sim_end();
}

/* Without a leader, and with stopped members: the members' units end with the region's lease. */
static void members_stop(void)
{
	struct region *east;

	build_two_regions(0);
	sim_run(120);
	east = &sim.regions[1];
	for (unsigned i = 0; i < LEADERS_PER_REGION; i++)
		leader_kill(&east->leaders[i]);
	sim_run(40);
	for (unsigned i = 0; i < sim.leaf_count; i++)
		if (sim.leaves[i].in == east)
			sim.leaves[i].next = sim.now + 100 * WEIR_S;
	sim_run(50);
	CHECK(region_sum(east) == 0 && region_sum(NULL) == 950);
	sim_end();
}

/* A leader that was stopped finds that it is not the leader any more. */
static void leader_stops(void)
{
	struct leader *first;

	build_two_regions(0);
	sim_run(120);
	first = current_leader(&sim.regions[1]);
	CHECK(first != NULL);
	first->next = sim.now + 200 * WEIR_S;
	sim_run(150);
	sim.leaves[5].wants = 700;
	CHECK(weir_share_demand_set(sim.leaves[5].share, 700) == 0);
	sim_run(300);
	CHECK(current_leader(&sim.regions[1]) != first);
	sim_check_fair(CAPACITY);
	sim_end();
}

/*
 * Without the store above, a region keeps its units until the lease ends, and then has what is
 * reserved.
 */
static void above_is_lost(void)
{
	build_two_regions(100);
	sim_run(120);
	CHECK(region_sum(NULL) == CAPACITY - 100); /* reserved for a member that is not present */
	sim.regions[0].down = true;
	sim.least = UINT64_MAX;
	sim_run(25);
	CHECK(sim.least == CAPACITY - 100);
	sim_run(100);
	CHECK(region_sum(&sim.regions[0]) == 100);
	CHECK(region_sum(&sim.regions[1]) == 100 && region_sum(&sim.regions[2]) == 100);
	sim.regions[0].down = false;
	sim_run(150);
	CHECK(region_sum(NULL) == CAPACITY - 100);
	sim_end();
}

static void refresh_leaders(void)
{
	for (unsigned i = LEADERS_PER_REGION; i < sim.region_count * LEADERS_PER_REGION; i++)
		(void)weir_fleet_refresh(weir_region_fleet(sim.regions[i / LEADERS_PER_REGION]
								   .leaders[i % LEADERS_PER_REGION]
								   .region));
}

/*
 * A leader acts between a member's reading and its creation of the limit: nothing is counted twice.
 */
static void leader_acts_before_member(void)
{
	sim_begin(3, 100);
	(void)sim_add_region(sim_add_region(NULL));
	(void)sim_add_region(&sim.regions[0]);
	sim_add_leaf(&sim.regions[0], CAPACITY, 1);
	sim_run(60);
	CHECK(region_sum(NULL) == CAPACITY - 300);
	sim_add_leaf(&sim.regions[1], CAPACITY, 1);
	sim_add_leaf(&sim.regions[2], CAPACITY, 1);
	sim.leaves[1].way.meanwhile = sim.leaves[2].way.meanwhile = refresh_leaders;
	sim_run(120);
	sim_check_fair(CAPACITY - 100);
	sim_end();
}

/*
 * Without the store below, its members' leases end, and then the region's; the others get the
 * units.
 */
static void below_is_lost(void)
{
	build_two_regions(0);
	sim_run(120);
	sim.regions[1].down = true;
	sim_run(35);
	CHECK(region_sum(&sim.regions[1]) == 0);
	sim_run(165);
	CHECK(region_sum(NULL) == 950);
	sim.regions[1].down = false;
	sim_run(200);
	sim_check_fair(CAPACITY);
	sim_end();
}

static void cut(void)
{
	build_three_levels();
	sim_run(200);
	sim_set_capacity(300);
	sim_run(100);
	CHECK(region_sum(NULL) <= 300);
	sim_run(100);
	sim_check_fair(300);
	sim_set_capacity(900);
	sim_run(200);
	sim_check_fair(900);
	sim_end();
}

/* One member at the root, and two in a region, which has half. */
static struct leader *build_one_region(void)
{
	struct region *root, *east;

	sim_begin(2, 0);
	root = sim_add_region(NULL);
	east = sim_add_region(root);
	sim_add_leaf(root, CAPACITY, 1);
	sim_add_leaf(east, CAPACITY / 2, 1);
	sim_add_leaf(east, 0, 1);
	sim_run(200);
	CHECK(region_sum(root) == CAPACITY / 2 && region_sum(east) == CAPACITY / 2);
	return current_leader(east);
}

static void want(unsigned leaf, uint64_t units)
{
	sim.leaves[leaf].wants = units;
	CHECK(weir_share_demand_set(sim.leaves[leaf].share, units) == 0);
	(void)weir_fleet_refresh(sim.leaves[leaf].fleet);
}

static void refresh(struct leader *c)
{
	(void)weir_fleet_refresh(weir_region_fleet(c->region));
}

static void shrink_meanwhile(void)
{
	struct leader *c = current_leader(&sim.regions[1]);

	refresh(c);
	refresh(c);
	want(0, CAPACITY);
	CHECK(region_sum(&sim.regions[0]) == CAPACITY);
}

/* A member is about to take units that the region then gives back. */
static void late_growth(void)
{
	(void)build_one_region();
	want(1, 0);
	sim.leaves[2].way.meanwhile = shrink_meanwhile;
	want(2, CAPACITY / 2);
	CHECK(region_sum(NULL) == CAPACITY);
	sim_run(200);
	CHECK(region_sum(NULL) == CAPACITY && region_sum(&sim.regions[1]) == CAPACITY / 2);
	sim_end();
}

static void replace_meanwhile(void)
{
	want(1, CAPACITY / 2);
	sim_run(45);
	CHECK(region_sum(&sim.regions[1]) == CAPACITY / 2);
}

/* A leader is about to give back, above, units that its successor then hands out. */
static void late_shrinking(void)
{
	struct leader *first = build_one_region();

	want(1, 0);
	refresh(first);
	first->above.meanwhile = replace_meanwhile;
	first->next = WEIR_FOREVER;
	refresh(first);
	sim_add_leaf(&sim.regions[0], CAPACITY, 100);
	want(3, CAPACITY);
	CHECK(region_sum(NULL) == CAPACITY);
	first->next = sim.now;
	sim_run(200);
	sim_check_fair(CAPACITY);
	sim_end();
}

static void publish_late(void)
{
	for (unsigned i = 0; i < LEADERS_PER_REGION; i++)
		sim.regions[1].leaders[i].below.manner = LATE;
}

static void arrive_meanwhile(void)
{
	sim.parcels->due = sim.now;
	sim_deliver();
	CHECK(sim.parcels == NULL);
	want(0, CAPACITY);
	want(2, CAPACITY);
}

/*
 * The region's capacity was written without an answer; the write arrives when the region has less.
 */
static void late_publishing(void)
{
	struct leader *first = build_one_region();
	uint64_t held;

	want(0, 0);
	want(1, 100);
	sim_run(100);
	CHECK(region_sum(&sim.regions[1]) == 100);
	want(1, CAPACITY);
	held = region_sum(&sim.regions[1]); /* with the region's headroom */
	CHECK(held > 100 && held < CAPACITY);
	first->below.meanwhile = publish_late;
	first->below.skips = 1;
	refresh(first);
	CHECK(sim.parcels != NULL && region_sum(&sim.regions[1]) == held);
	for (unsigned i = 0; i < LEADERS_PER_REGION; i++)
		sim.regions[1].leaders[i].below.manner = ANSWERS;
	want(1, 100);
	first->below.meanwhile = arrive_meanwhile;
	first->below.skips = 1;
	refresh(first);
	CHECK(region_sum(NULL) <= CAPACITY);
	sim_run(200);
	CHECK(region_sum(NULL) == CAPACITY);
	sim_end();
}

/* Run for that time, during which the region keeps all that it has now. */
static void run_steady(struct region *p, unsigned seconds)
{
	const uint64_t had = region_sum(p);

	for (unsigned i = 0; i < seconds; i++) {
		sim_run(1);
		CHECK(region_sum(p) == had);
	}
}

static void want_of(struct region *p, uint64_t units)
{
	for (unsigned i = 0; i < sim.leaf_count; i++)
		if (sim.leaves[i].in == p) {
			sim.leaves[i].wants = units;
			CHECK(weir_share_demand_set(sim.leaves[i].share, units) == 0);
		}
}

/*
 * A region's store forgets everything. Whichever process comes first then, the former leader or
 * another, the region goes on with what it holds, and so do its members; nothing of it is given
 * back before the lease above is over.
 */
static void below_forgets(bool another)
{
	struct region *east;
	struct leader *first;
	uint64_t had;

	build_two_regions(0);
	sim_run(120);
	east = &sim.regions[1];
	first = current_leader(east);
	CHECK(first != NULL);
	had = region_sum(east);
	region_forget(east);
	if (another)
		first->next = sim.now + 25 * WEIR_S;
	sim_add_leaf(east, 300, 1);
	run_steady(east, 25);
	CHECK(weir_share_units(sim.leaves[7].share) == 0);
	want_of(east, 10);
	sim_run(25);
	CHECK(region_sum(east) == 50 && region_sum(NULL) <= CAPACITY - had + 50);
	sim_run(150);
	sim_check_fair(CAPACITY);
	CHECK((current_leader(east) == first) != another);
	sim_end();
}

/* The root forgets everything: members keep what they hold, and none gets more. */
static void above_forgets(void)
{
	build_two_regions(0);
	sim_run(120);
	region_forget(&sim.regions[0]);
	sim_add_leaf(&sim.regions[0], 400, 1);
	sim.least = UINT64_MAX;
	sim_run(55);
	CHECK(sim.least == CAPACITY && weir_share_units(sim.leaves[7].share) == 0);
	sim_run(150);
	sim_check_fair(CAPACITY);
	sim_end();
}

/* The same, and a leader dies: what its region held ends with its lease. */
static void above_forgets_leader_dies(void)
{
	build_two_regions(0);
	sim_run(120);
	leader_kill(current_leader(&sim.regions[1]));
	region_forget(&sim.regions[0]);
	sim_run(300);
	sim_check_fair(CAPACITY);
	sim_end();
}

/* The store above refuses writes: all units stay as they are. */
static void above_full(void)
{
	struct region *east;

	build_two_regions(0);
	sim_run(120);
	east = &sim.regions[1];
	sim.regions[0].full = true;
	sim.least = UINT64_MAX;
	sim_run(5);
	want_of(east, 10);
	sim_run(300);
	want_of(east, 300);
	sim_run(30);
	CHECK(region_sum(NULL) == CAPACITY);
	sim.regions[0].full = false;
	sim_run(150);
	sim_check_fair(CAPACITY);
	sim_end();
}

/*
 * The store below refuses writes: the region loses its units to others, and regains them
 * afterwards.
 */
static void below_full(void)
{
	struct region *east;

	build_two_regions(0);
	sim_run(120);
	east = &sim.regions[1];
	want_of(&sim.regions[2], CAPACITY);
	sim_run(150);
	east->full = true;
	sim_run(300);
	CHECK(region_sum(east) == 0 && region_sum(NULL) == CAPACITY);
	east->full = false;
	sim_run(300);
	sim_check_fair(CAPACITY);
	sim_end();
}

static void cut_off(void)
{
	sim.leaves[0].way.manner = UNREACHABLE;
}

/*
 * A member comes late to a root that has forgotten, and its claim is not written: it has its units
 * no longer than before.
 */
static void late_claim(uint64_t wants)
{
	struct leaf *l = &sim.leaves[0];

	(void)build_one_region();
	want(1, 0);
	sim_run(100);
	want(0, CAPACITY);
	CHECK(region_sum(&sim.regions[0]) == CAPACITY);
	region_forget(&sim.regions[0]);
	want(1, CAPACITY);
	l->wants = wants;
	CHECK(weir_share_demand_set(l->share, wants) == 0);
	l->way.meanwhile = cut_off;
	l->way.skips = 1;
	l->next = sim.now + 58 * WEIR_S;
	sim_run(150);
	CHECK(l->way.manner == UNREACHABLE && region_sum(&sim.regions[1]) == CAPACITY);
	l->way.manner = ANSWERS;
	sim_run(200);
	sim_check_fair(CAPACITY);
	sim_end();
}

static enum manner some_manner(void)
{
	static const enum manner manners[] = {UNREACHABLE, UNREACHABLE, LOSES, LATE};

	return manners[sim_draw(4)];
}

static void disturb_leaf(struct leaf *l)
{
	if (l->fleet == NULL) {
		leaf_enter(l);
		return;
	}
	switch (sim_draw(5)) {
	case 0:
		leaf_kill(l);
		break;
	case 1:
		l->next = sim.now + sim_draw(60 * WEIR_S);
		break;
	case 2:
		l->way.manner = l->way.manner == ANSWERS ? some_manner() : ANSWERS;
		break;
	default:
		l->wants = sim_draw(400);
		CHECK(weir_share_demand_set(l->share, l->wants) == 0);
	}
}

static void disturb_leader(struct region *p, struct leader *c)
{
	if (p->above == NULL)
		return;
	if (c->region == NULL) {
		leader_open(p, c);
		return;
	}
	switch (sim_draw(4)) {
	case 0:
		leader_kill(c);
		break;
	case 1:
		c->next = sim.now + sim_draw(100 * WEIR_S);
		break;
	case 2:
		c->above.manner = c->above.manner == ANSWERS ? some_manner() : ANSWERS;
		break;
	default:
		c->below.manner = c->below.manner == ANSWERS ? some_manner() : ANSWERS;
	}
}

static void disturb(void)
{
	struct region *p = &sim.regions[sim_draw(sim.region_count)];

	switch (sim_draw(8)) {
	case 0:
		p->down = !p->down;
		break;
	case 1:
		if (sim_draw(2) == 0)
			region_forget(p);
		else if (!sim.regions[0].down)
			sim_set_capacity(600 + sim_draw(CAPACITY));
		break;
	case 2:
	case 3:
	case 4:
		disturb_leader(p, &p->leaders[sim_draw(LEADERS_PER_REGION)]);
		break;
	default:
		disturb_leaf(&sim.leaves[sim_draw(sim.leaf_count)]);
	}
}

/* End all faults, and start all that are not present. */
static void end_faults(void)
{
	for (unsigned i = 0; i < sim.region_count; i++) {
		sim.regions[i].down = false;
		for (unsigned j = 0; i > 0 && j < LEADERS_PER_REGION; j++) {
			struct leader *c = &sim.regions[i].leaders[j];

			if (c->region == NULL)
				leader_open(&sim.regions[i], c);
			c->above.manner = c->below.manner = ANSWERS;
		}
	}
	for (unsigned i = 0; i < sim.leaf_count; i++) {
		if (sim.leaves[i].fleet == NULL)
			leaf_enter(&sim.leaves[i]);
		sim.leaves[i].way.manner = ANSWERS;
	}
}

/* A random sequence of faults. */
static void random_run(unsigned seed, bool three)
{
	if (three)
		build_three_levels();
	else
		build_two_regions(0);
	sim.chance += seed * UINT64_C(0x9e3779b97f4a7c15);
	sim_run(100);
	sim.stops = seed % 2 == 1;
	for (unsigned i = 0; i < 150; i++) {
		disturb();
		sim_run(1 + (unsigned)sim_draw(12));
	}
	sim.stops = false;
	end_faults();
	sim_run(100); /* the first member at a root that has forgotten creates the limit */
	sim_set_capacity(1000);
	sim_run(400);
	sim_check_fair(1000);
	sim_end();
}

static void configurations(void)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	struct weir_region_config config;
	struct weir_region *region;
	char why[256];

	weir_fleet_config_init(&fleet);
	weir_share_config_init(&share);
	weir_region_config_init(&config);
	CHECK(weir_region_open(&config, &region, why, sizeof(why)) == -EINVAL && region == NULL);
	config.above = config.below = &fleet;
	config.limit = &share;
	CHECK(weir_region_open(&config, &region, why, sizeof(why)) == -EINVAL && why[0] != '\0');
	share.name = "limit";
	config.name = "a/b";
	CHECK(weir_region_open(&config, &region, NULL, 0) == -EINVAL);
	config.name = "region";
	fleet.address = "nowhere://";
	CHECK(weir_region_open(&config, &region, why, sizeof(why)) == -EINVAL);
	fleet.address = NULL;
	fleet.lease = 3600 * WEIR_S + 1;
	CHECK(weir_region_open(&config, &region, why, sizeof(why)) == -EINVAL);
	fleet.lease = 0;
	/* With threads and with default stores, both of this process only. */
	CHECK(weir_region_open(&config, &region, why, sizeof(why)) == 0);
	CHECK(weir_fleet_refresh(weir_region_fleet(region)) == 0);
	weir_region_close(region);
	weir_region_close(NULL);
}

int main(int argc, char **argv)
{
	const unsigned seeds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;

	configurations();
	fair();
	leader_dies();
	members_stop();
	leader_stops();
	above_is_lost();
	leader_acts_before_member();
	below_is_lost();
	cut();
	below_forgets(false);
	below_forgets(true);
	above_full();
	below_full();
	above_forgets();
	above_forgets_leader_dies();
	late_claim(CAPACITY);
	late_claim(CAPACITY / 2 + 100);
	late_growth();
	late_shrinking();
	late_publishing();
	for (unsigned seed = 0; seed < seeds; seed++) {
		random_run(seed, false);
		random_run(seed, true);
	}
	printf("%u random_run runs\n", 2 * seeds);
	return 0;
}
