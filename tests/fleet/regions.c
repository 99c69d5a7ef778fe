#include "regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "fleet/protocol/allot.h"

/* Above first: of the leases, the next lower is half as long. */
static const weir_dur leases[] = {60 * WEIR_S, 30 * WEIR_S, 15 * WEIR_S};

struct grove grove;

uint64_t grove_draw(uint64_t most)
{
	return draw(&grove.chance) % most;
}

static weir_time tell_time(const struct weir_clock *clock)
{
	return ((const struct grove *)clock)->now;
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
	if (!grove.stops || grove.depth == 2 || grove_draw(25) != 0)
		return;
	grove.depth++;
	grove_run((unsigned)grove_draw(80));
	grove.depth--;
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

static void send_later(struct place *to, uint64_t session, const struct weir_store_check *checks,
		       size_t check_count, const struct weir_store_write *writes,
		       size_t write_count)
{
	struct parcel *p = calloc(1, sizeof(*p));

	CHECK(p != NULL && check_count <= 8 && write_count <= 8);
	*p = (struct parcel){
		.next = grove.parcels,
		.to = to,
		.due = grove.now + grove_draw(40 * WEIR_S),
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
	grove.parcels = p;
}

/* Those that are due arrive; a store that is down keeps them waiting. */
void grove_deliver(void)
{
	struct parcel **at = &grove.parcels;

	while (*at != NULL) {
		struct parcel *p = *at;

		if (p->due > grove.now || p->to->down) {
			at = &p->next;
			continue;
		}
		(void)!weir_store_commit(p->to->store, p->session, p->checks, p->check_count,
					 p->writes, p->write_count, NULL);
		*at = p->next;
		free(p);
	}
}

static int way_commit(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version)
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
	for (size_t i = 0; i < write_count && w->to->full; i++)
		if (writes[i].kind != WEIR_STORE_WRITE_ERASE)
			return -ENOSPC;
	if (w->manner == LATE) {
		send_later(w->to, session, checks, check_count, writes, write_count);
		return -EIO;
	}
	r = weir_store_commit(w->to->store, session, checks, check_count, writes, write_count,
			      version);
	return w->manner == LOSES ? -EIO : r;
}

static int way_read(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	const struct way *w = way_of(self);

	int r;

	stop_here();
	if (is_away(w))
		return -EIO;
	r = weir_store_read(w->to->store, prefixes, count, row, arg, view);
	if (w->to->proven != WEIR_FOREVER)
		view->proven = grove.now - w->to->proven;
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
	config.learning = config.lease;
	config.manual = 1;
	config.clock = &grove.clock;
	config.seed = draw(&grove.chance);
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
		config.reserved = grove.reserved;
		config.members = grove.reserved > 0 ? 4 : 0;
	} else if (p->above->above == NULL) {
		config.capacity = grove.reserved;
	}
	return config;
}

void leaf_enter(struct leaf *l)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share = share_at(l->in);
	char why[256];

	l->way = way_to(l->in);
	fleet = fleet_at(&l->way);
	share.weight = l->weight;
	CHECK(weir_fleet_open(&fleet, &l->fleet, why, sizeof(why)) == 0);
	CHECK(weir_share_join(l->fleet, &share, &l->share, why, sizeof(why)) == 0);
	CHECK(weir_share_demand_set(l->share, l->wants) == 0);
	l->next = grove.now;
}

void leaf_kill(struct leaf *l)
{
	l->way.manner = AWAY;
	weir_fleet_close(l->fleet);
	l->fleet = NULL;
}

void carrier_open(struct place *p, struct carrier *c)
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
	c->next = grove.now;
}

void carrier_kill(struct carrier *c)
{
	c->above.manner = c->below.manner = AWAY;
	weir_region_close(c->region);
	c->region = NULL;
}

static bool see_nothing(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	(void)row;
	return false;
}

static void open_store(struct place *p)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &grove.clock;
	config.shm_bytes = 256 << 10;
	CHECK(weir_store_open(&config, &p->store, NULL, 0) == 0);
}

static uint64_t version_of(const struct place *p)
{
	const char *prefix = "limit/";
	struct weir_store_view view;

	CHECK(weir_store_read(p->store, &prefix, 1, see_nothing, NULL, &view) == 0);
	return view.version;
}

/* It begins again with nothing; as in Redis, its versions go on rising. */
void place_forget(struct place *p)
{
	const struct weir_store_write write = {"scratch/row", WEIR_STORE_WRITE_PUT, "x", 1};
	const uint64_t version = version_of(p);

	weir_store_close(p->store);
	open_store(p);
	while (version_of(p) <= version)
		CHECK(weir_store_commit(p->store, 0, NULL, 0, &write, 1, NULL) == 0);
	p->proven = grove.now;
	grove.made_anew |= p->above == NULL;
}

struct place *grove_add_place(struct place *above)
{
	struct place *p = &grove.places[grove.place_count++];

	CHECK(grove.place_count <= PLACES_MAX);
	*p = (struct place){
		.proven = WEIR_FOREVER,
		.above = above,
		.level = above != NULL ? above->level + 1 : 0,
	};
	open_store(p);
	for (unsigned i = 0; above != NULL && i < PER_PLACE; i++)
		carrier_open(p, &p->carriers[i]);
	return p;
}

void grove_add_leaf(struct place *in, uint64_t wants, unsigned weight)
{
	struct leaf *l = &grove.leaves[grove.leaf_count++];

	CHECK(grove.leaf_count <= LEAVES_MAX);
	*l = (struct leaf){.in = in, .wants = wants, .weight = weight};
	leaf_enter(l);
}

void grove_begin(uint64_t seed, uint64_t reserved)
{
	grove = (struct grove){
		.clock = {tell_time},
		.now = 1000 * WEIR_S,
		.chance = 88172645463325252u + seed,
		.reserved = reserved,
		.least = UINT64_MAX,
	};
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		grove.capacity[i] = CAPACITY;
	for (unsigned i = 0; i < 10; i++)
		(void)draw(&grove.chance);
}

void grove_end(void)
{
	for (unsigned i = 0; i < grove.leaf_count; i++)
		if (grove.leaves[i].fleet != NULL)
			weir_fleet_close(grove.leaves[i].fleet);
	for (unsigned i = 0; i < grove.place_count; i++)
		for (unsigned j = 0; j < PER_PLACE; j++)
			weir_region_close(grove.places[i].carriers[j].region);
	for (unsigned i = 0; i < grove.place_count; i++)
		weir_store_close(grove.places[i].store);
	while (grove.parcels != NULL) {
		struct parcel *p = grove.parcels;

		grove.parcels = p->next;
		free(p);
	}
}

/* What may be used, of all leaves of a place, or of all. */
uint64_t place_sum(const struct place *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < grove.leaf_count; i++)
		if (grove.leaves[i].fleet != NULL && (p == NULL || grove.leaves[i].in == p))
			sum += weir_share_units(grove.leaves[i].share);
	return sum;
}

/* Of a limit that was made anew: as the store has it, and as it was where there is none yet. */
static void note_capacity(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	if (grove.made_anew &&
	    weir_fleet_inspect(grove.places[0].store, "limit", &limit, NULL, NULL) == 0)
		grove.capacity[0] = limit.capacity;
}

static void sample(void)
{
	const uint64_t sum = place_sum(NULL);
	uint64_t most = 0;

	memmove(grove.capacity + 1, grove.capacity,
		sizeof(grove.capacity) - sizeof(grove.capacity[0]));
	note_capacity();
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		most = grove.capacity[i] > most ? grove.capacity[i] : most;
	if (sum > most)
		fprintf(stderr, "%llu of %llu\n", (unsigned long long)sum,
			(unsigned long long)most);
	CHECK(sum <= most);
	grove.least = sum < grove.least ? sum : grove.least;
}

/* Let all act whose time it is, but those in the middle of it; when the next one does. */
static weir_time act(void)
{
	weir_time first = WEIR_FOREVER;

	for (unsigned i = 0; i < grove.leaf_count; i++) {
		struct leaf *l = &grove.leaves[i];

		if (l->fleet != NULL && l->next <= grove.now) {
			l->next = WEIR_FOREVER;
			l->next = weir_fleet_step(l->fleet);
		}
		if (l->fleet != NULL && l->next < first)
			first = l->next;
	}
	for (unsigned i = 0; i < grove.place_count * PER_PLACE; i++) {
		struct carrier *c = &grove.places[i / PER_PLACE].carriers[i % PER_PLACE];

		if (c->region != NULL && c->next <= grove.now) {
			c->next = WEIR_FOREVER;
			c->next = weir_fleet_step(weir_region_fleet(c->region));
		}
		if (c->region != NULL && c->next < first)
			first = c->next;
	}
	return first;
}

void grove_run(unsigned seconds)
{
	const weir_time last = grove.now + seconds * WEIR_S;
	weir_time second = grove.now + WEIR_S;

	while (grove.now < last) {
		weir_time next = act();

		grove_deliver();
		next = next < second ? next : second;
		grove.now = next > grove.now ? next : grove.now;
		if (grove.now < second)
			continue;
		sample();
		second = grove.now + WEIR_S;
	}
}

void grove_set_capacity(uint64_t capacity)
{
	const int r = weir_fleet_change(grove.places[0].store, "limit", capacity);

	CHECK(r == 0 || (r == -ENOENT && grove.made_anew));
	if (r == 0)
		grove.capacity[0] = capacity;
}

/* What all of a place weigh and want. */
static struct claim claim_of(const struct place *p)
{
	struct claim all = {.id = (uint64_t)(p - grove.places)};

	for (unsigned i = 0; i < grove.leaf_count; i++) {
		const struct place *in = grove.leaves[i].in;

		while (in != NULL && in != p)
			in = in->above;
		if (in == NULL || grove.leaves[i].fleet == NULL)
			continue;
		all.weight += grove.leaves[i].weight;
		all.wants += grove.leaves[i].wants;
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
	const uint64_t units = weir_share_units(grove.leaves[leaf].share);

	if (units + slack < target || units > target + slack)
		fprintf(stderr, "leaf %u has %llu and not %llu\n", leaf, (unsigned long long)units,
			(unsigned long long)target);
	CHECK(units + slack >= target && units <= target + slack);
}

static void check_place(const struct place *p, struct part *parts)
{
	const struct part mine = parts[p - grove.places];
	struct claim claims[LEAVES_MAX + PLACES_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < grove.leaf_count; i++)
		if (grove.leaves[i].fleet != NULL && grove.leaves[i].in == p)
			claims[count++] = (struct claim){1000 + i, grove.leaves[i].wants,
							 grove.leaves[i].weight, 0, 0};
	for (unsigned i = 0; i < grove.place_count; i++)
		if (grove.places[i].above == p && claim_of(&grove.places[i]).weight > 0)
			claims[count++] = claim_of(&grove.places[i]);
	allot(WEIR_ALLOT_FAIR, mine.capacity, claims, count);
	for (size_t i = 0; i < count; i++) {
		if (claims[i].id < 1000)
			parts[claims[i].id] = (struct part){claims[i].target, mine.slack + 1};
		else
			check_leaf((unsigned)claims[i].id - 1000, claims[i].target, mine.slack + 1);
	}
}

/* Each has what it is due. Who is above comes first in the list. */
void grove_check_fair(uint64_t capacity)
{
	struct part parts[PLACES_MAX] = {{capacity, 0}};

	for (unsigned i = 0; i < grove.place_count; i++)
		check_place(&grove.places[i], parts);
}
