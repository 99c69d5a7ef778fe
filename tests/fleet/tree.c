/*
 * Regions, in simulated time: stores above stores, carriers between them, and members in those
 * below. What members may use all together is added up each second, and is never above what the
 * limit at the root is or was within the longest lease; and when all is well again, each has what
 * it is due.
 *
 * tree [SEEDS]: so many wild runs of each kind of tree.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "allot.h"

#define CAPACITY   1200
#define PLACES_MAX 16
#define LEAVES_MAX 64
#define PER_PLACE  2 /* carriers */

/* Above first: of the leases, the next lower is half as long. */
static const weir_dur leases[] = {60 * WEIR_S, 30 * WEIR_S, 15 * WEIR_S};

/* A cut is everywhere when who has not heard of it has lost its lease. */
#define CUT_SECONDS 100

enum manner { ANSWERS, AWAY, LOSES, LATE };

struct place;

/* A way to a store. */
struct way {
	struct weir_store store; /* first: what the fleet calls */
	struct place *to;
	enum manner manner;
	void (*meanwhile)(void); /* what happens before a commit; NULL: nothing */
	unsigned skips;          /* commits before that one */
};

/* Somebody who acts when it is time. */
struct leaf {
	struct way way;
	struct weir_fleet *fleet; /* NULL: it is not there */
	struct weir_share *share;
	weir_time next;
	struct place *in;
	uint64_t wants;
	unsigned weight;
};

struct carrier {
	struct way above, below;
	struct weir_region *region; /* NULL: it is not there */
	weir_time next;
};

/* A store, what it has above, and who carries that. */
struct place {
	struct weir_store *store;
	bool down;
	weir_time proven;    /* since when it knows what it knows; WEIR_FOREVER: always */
	struct place *above; /* NULL: the root */
	unsigned level;
	struct carrier carriers[PER_PLACE];
};

/* A commit that comes later. */
struct parcel {
	struct parcel *next;
	struct place *to;
	weir_time due;
	uint64_t session;
	struct weir_check checks[8];
	struct weir_write writes[8];
	size_t check_count, write_count;
	char keys[16][64];
	char values[8][4096];
};

static struct tree {
	struct weir_clock clock; /* first */
	weir_time now;
	struct place places[PLACES_MAX];
	unsigned place_count;
	struct leaf leaves[LEAVES_MAX];
	unsigned leaf_count;
	struct parcel *parcels;
	uint64_t chance;
	uint64_t reserved; /* of each region at the root */
	uint64_t capacity[CUT_SECONDS];
	uint64_t least; /* of what was used */
	unsigned depth; /* of those who are stopped in the middle of something */
	bool stops;     /* some are */
	bool made_anew; /* the limit at the root, by whoever came first */
} t;

static void run(unsigned seconds);

static uint64_t below(uint64_t most)
{
	return draw(&t.chance) % most;
}

static weir_time tell_time(const struct weir_clock *clock)
{
	return ((const struct tree *)clock)->now;
}

static struct way *way_of(struct weir_store *store)
{
	return (struct way *)store;
}

static bool is_away(const struct way *w)
{
	return w->manner == AWAY || w->to->down;
}

/* Whoever was about to ask something is stopped for a while, and the others are not. */
static void stop_here(void)
{
	if (!t.stops || t.depth == 2 || below(25) != 0)
		return;
	t.depth++;
	run((unsigned)below(80));
	t.depth--;
}

static int way_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	const struct way *w = way_of(self);

	return is_away(w) ? -EIO : weir_store_begin(w->to->store, ttl, session, granted);
}

static int way_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	const struct way *w = way_of(self);

	return is_away(w) ? -EIO : weir_store_keep(w->to->store, session, granted);
}

static int way_end(struct weir_store *self, uint64_t session)
{
	const struct way *w = way_of(self);

	return is_away(w) ? -EIO : weir_store_end(w->to->store, session);
}

static void send_later(struct place *to, uint64_t session, const struct weir_check *checks,
		       size_t check_count, const struct weir_write *writes, size_t write_count)
{
	struct parcel *p = calloc(1, sizeof(*p));

	CHECK(p != NULL && check_count <= 8 && write_count <= 8);
	*p = (struct parcel){
		.next = t.parcels,
		.to = to,
		.due = t.now + below(40 * WEIR_S),
		.session = session,
		.check_count = check_count,
		.write_count = write_count,
	};
	for (size_t i = 0; i < check_count; i++) {
		p->checks[i] = checks[i];
		p->checks[i].key = p->keys[i];
		(void)snprintf(p->keys[i], sizeof(p->keys[i]), "%s", checks[i].key);
	}
	for (size_t i = 0; i < write_count; i++) {
		CHECK(writes[i].size <= sizeof(p->values[i]));
		p->writes[i] = writes[i];
		p->writes[i].key = p->keys[8 + i];
		(void)snprintf(p->keys[8 + i], sizeof(p->keys[8 + i]), "%s", writes[i].key);
		if (writes[i].size > 0)
			p->writes[i].value = memcpy(p->values[i], writes[i].value, writes[i].size);
	}
	t.parcels = p;
}

/* Those that are due arrive; a store that is down keeps them waiting. */
static void deliver(void)
{
	struct parcel **at = &t.parcels;

	while (*at != NULL) {
		struct parcel *p = *at;

		if (p->due > t.now || p->to->down) {
			at = &p->next;
			continue;
		}
		(void)!weir_store_commit(p->to->store, p->session, p->checks, p->check_count,
					 p->writes, p->write_count, NULL);
		*at = p->next;
		free(p);
	}
}

static int way_commit(struct weir_store *self, uint64_t session, const struct weir_check *checks,
		      size_t check_count, const struct weir_write *writes, size_t write_count,
		      uint64_t *version)
{
	struct way *w = way_of(self);
	int r;

	stop_here();
	if (w->meanwhile != NULL && w->skips-- == 0) {
		void (*what)(void) = w->meanwhile;

		w->meanwhile = NULL;
		what();
	}
	if (is_away(w))
		return -EIO;
	if (w->manner == LATE) {
		send_later(w->to, session, checks, check_count, writes, write_count);
		return -EIO;
	}
	r = weir_store_commit(w->to->store, session, checks, check_count, writes, write_count,
			      version);
	return w->manner == LOSES ? -EIO : r;
}

static int way_read(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_row_fn *row, void *arg, struct weir_view *view)
{
	const struct way *w = way_of(self);

	int r;

	stop_here();
	if (is_away(w))
		return -EIO;
	r = weir_store_read(w->to->store, prefixes, count, row, arg, view);
	if (w->to->proven != WEIR_FOREVER)
		view->proven = t.now - w->to->proven;
	return r;
}

static void way_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(way_of(self)->to->store, caps);
}

static void way_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "It failed, as it was told to.");
}

static const struct weir_store_ops ways = {
	.size = sizeof(ways),
	.name = "test",
	.begin = way_begin,
	.keep = way_keep,
	.end = way_end,
	.commit = way_commit,
	.read = way_read,
	.caps = way_caps,
	.error = way_error,
};

static struct way way_to(struct place *to)
{
	return (struct way){.store = {&ways}, .to = to, .manner = ANSWERS};
}

static struct weir_fleet_config fleet_at(struct way *way)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.store = &way->store;
	config.lease = leases[way->to->level];
	config.refresh = config.lease / 6;
	config.manual = 1;
	config.clock = &t.clock;
	config.seed = draw(&t.chance);
	config.label = "member";
	return config;
}

/* Of its own a limit has nothing, but at the root, and what is reserved there. */
static struct weir_share_config share_at(const struct place *p)
{
	struct weir_share_config config;

	weir_share_config_init(&config);
	config.name = "limit";
	if (p->above == NULL) {
		config.capacity = CAPACITY;
		config.reserved = t.reserved;
		config.members = t.reserved > 0 ? 4 : 0;
	} else if (p->above->above == NULL) {
		config.capacity = t.reserved;
	}
	return config;
}

static void enter(struct leaf *l)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share = share_at(l->in);
	char why[256];

	l->way = way_to(l->in);
	fleet = fleet_at(&l->way);
	share.weight = l->weight;
	CHECK(weir_fleet_open(&fleet, &l->fleet, why, sizeof(why)) == 0);
	CHECK(weir_share_join(l->fleet, &share, &l->share, why, sizeof(why)) == 0);
	CHECK(weir_share_want(l->share, l->wants) == 0);
	l->next = t.now;
}

static void kill_leaf(struct leaf *l)
{
	l->way.manner = AWAY;
	weir_fleet_close(l->fleet);
	l->fleet = NULL;
}

static void open_carrier(struct place *p, struct carrier *c)
{
	struct weir_fleet_config above, lower;
	struct weir_share_config limit = share_at(p->above);
	struct weir_region_config config;
	char why[256];

	c->above = way_to(p->above);
	c->below = way_to(p);
	above = fleet_at(&c->above);
	lower = fleet_at(&c->below);
	lower.lease = 0;
	weir_region_config_init(&config);
	config.above = &above;
	config.below = &lower;
	config.limit = &limit;
	CHECK(weir_region_open(&config, &c->region, why, sizeof(why)) == 0);
	c->next = t.now;
}

static void kill_carrier(struct carrier *c)
{
	c->above.manner = c->below.manner = AWAY;
	weir_region_close(c->region);
	c->region = NULL;
}

static bool see_nothing(void *arg, const struct weir_row *row)
{
	(void)arg;
	(void)row;
	return false;
}

static void open_store(struct place *p)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &t.clock;
	config.shm_bytes = 256 << 10;
	CHECK(weir_store_open(&config, &p->store, NULL, 0) == 0);
}

static uint64_t version_of(const struct place *p)
{
	const char *prefix = "limit/";
	struct weir_view view;

	CHECK(weir_store_read(p->store, &prefix, 1, see_nothing, NULL, &view) == 0);
	return view.version;
}

/* It begins again with nothing; as in Redis, its versions go on rising. */
static void forget(struct place *p)
{
	const struct weir_write write = {"scratch/row", WEIR_WRITE_PUT, "x", 1};
	const uint64_t version = version_of(p);

	weir_store_close(p->store);
	open_store(p);
	while (version_of(p) <= version)
		CHECK(weir_store_commit(p->store, 0, NULL, 0, &write, 1, NULL) == 0);
	p->proven = t.now;
	t.made_anew |= p->above == NULL;
}

static struct place *add_place(struct place *above)
{
	struct place *p = &t.places[t.place_count++];

	CHECK(t.place_count <= PLACES_MAX);
	*p = (struct place){
		.proven = WEIR_FOREVER,
		.above = above,
		.level = above != NULL ? above->level + 1 : 0,
	};
	open_store(p);
	for (unsigned i = 0; above != NULL && i < PER_PLACE; i++)
		open_carrier(p, &p->carriers[i]);
	return p;
}

static void add_leaf(struct place *in, uint64_t wants, unsigned weight)
{
	struct leaf *l = &t.leaves[t.leaf_count++];

	CHECK(t.leaf_count <= LEAVES_MAX);
	*l = (struct leaf){.in = in, .wants = wants, .weight = weight};
	enter(l);
}

static void begin(uint64_t seed, uint64_t reserved)
{
	t = (struct tree){
		.clock = {tell_time},
		.now = 1000 * WEIR_S,
		.chance = 88172645463325252u + seed,
		.reserved = reserved,
		.least = UINT64_MAX,
	};
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		t.capacity[i] = CAPACITY;
	for (unsigned i = 0; i < 10; i++)
		(void)draw(&t.chance);
}

static void end(void)
{
	for (unsigned i = 0; i < t.leaf_count; i++)
		if (t.leaves[i].fleet != NULL)
			weir_fleet_close(t.leaves[i].fleet);
	for (unsigned i = 0; i < t.place_count; i++)
		for (unsigned j = 0; j < PER_PLACE; j++)
			weir_region_close(t.places[i].carriers[j].region);
	for (unsigned i = 0; i < t.place_count; i++)
		weir_store_close(t.places[i].store);
	while (t.parcels != NULL) {
		struct parcel *p = t.parcels;

		t.parcels = p->next;
		free(p);
	}
}

/* What may be used, of all leaves of a place, or of all. */
static uint64_t sum_in(const struct place *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < t.leaf_count; i++)
		if (t.leaves[i].fleet != NULL && (p == NULL || t.leaves[i].in == p))
			sum += weir_share_units(t.leaves[i].share);
	return sum;
}

/* Of a limit that was made anew: as the store has it, and as it was where there is none yet. */
static void note_capacity(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	if (t.made_anew && weir_fleet_look(t.places[0].store, "limit", &limit, NULL, NULL) == 0)
		t.capacity[0] = limit.capacity;
}

static void sample(void)
{
	const uint64_t sum = sum_in(NULL);
	uint64_t most = 0;

	memmove(t.capacity + 1, t.capacity, sizeof(t.capacity) - sizeof(t.capacity[0]));
	note_capacity();
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		most = t.capacity[i] > most ? t.capacity[i] : most;
	if (sum > most)
		fprintf(stderr, "%llu of %llu\n", (unsigned long long)sum,
			(unsigned long long)most);
	CHECK(sum <= most);
	t.least = sum < t.least ? sum : t.least;
}

/* Let all act whose time it is, but those in the middle of it; when the next one does. */
static weir_time act(void)
{
	weir_time first = WEIR_FOREVER;

	for (unsigned i = 0; i < t.leaf_count; i++) {
		struct leaf *l = &t.leaves[i];

		if (l->fleet != NULL && l->next <= t.now) {
			l->next = WEIR_FOREVER;
			l->next = weir_fleet_step(l->fleet);
		}
		if (l->fleet != NULL && l->next < first)
			first = l->next;
	}
	for (unsigned i = 0; i < t.place_count * PER_PLACE; i++) {
		struct carrier *c = &t.places[i / PER_PLACE].carriers[i % PER_PLACE];

		if (c->region != NULL && c->next <= t.now) {
			c->next = WEIR_FOREVER;
			c->next = weir_fleet_step(weir_region_fleet(c->region));
		}
		if (c->region != NULL && c->next < first)
			first = c->next;
	}
	return first;
}

static void run(unsigned seconds)
{
	const weir_time last = t.now + seconds * WEIR_S;
	weir_time second = t.now + WEIR_S;

	while (t.now < last) {
		weir_time next = act();

		deliver();
		next = next < second ? next : second;
		t.now = next > t.now ? next : t.now;
		if (t.now < second)
			continue;
		sample();
		second = t.now + WEIR_S;
	}
}

static void set_capacity(uint64_t capacity)
{
	const int r = weir_fleet_change(t.places[0].store, "limit", capacity);

	CHECK(r == 0 || (r == -ENOENT && t.made_anew));
	if (r == 0)
		t.capacity[0] = capacity;
}

/* What all of a place weigh and want. */
static struct claim claim_of(const struct place *p)
{
	struct claim all = {.id = (uint64_t)(p - t.places)};

	for (unsigned i = 0; i < t.leaf_count; i++) {
		const struct place *in = t.leaves[i].in;

		while (in != NULL && in != p)
			in = in->above;
		if (in == NULL || t.leaves[i].fleet == NULL)
			continue;
		all.weight += t.leaves[i].weight;
		all.wants += t.leaves[i].wants;
	}
	return all;
}

/* What a place has, and by how much that may be off. */
struct part {
	uint64_t capacity, slack;
};

/* Whose the last unit of a level is depends on numbers that are drawn: so many may be off. */
static void check_leaf(unsigned leaf, uint64_t target, uint64_t slack)
{
	const uint64_t units = weir_share_units(t.leaves[leaf].share);

	if (units + slack < target || units > target + slack)
		fprintf(stderr, "leaf %u has %llu and not %llu\n", leaf, (unsigned long long)units,
			(unsigned long long)target);
	CHECK(units + slack >= target && units <= target + slack);
}

static void check_place(const struct place *p, struct part *parts)
{
	const struct part mine = parts[p - t.places];
	struct claim claims[LEAVES_MAX + PLACES_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < t.leaf_count; i++)
		if (t.leaves[i].fleet != NULL && t.leaves[i].in == p)
			claims[count++] = (struct claim){1000 + i, t.leaves[i].wants,
							 t.leaves[i].weight, 0, 0};
	for (unsigned i = 0; i < t.place_count; i++)
		if (t.places[i].above == p && claim_of(&t.places[i]).weight > 0)
			claims[count++] = claim_of(&t.places[i]);
	allot(WEIR_ALLOT_FAIR, mine.capacity, claims, count);
	for (size_t i = 0; i < count; i++) {
		if (claims[i].id < 1000)
			parts[claims[i].id] = (struct part){claims[i].target, mine.slack + 1};
		else
			check_leaf((unsigned)claims[i].id - 1000, claims[i].target, mine.slack + 1);
	}
}

/* Each has what it is due. Who is above comes first in the list. */
static void check_fair(uint64_t capacity)
{
	struct part parts[PLACES_MAX] = {{capacity, 0}};

	for (unsigned i = 0; i < t.place_count; i++)
		check_place(&t.places[i], parts);
}

/* Two regions, of unequal weights and wants, and one member at the root itself. */
static void plant_two(uint64_t reserved)
{
	struct place *root, *east, *west;

	begin(0, reserved);
	root = add_place(NULL);
	east = add_place(root);
	west = add_place(root);
	add_leaf(root, 400, 1);
	for (unsigned i = 0; i < 4; i++)
		add_leaf(east, 300, 1 + i % 2);
	add_leaf(west, 500, 2);
	add_leaf(west, 50, 1);
}

static void plant_three(void)
{
	struct place *root, *north, *south;

	begin(1, 0);
	root = add_place(NULL);
	north = add_place(root);
	south = add_place(root);
	for (unsigned i = 0; i < 4; i++) {
		struct place *p = add_place(i < 2 ? north : south);

		for (unsigned j = 0; j < 3; j++)
			add_leaf(p, 100 + 50 * j, 1 + (i + j) % 2);
	}
}

static void fair(void)
{
	plant_two(0);
	run(120);
	check_fair(CAPACITY);
	CHECK(sum_in(NULL) == CAPACITY);
	/* What one region leaves, the other has. */
	for (unsigned i = 1; i < 5; i++) {
		t.leaves[i].wants = 10;
		CHECK(weir_share_want(t.leaves[i].share, 10) == 0);
	}
	run(120);
	check_fair(CAPACITY);
	CHECK(sum_in(NULL) == 990);
	end();
	plant_three();
	run(200);
	check_fair(CAPACITY);
	CHECK(sum_in(NULL) == CAPACITY);
	end();
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
	run(120);
	east = &t.places[1];
	first = acting(east);
	CHECK(first != NULL);
	t.least = UINT64_MAX;
	kill_carrier(first);
	run(300);
	CHECK(t.least == CAPACITY);
	CHECK(acting(east) != NULL && acting(east) != first);
	/* With nobody left, it ends with the lease, and the others have it. */
	kill_carrier(acting(east));
	run(200);
	CHECK(sum_in(east) == 0 && sum_in(NULL) == 950);
	open_carrier(east, &east->carriers[0]);
	run(120);
	check_fair(CAPACITY);
	end();
}

/* Nobody carries, and members are stopped: what they have is over with the region's lease. */
static void members_stop(void)
{
	struct place *east;

	plant_two(0);
	run(120);
	east = &t.places[1];
	for (unsigned i = 0; i < PER_PLACE; i++)
		kill_carrier(&east->carriers[i]);
	run(40);
	for (unsigned i = 0; i < t.leaf_count; i++)
		if (t.leaves[i].in == east)
			t.leaves[i].next = t.now + 100 * WEIR_S;
	run(50);
	CHECK(sum_in(east) == 0 && sum_in(NULL) == 950);
	end();
}

/* Who was stopped while it carried finds that it does not any more. */
static void carrier_stops(void)
{
	struct carrier *first;

	plant_two(0);
	run(120);
	first = acting(&t.places[1]);
	CHECK(first != NULL);
	first->next = t.now + 200 * WEIR_S;
	run(150);
	t.leaves[5].wants = 700;
	CHECK(weir_share_want(t.leaves[5].share, 700) == 0);
	run(300);
	CHECK(acting(&t.places[1]) != first);
	check_fair(CAPACITY);
	end();
}

/* Without the store above, a region goes on to the lease's end, and then with what is reserved. */
static void above_is_lost(void)
{
	plant_two(100);
	run(120);
	CHECK(sum_in(NULL) == CAPACITY - 100); /* one who is not there has his set aside */
	t.places[0].down = true;
	t.least = UINT64_MAX;
	run(25);
	CHECK(t.least == CAPACITY - 100);
	run(100);
	CHECK(sum_in(&t.places[0]) == 100);
	CHECK(sum_in(&t.places[1]) == 100 && sum_in(&t.places[2]) == 100);
	t.places[0].down = false;
	run(150);
	CHECK(sum_in(NULL) == CAPACITY - 100);
	end();
}

static void carry_meanwhile(void)
{
	for (unsigned i = PER_PLACE; i < t.place_count * PER_PLACE; i++)
		(void)weir_fleet_refresh(
			weir_region_fleet(t.places[i / PER_PLACE].carriers[i % PER_PLACE].region));
}

/* Who carries comes between a member's reading and its making the limit: nothing counts twice. */
static void carriers_first(void)
{
	begin(3, 100);
	(void)add_place(add_place(NULL));
	(void)add_place(&t.places[0]);
	add_leaf(&t.places[0], CAPACITY, 1);
	run(60);
	CHECK(sum_in(NULL) == CAPACITY - 300);
	add_leaf(&t.places[1], CAPACITY, 1);
	add_leaf(&t.places[2], CAPACITY, 1);
	t.leaves[1].way.meanwhile = t.leaves[2].way.meanwhile = carry_meanwhile;
	run(120);
	check_fair(CAPACITY - 100);
	end();
}

/* Without the store below, its members' leases end, and then the region's: others have it. */
static void below_is_lost(void)
{
	plant_two(0);
	run(120);
	t.places[1].down = true;
	run(35);
	CHECK(sum_in(&t.places[1]) == 0);
	run(165);
	CHECK(sum_in(NULL) == 950);
	t.places[1].down = false;
	run(200);
	check_fair(CAPACITY);
	end();
}

static void cut(void)
{
	plant_three();
	run(200);
	set_capacity(300);
	run(100);
	CHECK(sum_in(NULL) <= 300);
	run(100);
	check_fair(300);
	set_capacity(900);
	run(200);
	check_fair(900);
	end();
}

/* One member at the root, two in a region, which has half. */
static struct carrier *plant_one(void)
{
	struct place *root, *east;

	begin(2, 0);
	root = add_place(NULL);
	east = add_place(root);
	add_leaf(root, CAPACITY, 1);
	add_leaf(east, CAPACITY / 2, 1);
	add_leaf(east, 0, 1);
	run(200);
	CHECK(sum_in(root) == CAPACITY / 2 && sum_in(east) == CAPACITY / 2);
	return acting(east);
}

static void want(unsigned leaf, uint64_t units)
{
	t.leaves[leaf].wants = units;
	CHECK(weir_share_want(t.leaves[leaf].share, units) == 0);
	(void)weir_fleet_refresh(t.leaves[leaf].fleet);
}

static void refresh(struct carrier *c)
{
	(void)weir_fleet_refresh(weir_region_fleet(c->region));
}

static void shrink_meanwhile(void)
{
	struct carrier *c = acting(&t.places[1]);

	refresh(c);
	refresh(c);
	want(0, CAPACITY);
	CHECK(sum_in(&t.places[0]) == CAPACITY);
}

/* A member is about to take what the region then gives back. */
static void late_growth(void)
{
	(void)plant_one();
	want(1, 0);
	t.leaves[2].way.meanwhile = shrink_meanwhile;
	want(2, CAPACITY / 2);
	CHECK(sum_in(NULL) == CAPACITY);
	run(200);
	CHECK(sum_in(NULL) == CAPACITY && sum_in(&t.places[1]) == CAPACITY / 2);
	end();
}

static void replace_meanwhile(void)
{
	want(1, CAPACITY / 2);
	run(45);
	CHECK(sum_in(&t.places[1]) == CAPACITY / 2);
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
	add_leaf(&t.places[0], CAPACITY, 100);
	want(3, CAPACITY);
	CHECK(sum_in(NULL) == CAPACITY);
	first->next = t.now;
	run(200);
	check_fair(CAPACITY);
	end();
}

static void publish_late(void)
{
	for (unsigned i = 0; i < PER_PLACE; i++)
		t.places[1].carriers[i].below.manner = LATE;
}

static void arrive_meanwhile(void)
{
	t.parcels->due = t.now;
	deliver();
	CHECK(t.parcels == NULL);
	want(0, CAPACITY);
	want(2, CAPACITY);
}

/* What is carried was written, nobody knows whether; it arrives when the region has less. */
static void late_carrying(void)
{
	struct carrier *first = plant_one();

	want(0, 0);
	want(1, 100);
	run(100);
	CHECK(sum_in(&t.places[1]) == 100);
	want(1, CAPACITY);
	first->below.meanwhile = publish_late;
	first->below.skips = 1;
	refresh(first);
	CHECK(t.parcels != NULL && sum_in(&t.places[1]) == 100);
	for (unsigned i = 0; i < PER_PLACE; i++)
		t.places[1].carriers[i].below.manner = ANSWERS;
	want(1, 100);
	first->below.meanwhile = arrive_meanwhile;
	first->below.skips = 1;
	refresh(first);
	CHECK(sum_in(NULL) <= CAPACITY);
	run(200);
	CHECK(sum_in(NULL) == CAPACITY);
	end();
}

/* For so long a place has all that it has now. */
static void run_steady(struct place *p, unsigned seconds)
{
	const uint64_t had = sum_in(p);

	for (unsigned i = 0; i < seconds; i++) {
		run(1);
		CHECK(sum_in(p) == had);
	}
}

static void want_of(struct place *p, uint64_t units)
{
	for (unsigned i = 0; i < t.leaf_count; i++)
		if (t.leaves[i].in == p) {
			t.leaves[i].wants = units;
			CHECK(weir_share_want(t.leaves[i].share, units) == 0);
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
	run(120);
	east = &t.places[1];
	first = acting(east);
	CHECK(first != NULL);
	had = sum_in(east);
	forget(east);
	if (another)
		first->next = t.now + 25 * WEIR_S;
	add_leaf(east, 300, 1);
	run_steady(east, 25);
	CHECK(weir_share_units(t.leaves[7].share) == 0);
	want_of(east, 10);
	run(25);
	CHECK(sum_in(east) == 50 && sum_in(NULL) <= CAPACITY - had + 50);
	run(150);
	check_fair(CAPACITY);
	CHECK((acting(east) == first) != another);
	end();
}

/* The root begins again with nothing: who holds something goes on with it, and nobody gets more. */
static void above_forgets(void)
{
	plant_two(0);
	run(120);
	forget(&t.places[0]);
	add_leaf(&t.places[0], 400, 1);
	t.least = UINT64_MAX;
	run(55);
	CHECK(t.least == CAPACITY && weir_share_units(t.leaves[7].share) == 0);
	run(150);
	check_fair(CAPACITY);
	end();
}

/* And who carries dies with it: what his region held is over with its lease. */
static void above_forgets_carrier_dies(void)
{
	plant_two(0);
	run(120);
	kill_carrier(acting(&t.places[1]));
	forget(&t.places[0]);
	run(300);
	check_fair(CAPACITY);
	end();
}

static void cut_off(void)
{
	t.leaves[0].way.manner = AWAY;
}

/*
 * Somebody comes late to a root that has forgotten, and what he claims is not written down: he has
 * it no longer than he had it before.
 */
static void late_claim(uint64_t wants)
{
	struct leaf *l = &t.leaves[0];

	(void)plant_one();
	want(1, 0);
	run(100);
	want(0, CAPACITY);
	CHECK(sum_in(&t.places[0]) == CAPACITY);
	forget(&t.places[0]);
	want(1, CAPACITY);
	l->wants = wants;
	CHECK(weir_share_want(l->share, wants) == 0);
	l->way.meanwhile = cut_off;
	l->way.skips = 1;
	l->next = t.now + 58 * WEIR_S;
	run(150);
	CHECK(l->way.manner == AWAY && sum_in(&t.places[1]) == CAPACITY);
	l->way.manner = ANSWERS;
	run(200);
	check_fair(CAPACITY);
	end();
}

static enum manner some_manner(void)
{
	static const enum manner manners[] = {AWAY, AWAY, LOSES, LATE};

	return manners[below(4)];
}

static void disturb_leaf(struct leaf *l)
{
	if (l->fleet == NULL) {
		enter(l);
		return;
	}
	switch (below(5)) {
	case 0:
		kill_leaf(l);
		break;
	case 1:
		l->next = t.now + below(60 * WEIR_S);
		break;
	case 2:
		l->way.manner = l->way.manner == ANSWERS ? some_manner() : ANSWERS;
		break;
	default:
		l->wants = below(400);
		CHECK(weir_share_want(l->share, l->wants) == 0);
	}
}

static void disturb_carrier(struct place *p, struct carrier *c)
{
	if (p->above == NULL)
		return;
	if (c->region == NULL) {
		open_carrier(p, c);
		return;
	}
	switch (below(4)) {
	case 0:
		kill_carrier(c);
		break;
	case 1:
		c->next = t.now + below(100 * WEIR_S);
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
	struct place *p = &t.places[below(t.place_count)];

	switch (below(8)) {
	case 0:
		p->down = !p->down;
		break;
	case 1:
		if (below(2) == 0)
			forget(p);
		else if (!t.places[0].down)
			set_capacity(600 + below(CAPACITY));
		break;
	case 2:
	case 3:
	case 4:
		disturb_carrier(p, &p->carriers[below(PER_PLACE)]);
		break;
	default:
		disturb_leaf(&t.leaves[below(t.leaf_count)]);
	}
}

/* All answers, and all are there. */
static void heal(void)
{
	for (unsigned i = 0; i < t.place_count; i++) {
		t.places[i].down = false;
		for (unsigned j = 0; i > 0 && j < PER_PLACE; j++) {
			struct carrier *c = &t.places[i].carriers[j];

			if (c->region == NULL)
				open_carrier(&t.places[i], c);
			c->above.manner = c->below.manner = ANSWERS;
		}
	}
	for (unsigned i = 0; i < t.leaf_count; i++) {
		if (t.leaves[i].fleet == NULL)
			enter(&t.leaves[i]);
		t.leaves[i].way.manner = ANSWERS;
	}
}

/* The trees, with everything happening to them at once. */
static void wild(unsigned seed, bool three)
{
	if (three)
		plant_three();
	else
		plant_two(0);
	t.chance += seed * UINT64_C(0x9e3779b97f4a7c15);
	run(100);
	t.stops = seed % 2 == 1;
	for (unsigned i = 0; i < 150; i++) {
		disturb();
		run(1 + (unsigned)below(12));
	}
	t.stops = false;
	heal();
	run(100); /* whoever comes first to a root that has forgotten makes the limit */
	set_capacity(1000);
	run(400);
	check_fair(1000);
	end();
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
