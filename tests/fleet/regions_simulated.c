/*
 * Regions, in simulated time, case by case; and when all is well again, each has what it is due.
 *
 * tree [SEEDS]: so many wild runs of each kind of tree.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "regions.h"

/* Two regions, of unequal weights and wants, and one member at the root itself. */
static void plant_two(uint64_t reserved)
{
	struct place *root, *east, *west;

	grove_begin(0, reserved);
	root = grove_add_place(NULL);
	east = grove_add_place(root);
	west = grove_add_place(root);
	grove_add_leaf(root, 400, 1);
	for (unsigned i = 0; i < 4; i++)
		grove_add_leaf(east, 300, 1 + i % 2);
	grove_add_leaf(west, 500, 2);
	grove_add_leaf(west, 50, 1);
}

static void plant_three(void)
{
	struct place *root, *north, *south;

	grove_begin(1, 0);
	root = grove_add_place(NULL);
	north = grove_add_place(root);
	south = grove_add_place(root);
	for (unsigned i = 0; i < 4; i++) {
		struct place *p = grove_add_place(i < 2 ? north : south);

		for (unsigned j = 0; j < 3; j++)
			grove_add_leaf(p, 100 + 50 * j, 1 + (i + j) % 2);
	}
}

static void fair(void)
{
	plant_two(0);
	grove_run(120);
	grove_check_fair(CAPACITY);
	CHECK(place_sum(NULL) == CAPACITY);
	/* What one region leaves, the other has. */
	for (unsigned i = 1; i < 5; i++) {
		grove.leaves[i].wants = 10;
		CHECK(weir_share_demand_set(grove.leaves[i].share, 10) == 0);
	}
	grove_run(120);
	grove_check_fair(CAPACITY);
	CHECK(place_sum(NULL) == 990);
	grove_end();
	plant_three();
	grove_run(200);
	grove_check_fair(CAPACITY);
	CHECK(place_sum(NULL) == CAPACITY);
	grove_end();
}

static struct carrier *acting(struct place *p)
{
	for (unsigned i = 0; i < PER_PLACE; i++) {
		struct weir_share_info info;

		weir_share_info_init(&info);
		if (p->carriers[i].region == NULL)
			continue;
		weir_share_info_take(weir_region_share(p->carriers[i].region), &info);
		if (info.state == WEIR_SHARE_LEASED || info.state == WEIR_SHARE_HOLDING)
			return &p->carriers[i];
	}
	return NULL;
}

/* Another goes on with what the region holds: its members notice nothing. */
static void carrier_dies(void)
{
	struct place *east;
	struct carrier *first;

	plant_two(0);
	grove_run(120);
	east = &grove.places[1];
	first = acting(east);
	CHECK(first != NULL);
	grove.least = UINT64_MAX;
	carrier_kill(first);
	grove_run(300);
	CHECK(grove.least == CAPACITY);
	CHECK(acting(east) != NULL && acting(east) != first);
	/* With nobody left, it ends with the lease, and the others have it. */
	carrier_kill(acting(east));
	grove_run(200);
	CHECK(place_sum(east) == 0 && place_sum(NULL) == 950);
	carrier_open(east, &east->carriers[0]);
	grove_run(120);
	grove_check_fair(CAPACITY);
	grove_end();
}

/* Nobody carries, and members are stopped: what they have is over with the region's lease. */
static void members_stop(void)
{
	struct place *east;

	plant_two(0);
	grove_run(120);
	east = &grove.places[1];
	for (unsigned i = 0; i < PER_PLACE; i++)
		carrier_kill(&east->carriers[i]);
	grove_run(40);
	for (unsigned i = 0; i < grove.leaf_count; i++)
		if (grove.leaves[i].in == east)
			grove.leaves[i].next = grove.now + 100 * WEIR_S;
	grove_run(50);
	CHECK(place_sum(east) == 0 && place_sum(NULL) == 950);
	grove_end();
}

/* Who was stopped while it carried finds that it does not any more. */
static void carrier_stops(void)
{
	struct carrier *first;

	plant_two(0);
	grove_run(120);
	first = acting(&grove.places[1]);
	CHECK(first != NULL);
	first->next = grove.now + 200 * WEIR_S;
	grove_run(150);
	grove.leaves[5].wants = 700;
	CHECK(weir_share_demand_set(grove.leaves[5].share, 700) == 0);
	grove_run(300);
	CHECK(acting(&grove.places[1]) != first);
	grove_check_fair(CAPACITY);
	grove_end();
}

/* Without the store above, a region goes on to the lease's end, and then with what is reserved. */
static void above_is_lost(void)
{
	plant_two(100);
	grove_run(120);
	CHECK(place_sum(NULL) == CAPACITY - 100); /* one who is not there has his set aside */
	grove.places[0].down = true;
	grove.least = UINT64_MAX;
	grove_run(25);
	CHECK(grove.least == CAPACITY - 100);
	grove_run(100);
	CHECK(place_sum(&grove.places[0]) == 100);
	CHECK(place_sum(&grove.places[1]) == 100 && place_sum(&grove.places[2]) == 100);
	grove.places[0].down = false;
	grove_run(150);
	CHECK(place_sum(NULL) == CAPACITY - 100);
	grove_end();
}

static void carry_meanwhile(void)
{
	for (unsigned i = PER_PLACE; i < grove.place_count * PER_PLACE; i++)
		(void)weir_fleet_refresh(weir_region_fleet(
			grove.places[i / PER_PLACE].carriers[i % PER_PLACE].region));
}

/* Who carries comes between a member's reading and its making the limit: nothing counts twice. */
static void carriers_first(void)
{
	grove_begin(3, 100);
	(void)grove_add_place(grove_add_place(NULL));
	(void)grove_add_place(&grove.places[0]);
	grove_add_leaf(&grove.places[0], CAPACITY, 1);
	grove_run(60);
	CHECK(place_sum(NULL) == CAPACITY - 300);
	grove_add_leaf(&grove.places[1], CAPACITY, 1);
	grove_add_leaf(&grove.places[2], CAPACITY, 1);
	grove.leaves[1].way.meanwhile = grove.leaves[2].way.meanwhile = carry_meanwhile;
	grove_run(120);
	grove_check_fair(CAPACITY - 100);
	grove_end();
}

/* Without the store below, its members' leases end, and then the region's: others have it. */
static void below_is_lost(void)
{
	plant_two(0);
	grove_run(120);
	grove.places[1].down = true;
	grove_run(35);
	CHECK(place_sum(&grove.places[1]) == 0);
	grove_run(165);
	CHECK(place_sum(NULL) == 950);
	grove.places[1].down = false;
	grove_run(200);
	grove_check_fair(CAPACITY);
	grove_end();
}

static void cut(void)
{
	plant_three();
	grove_run(200);
	grove_set_capacity(300);
	grove_run(100);
	CHECK(place_sum(NULL) <= 300);
	grove_run(100);
	grove_check_fair(300);
	grove_set_capacity(900);
	grove_run(200);
	grove_check_fair(900);
	grove_end();
}

/* One member at the root, two in a region, which has half. */
static struct carrier *plant_one(void)
{
	struct place *root, *east;

	grove_begin(2, 0);
	root = grove_add_place(NULL);
	east = grove_add_place(root);
	grove_add_leaf(root, CAPACITY, 1);
	grove_add_leaf(east, CAPACITY / 2, 1);
	grove_add_leaf(east, 0, 1);
	grove_run(200);
	CHECK(place_sum(root) == CAPACITY / 2 && place_sum(east) == CAPACITY / 2);
	return acting(east);
}

static void want(unsigned leaf, uint64_t units)
{
	grove.leaves[leaf].wants = units;
	CHECK(weir_share_demand_set(grove.leaves[leaf].share, units) == 0);
	(void)weir_fleet_refresh(grove.leaves[leaf].fleet);
}

static void refresh(struct carrier *c)
{
	(void)weir_fleet_refresh(weir_region_fleet(c->region));
}

static void shrink_meanwhile(void)
{
	struct carrier *c = acting(&grove.places[1]);

	refresh(c);
	refresh(c);
	want(0, CAPACITY);
	CHECK(place_sum(&grove.places[0]) == CAPACITY);
}

/* A member is about to take what the region then gives back. */
static void late_growth(void)
{
	(void)plant_one();
	want(1, 0);
	grove.leaves[2].way.meanwhile = shrink_meanwhile;
	want(2, CAPACITY / 2);
	CHECK(place_sum(NULL) == CAPACITY);
	grove_run(200);
	CHECK(place_sum(NULL) == CAPACITY && place_sum(&grove.places[1]) == CAPACITY / 2);
	grove_end();
}

static void replace_meanwhile(void)
{
	want(1, CAPACITY / 2);
	grove_run(45);
	CHECK(place_sum(&grove.places[1]) == CAPACITY / 2);
}

/* A carrier is about to give back above what its successor then hands out. */
static void late_shrinking(void)
{
	struct carrier *first = plant_one();

	want(1, 0);
	refresh(first);
	first->above.meanwhile = replace_meanwhile;
	first->next = WEIR_FOREVER;
	refresh(first);
	grove_add_leaf(&grove.places[0], CAPACITY, 100);
	want(3, CAPACITY);
	CHECK(place_sum(NULL) == CAPACITY);
	first->next = grove.now;
	grove_run(200);
	grove_check_fair(CAPACITY);
	grove_end();
}

static void publish_late(void)
{
	for (unsigned i = 0; i < PER_PLACE; i++)
		grove.places[1].carriers[i].below.manner = LATE;
}

static void arrive_meanwhile(void)
{
	grove.parcels->due = grove.now;
	grove_deliver();
	CHECK(grove.parcels == NULL);
	want(0, CAPACITY);
	want(2, CAPACITY);
}

/* What is carried was written, nobody knows whether; it arrives when the region has less. */
static void late_carrying(void)
{
	struct carrier *first = plant_one();

	want(0, 0);
	want(1, 100);
	grove_run(100);
	CHECK(place_sum(&grove.places[1]) == 100);
	want(1, CAPACITY);
	first->below.meanwhile = publish_late;
	first->below.skips = 1;
	refresh(first);
	CHECK(grove.parcels != NULL && place_sum(&grove.places[1]) == 100);
	for (unsigned i = 0; i < PER_PLACE; i++)
		grove.places[1].carriers[i].below.manner = ANSWERS;
	want(1, 100);
	first->below.meanwhile = arrive_meanwhile;
	first->below.skips = 1;
	refresh(first);
	CHECK(place_sum(NULL) <= CAPACITY);
	grove_run(200);
	CHECK(place_sum(NULL) == CAPACITY);
	grove_end();
}

/* For so long a place has all that it has now. */
static void run_steady(struct place *p, unsigned seconds)
{
	const uint64_t had = place_sum(p);

	for (unsigned i = 0; i < seconds; i++) {
		grove_run(1);
		CHECK(place_sum(p) == had);
	}
}

static void want_of(struct place *p, uint64_t units)
{
	for (unsigned i = 0; i < grove.leaf_count; i++)
		if (grove.leaves[i].in == p) {
			grove.leaves[i].wants = units;
			CHECK(weir_share_demand_set(grove.leaves[i].share, units) == 0);
		}
}

/*
 * A region's store begins again with nothing. Whoever comes first then, the one who carried or
 * another, the region goes on with what it holds, and so do its members; nothing of it is given
 * back before the lease above is over.
 */
static void below_forgets(bool another)
{
	struct place *east;
	struct carrier *first;
	uint64_t had;

	plant_two(0);
	grove_run(120);
	east = &grove.places[1];
	first = acting(east);
	CHECK(first != NULL);
	had = place_sum(east);
	place_forget(east);
	if (another)
		first->next = grove.now + 25 * WEIR_S;
	grove_add_leaf(east, 300, 1);
	run_steady(east, 25);
	CHECK(weir_share_units(grove.leaves[7].share) == 0);
	want_of(east, 10);
	grove_run(25);
	CHECK(place_sum(east) == 50 && place_sum(NULL) <= CAPACITY - had + 50);
	grove_run(150);
	grove_check_fair(CAPACITY);
	CHECK((acting(east) == first) != another);
	grove_end();
}

/* The root begins again with nothing: who holds something goes on with it, and nobody gets more. */
static void above_forgets(void)
{
	plant_two(0);
	grove_run(120);
	place_forget(&grove.places[0]);
	grove_add_leaf(&grove.places[0], 400, 1);
	grove.least = UINT64_MAX;
	grove_run(55);
	CHECK(grove.least == CAPACITY && weir_share_units(grove.leaves[7].share) == 0);
	grove_run(150);
	grove_check_fair(CAPACITY);
	grove_end();
}

/* And who carries dies with it: what his region held is over with its lease. */
static void above_forgets_carrier_dies(void)
{
	plant_two(0);
	grove_run(120);
	carrier_kill(acting(&grove.places[1]));
	place_forget(&grove.places[0]);
	grove_run(300);
	grove_check_fair(CAPACITY);
	grove_end();
}

/* The store above refuses writes: what is carried goes on as it is. */
static void above_full(void)
{
	struct place *east;

	plant_two(0);
	grove_run(120);
	east = &grove.places[1];
	grove.places[0].full = true;
	grove.least = UINT64_MAX;
	grove_run(5);
	want_of(east, 10);
	grove_run(300);
	want_of(east, 300);
	grove_run(30);
	CHECK(place_sum(NULL) == CAPACITY);
	grove.places[0].full = false;
	grove_run(150);
	grove_check_fair(CAPACITY);
	grove_end();
}

/* The store below does: nothing more can be carried there, so others have it; and it comes back. */
static void below_full(void)
{
	struct place *east;

	plant_two(0);
	grove_run(120);
	east = &grove.places[1];
	want_of(&grove.places[2], CAPACITY);
	grove_run(150);
	east->full = true;
	grove_run(300);
	CHECK(place_sum(east) == 0 && place_sum(NULL) == CAPACITY);
	east->full = false;
	grove_run(300);
	grove_check_fair(CAPACITY);
	grove_end();
}

static void cut_off(void)
{
	grove.leaves[0].way.manner = AWAY;
}

/*
 * Somebody comes late to a root that has forgotten, and what he claims is not written down: he has
 * it no longer than he had it before.
 */
static void late_claim(uint64_t wants)
{
	struct leaf *l = &grove.leaves[0];

	(void)plant_one();
	want(1, 0);
	grove_run(100);
	want(0, CAPACITY);
	CHECK(place_sum(&grove.places[0]) == CAPACITY);
	place_forget(&grove.places[0]);
	want(1, CAPACITY);
	l->wants = wants;
	CHECK(weir_share_demand_set(l->share, wants) == 0);
	l->way.meanwhile = cut_off;
	l->way.skips = 1;
	l->next = grove.now + 58 * WEIR_S;
	grove_run(150);
	CHECK(l->way.manner == AWAY && place_sum(&grove.places[1]) == CAPACITY);
	l->way.manner = ANSWERS;
	grove_run(200);
	grove_check_fair(CAPACITY);
	grove_end();
}

static enum manner some_manner(void)
{
	static const enum manner manners[] = {AWAY, AWAY, LOSES, LATE};

	return manners[grove_draw(4)];
}

static void disturb_leaf(struct leaf *l)
{
	if (l->fleet == NULL) {
		leaf_enter(l);
		return;
	}
	switch (grove_draw(5)) {
	case 0:
		leaf_kill(l);
		break;
	case 1:
		l->next = grove.now + grove_draw(60 * WEIR_S);
		break;
	case 2:
		l->way.manner = l->way.manner == ANSWERS ? some_manner() : ANSWERS;
		break;
	default:
		l->wants = grove_draw(400);
		CHECK(weir_share_demand_set(l->share, l->wants) == 0);
	}
}

static void disturb_carrier(struct place *p, struct carrier *c)
{
	if (p->above == NULL)
		return;
	if (c->region == NULL) {
		carrier_open(p, c);
		return;
	}
	switch (grove_draw(4)) {
	case 0:
		carrier_kill(c);
		break;
	case 1:
		c->next = grove.now + grove_draw(100 * WEIR_S);
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
	struct place *p = &grove.places[grove_draw(grove.place_count)];

	switch (grove_draw(8)) {
	case 0:
		p->down = !p->down;
		break;
	case 1:
		if (grove_draw(2) == 0)
			place_forget(p);
		else if (!grove.places[0].down)
			grove_set_capacity(600 + grove_draw(CAPACITY));
		break;
	case 2:
	case 3:
	case 4:
		disturb_carrier(p, &p->carriers[grove_draw(PER_PLACE)]);
		break;
	default:
		disturb_leaf(&grove.leaves[grove_draw(grove.leaf_count)]);
	}
}

/* All answers, and all are there. */
static void heal(void)
{
	for (unsigned i = 0; i < grove.place_count; i++) {
		grove.places[i].down = false;
		for (unsigned j = 0; i > 0 && j < PER_PLACE; j++) {
			struct carrier *c = &grove.places[i].carriers[j];

			if (c->region == NULL)
				carrier_open(&grove.places[i], c);
			c->above.manner = c->below.manner = ANSWERS;
		}
	}
	for (unsigned i = 0; i < grove.leaf_count; i++) {
		if (grove.leaves[i].fleet == NULL)
			leaf_enter(&grove.leaves[i]);
		grove.leaves[i].way.manner = ANSWERS;
	}
}

/* The trees, with everything happening to them at once. */
static void wild(unsigned seed, bool three)
{
	if (three)
		plant_three();
	else
		plant_two(0);
	grove.chance += seed * UINT64_C(0x9e3779b97f4a7c15);
	grove_run(100);
	grove.stops = seed % 2 == 1;
	for (unsigned i = 0; i < 150; i++) {
		disturb();
		grove_run(1 + (unsigned)grove_draw(12));
	}
	grove.stops = false;
	heal();
	grove_run(100); /* whoever comes first to a root that has forgotten makes the limit */
	grove_set_capacity(1000);
	grove_run(400);
	grove_check_fair(1000);
	grove_end();
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
	/* With threads, and a store for itself: both are of this process alone. */
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
	carrier_dies();
	members_stop();
	carrier_stops();
	above_is_lost();
	carriers_first();
	below_is_lost();
	cut();
	below_forgets(false);
	below_forgets(true);
	above_full();
	below_full();
	above_forgets();
	above_forgets_carrier_dies();
	late_claim(CAPACITY);
	late_claim(CAPACITY / 2 + 100);
	late_growth();
	late_shrinking();
	late_carrying();
	for (unsigned seed = 0; seed < seeds; seed++) {
		wild(seed, false);
		wild(seed, true);
	}
	printf("%u wild runs\n", 2 * seeds);
	return 0;
}
