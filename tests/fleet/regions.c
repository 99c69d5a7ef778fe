/* SPDX-License-Identifier: BSD-2-Clause */
#include "regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "fleet/protocol/allot.h"

/* By level, the root first: each lease is half as long as the one above. */
static const weir_dur leases[] = {60 * WEIR_S, 30 * WEIR_S, 15 * WEIR_S};

struct sim sim;

uint64_t sim_draw(uint64_t most)
{
	return draw(&sim.chance) % most;
}

static weir_time sim_time(const struct weir_clock *clock)
{
	return ((const struct sim *)clock)->now;
}

static struct way *way_of(struct weir_store *store)
{
	return (struct way *)store;
}

static bool is_unreachable(const struct way *w)
{
	return w->manner == UNREACHABLE || w->to->down;
}

/* Stop the caller, which is about to send a request, for a while, and let all others run. */
static void stop_here(void)
{
	if (!sim.stops || sim.depth == 2 || sim_draw(25) != 0)
		return;
	sim.depth++;
	sim_run((unsigned)sim_draw(80));
	sim.depth--;
}

static int way_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	const struct way *w = way_of(self);

	return is_unreachable(w) ? -EIO : weir_store_begin(w->to->store, ttl, session, granted);
}

static int way_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	const struct way *w = way_of(self);

	return is_unreachable(w) ? -EIO : weir_store_keep(w->to->store, session, granted);
}

static int way_end(struct weir_store *self, uint64_t session)
{
	const struct way *w = way_of(self);

	return is_unreachable(w) ? -EIO : weir_store_end(w->to->store, session);
}

static void send_later(struct region *to, uint64_t session, const struct weir_store_check *checks,
		       size_t check_count, const struct weir_store_write *writes,
		       size_t write_count)
{
	struct parcel *p = calloc(1, sizeof(*p));

	CHECK(p != NULL);
	*p = (struct parcel){
		.next = sim.parcels,
		.to = to,
		.due = sim.now + sim_draw(40 * WEIR_S),
		.commit = late_commit_new(session, checks, check_count, writes, write_count),
	};
	sim.parcels = p;
}

/* Deliver the commits that are due, except to a store that is down. */
void sim_deliver(void)
{
	struct parcel **at = &sim.parcels;

	while (*at != NULL) {
		struct parcel *p = *at;

		if (p->due > sim.now || p->to->down) {
			at = &p->next;
			continue;
		}
		(void)late_commit_arrive(p->commit, p->to->store);
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
	if (is_unreachable(w))
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
	if (is_unreachable(w))
		return -EIO;
	r = weir_store_read(w->to->store, prefixes, count, row, arg, view);
	if (w->to->proven != WEIR_FOREVER)
		view->proven = sim.now - w->to->proven;
	return r;
}

static void way_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(way_of(self)->to->store, caps);
}

static void way_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "A simulated failure.");
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

static struct way way_to(struct region *to)
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
	config.clock = &sim.clock;
	config.seed = draw(&sim.chance);
	config.label = "member";
	return config;
}

/* Only the limit at the root has a capacity of its own, and its regions what is reserved there. */
static struct weir_share_config share_at(const struct region *p)
{
	struct weir_share_config config;

	weir_share_config_init(&config);
	config.name = "limit";
	if (p->above == NULL) {
		config.capacity = CAPACITY;
		config.reserved = sim.reserved;
		config.members = sim.reserved > 0 ? 4 : 0;
	} else if (p->above->above == NULL) {
		config.capacity = sim.reserved;
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
	l->next = sim.now;
}

void leaf_kill(struct leaf *l)
{
	l->way.manner = UNREACHABLE;
	weir_fleet_close(l->fleet);
	l->fleet = NULL;
}

void leader_open(struct region *p, struct leader *c)
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
	c->next = sim.now;
}

void leader_kill(struct leader *c)
{
	c->above.manner = c->below.manner = UNREACHABLE;
	weir_region_close(c->region);
	c->region = NULL;
}

static bool skip_row(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	(void)row;
	return false;
}

static void open_store(struct region *p)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &sim.clock;
	config.shm_bytes = 256 << 10;
	CHECK(weir_store_open(&config, &p->store, NULL, 0) == 0);
}

static uint64_t version_of(const struct region *p)
{
	const char *prefix = "limit/";
	struct weir_store_view view;

	CHECK(weir_store_read(p->store, &prefix, 1, skip_row, NULL, &view) == 0);
	return view.version;
}

/* As in Redis, versions go on rising. */
void region_forget(struct region *p)
{
	const struct weir_store_write write = {"scratch/row", WEIR_STORE_WRITE_PUT, "x", 1};
	const uint64_t version = version_of(p);

	weir_store_close(p->store);
	open_store(p);
	while (version_of(p) <= version)
		CHECK(weir_store_commit(p->store, 0, NULL, 0, &write, 1, NULL) == 0);
	p->proven = sim.now;
	sim.created_again |= p->above == NULL;
}

struct region *sim_add_region(struct region *above)
{
	struct region *p = &sim.regions[sim.region_count++];

	CHECK(sim.region_count <= REGIONS_MAX);
	*p = (struct region){
		.proven = WEIR_FOREVER,
		.above = above,
		.level = above != NULL ? above->level + 1 : 0,
	};
	open_store(p);
	for (unsigned i = 0; above != NULL && i < LEADERS_PER_REGION; i++)
		leader_open(p, &p->leaders[i]);
	return p;
}

void sim_add_leaf(struct region *in, uint64_t wants, unsigned weight)
{
	struct leaf *l = &sim.leaves[sim.leaf_count++];

	CHECK(sim.leaf_count <= LEAVES_MAX);
	*l = (struct leaf){.in = in, .wants = wants, .weight = weight};
	leaf_enter(l);
}

void sim_begin(uint64_t seed, uint64_t reserved)
{
	sim = (struct sim){
		.clock = {sim_time},
		.now = 1000 * WEIR_S,
		.chance = 88172645463325252u + seed,
		.reserved = reserved,
		.least = UINT64_MAX,
	};
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		sim.capacity[i] = CAPACITY;
	for (unsigned i = 0; i < 10; i++)
		(void)draw(&sim.chance);
}

void sim_end(void)
{
	for (unsigned i = 0; i < sim.leaf_count; i++)
		if (sim.leaves[i].fleet != NULL)
			weir_fleet_close(sim.leaves[i].fleet);
	for (unsigned i = 0; i < sim.region_count; i++)
		for (unsigned j = 0; j < LEADERS_PER_REGION; j++)
			weir_region_close(sim.regions[i].leaders[j].region);
	for (unsigned i = 0; i < sim.region_count; i++)
		weir_store_close(sim.regions[i].store);
	while (sim.parcels != NULL) {
		struct parcel *p = sim.parcels;

		sim.parcels = p->next;
		late_commit_free(p->commit);
		free(p);
	}
}

/* Units that all members of a region may use, or all members. */
uint64_t region_sum(const struct region *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < sim.leaf_count; i++)
		if (sim.leaves[i].fleet != NULL && (p == NULL || sim.leaves[i].in == p))
			sum += weir_share_units(sim.leaves[i].share);
	return sum;
}

/* Record the capacity of a limit that was created again; unchanged while there is none. */
static void note_capacity(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	if (sim.created_again &&
	    weir_fleet_inspect(sim.regions[0].store, "limit", &limit, NULL, NULL) == 0)
		sim.capacity[0] = limit.capacity;
}

static void sample(void)
{
	const uint64_t sum = region_sum(NULL);
	uint64_t most = 0;

	memmove(sim.capacity + 1, sim.capacity, sizeof(sim.capacity) - sizeof(sim.capacity[0]));
	note_capacity();
	for (unsigned i = 0; i < CUT_SECONDS; i++)
		most = sim.capacity[i] > most ? sim.capacity[i] : most;
	if (sum > most)
		fprintf(stderr, "%llu of %llu\n", (unsigned long long)sum,
			(unsigned long long)most);
	CHECK(sum <= most);
	sim.least = sum < sim.least ? sum : sim.least;
}

/*
 * Step all that are due, except those in the middle of a step. Returns the time of the next step.
 */
static weir_time act(void)
{
	weir_time first = WEIR_FOREVER;

	for (unsigned i = 0; i < sim.leaf_count; i++) {
		struct leaf *l = &sim.leaves[i];

		if (l->fleet != NULL && l->next <= sim.now) {
			l->next = WEIR_FOREVER;
			l->next = weir_fleet_step(l->fleet);
		}
		if (l->fleet != NULL && l->next < first)
			first = l->next;
	}
	for (unsigned i = 0; i < sim.region_count * LEADERS_PER_REGION; i++) {
		struct leader *c =
			&sim.regions[i / LEADERS_PER_REGION].leaders[i % LEADERS_PER_REGION];

		if (c->region != NULL && c->next <= sim.now) {
			c->next = WEIR_FOREVER;
			c->next = weir_fleet_step(weir_region_fleet(c->region));
		}
		if (c->region != NULL && c->next < first)
			first = c->next;
	}
	return first;
}

void sim_run(unsigned seconds)
{
	const weir_time last = sim.now + seconds * WEIR_S;
	weir_time second = sim.now + WEIR_S;

	while (sim.now < last) {
		weir_time next = act();

		sim_deliver();
		next = next < second ? next : second;
		sim.now = next > sim.now ? next : sim.now;
		if (sim.now < second)
			continue;
		sample();
		second = sim.now + WEIR_S;
	}
}

void sim_set_capacity(uint64_t capacity)
{
	const int r = weir_fleet_change(sim.regions[0].store, "limit", capacity);

	CHECK(r == 0 || (r == -ENOENT && sim.created_again));
	if (r == 0)
		sim.capacity[0] = capacity;
}

/* The sum of the weights and wants of a region. */
static struct claim claim_of(const struct region *p)
{
	struct claim all = {.id = (uint64_t)(p - sim.regions)};

	for (unsigned i = 0; i < sim.leaf_count; i++) {
		const struct region *in = sim.leaves[i].in;

		while (in != NULL && in != p)
			in = in->above;
		if (in == NULL || sim.leaves[i].fleet == NULL)
			continue;
		all.weight += sim.leaves[i].weight;
		all.wants += sim.leaves[i].wants;
	}
	return all;
}

/* The target of a region, and its tolerance. */
struct part {
	uint64_t capacity, slack;
};

/* Which member gets the last unit of a level depends on random numbers: hence slack. */
static void check_leaf(unsigned leaf, uint64_t target, uint64_t slack)
{
	const uint64_t units = weir_share_units(sim.leaves[leaf].share);

	if (units + slack < target || units > target + slack)
		fprintf(stderr, "leaf %u has %llu and not %llu\n", leaf, (unsigned long long)units,
			(unsigned long long)target);
	CHECK(units + slack >= target && units <= target + slack);
}

static void check_region(const struct region *p, struct part *parts)
{
	const struct part mine = parts[p - sim.regions];
	struct claim claims[LEAVES_MAX + REGIONS_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < sim.leaf_count; i++)
		if (sim.leaves[i].fleet != NULL && sim.leaves[i].in == p)
			claims[count++] = (struct claim){
				.id = 1000 + i,
				.wants = sim.leaves[i].wants,
				.weight = sim.leaves[i].weight,
			};
	for (unsigned i = 0; i < sim.region_count; i++)
		if (sim.regions[i].above == p && claim_of(&sim.regions[i]).weight > 0)
			claims[count++] = claim_of(&sim.regions[i]);
	allot(WEIR_ALLOT_FAIR, mine.capacity, claims, count);
	for (size_t i = 0; i < count; i++) {
		if (claims[i].id < 1000)
			parts[claims[i].id] = (struct part){claims[i].target, mine.slack + 1};
		else
			check_leaf((unsigned)claims[i].id - 1000, claims[i].target, mine.slack + 1);
	}
}

/* Check that each has its fair share. Regions above come first in the list. */
void sim_check_fair(uint64_t capacity)
{
	struct part parts[REGIONS_MAX] = {{capacity, 0}};

	for (unsigned i = 0; i < sim.region_count; i++)
		check_region(&sim.regions[i], parts);
}
