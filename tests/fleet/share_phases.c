/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of phases (share_phase.c, region_leader.c): every transition that they have happens
 * here, in virtual time, and no other does.
 */

#include <errno.h>
#include <string.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "fleet/protocol/region.h"

#define LEASE (30 * WEIR_S)

static struct virtual_clock {
	struct weir_clock clock; /* first */
	weir_time now;
} virtual;

static weir_time read_clock(const struct weir_clock *clock)
{
	return ((const struct virtual_clock *)clock)->now;
}

/* A way to a store in memory, on which commits, or all requests, can be made to fail. */
enum fault {
	NO_FAULT,
	UNREACHABLE,  /* -EIO, and nothing happens */
	COMMITS_LOST, /* the same, of commits */
	NO_ANSWERS,   /* commits happen, and answer -EIO */
	CONFLICTS,    /* -EAGAIN to commits */
};

struct link {
	struct weir_store store; /* first */
	struct weir_store *inner;
	enum fault fault;
};

static struct link *link_of(struct weir_store *store)
{
	return (struct link *)store;
}

static int link_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	const struct link *l = link_of(self);

	return l->fault == UNREACHABLE ? -EIO : weir_store_begin(l->inner, ttl, session, granted);
}

static int link_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	const struct link *l = link_of(self);

	return l->fault == UNREACHABLE ? -EIO : weir_store_keep(l->inner, session, granted);
}

static int link_end(struct weir_store *self, uint64_t session)
{
	const struct link *l = link_of(self);

	return l->fault == UNREACHABLE ? -EIO : weir_store_end(l->inner, session);
}

static int link_commit(struct weir_store *self, uint64_t session,
		       const struct weir_store_check *checks, size_t check_count,
		       const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	const struct link *l = link_of(self);
	int r;

	if (l->fault == UNREACHABLE || l->fault == COMMITS_LOST)
		return -EIO;
	if (l->fault == CONFLICTS)
		return -EAGAIN;
	r = weir_store_commit(l->inner, session, checks, check_count, writes, write_count, version);
	return l->fault == NO_ANSWERS ? -EIO : r;
}

/* The store is known to have forgotten nothing, so that no member waits for old leases to end. */
static int link_read(struct weir_store *self, const char *const *prefixes, size_t count,
		     weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	const struct link *l = link_of(self);
	int r;

	if (l->fault == UNREACHABLE)
		return -EIO;
	r = weir_store_read(l->inner, prefixes, count, row, arg, view);
	view->proven = WEIR_FOREVER;
	return r;
}

static void link_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(link_of(self)->inner, caps);
}

static void link_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "The test made it fail.");
}

static const struct weir_store_ops link_ops = {
	.size = sizeof(link_ops),
	.name = "test",
	.begin = link_begin,
	.keep = link_keep,
	.end = link_end,
	.commit = link_commit,
	.read = link_read,
	.caps = link_caps,
	.error = link_error,
};

static struct weir_store *open_store(void)
{
	struct weir_store_config config;
	struct weir_store *store;

	weir_store_config_init(&config);
	config.clock = &virtual.clock;
	CHECK(weir_store_open(&config, &store, NULL, 0) == 0);
	return store;
}

/* What an operator, or a broken store, does to a row. */
static void erase_row(struct weir_store *store, const char *key)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_ERASE, NULL, 0};

	CHECK(weir_store_commit(store, 0, NULL, 0, &write, 1, NULL) == 0);
}

#define TABLES     3
#define PHASES_MAX 8
#define EVENTS_MAX 8

static const struct phase_table *const tables[TABLES] = {&share_phases, &line_phases,
							 &leader_phases};
static unsigned seen[TABLES][PHASES_MAX][EVENTS_MAX];

static void count(const struct phase_table *table, unsigned from, unsigned event, unsigned to)
{
	if (to == PHASE_NEVER) {
		fprintf(stderr,
			"The table of the %s has no transition from phase %u by event %u.\n",
			table->name, from, event);
		abort();
	}
	for (unsigned i = 0; i < TABLES; i++)
		if (tables[i] == table)
			seen[i][from][event]++;
}

static struct weir_fleet_config config_on(struct link *l)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.store = &l->store;
	config.lease = config.learning = LEASE;
	config.manual = 1;
	config.clock = &virtual.clock;
	config.seed = 7;
	config.label = "member";
	return config;
}

static struct weir_share_config limit_of(uint64_t capacity)
{
	struct weir_share_config config;

	weir_share_config_init(&config);
	config.name = "limit";
	config.capacity = capacity;
	return config;
}

static struct member {
	struct link link;
	struct weir_fleet *fleet;
	struct weir_share *share;
} member;

static void join(void)
{
	struct weir_share_config limit = limit_of(100);

	CHECK(weir_share_join(member.fleet, &limit, &member.share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(member.share, 100) == 0);
}

/* A member that has done nothing yet, in a store of its own. */
static void begin(void)
{
	struct weir_fleet_config config = config_on(&member.link);

	member.link = (struct link){.store = {&link_ops}, .inner = open_store()};
	CHECK(weir_fleet_open(&config, &member.fleet, NULL, 0) == 0);
	member.fleet->observer = count;
	join();
}

static void end(void)
{
	weir_fleet_close(member.fleet);
	weir_store_close(member.link.inner);
}

static int refresh_with(enum fault fault)
{
	member.link.fault = fault;
	virtual.now += WEIR_S;
	return weir_fleet_refresh(member.fleet);
}

static bool is(enum share_phase phase, enum line_phase line)
{
	return member.share->phase == phase && member.share->line == line;
}

static void begin_as_member(void)
{
	begin();
	CHECK(is(SHARE_OUTSIDE, LINE_KNOWN));
	CHECK(refresh_with(NO_FAULT) == 0);
	CHECK(is(SHARE_MEMBER, LINE_KNOWN) && weir_share_units(member.share) == 100);
}

static void a_member_joins_and_leaves(void)
{
	begin_as_member();
	CHECK(refresh_with(NO_FAULT) == 0);
	weir_share_leave(member.share);
	CHECK(member.fleet->left == NULL);
	join();
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	/* The row is erased once the store is there. */
	member.link.fault = UNREACHABLE;
	weir_share_leave(member.share);
	CHECK(member.fleet->left->phase == SHARE_LEAVING);
	CHECK(refresh_with(NO_FAULT) == 0 && member.fleet->left == NULL);
	end();
}

/* A share is left while its row may yet be made: the row is erased until the lease is over. */
static void a_member_leaves_while_it_joins(void)
{
	begin();
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	member.link.fault = NO_FAULT;
	weir_share_leave(member.share);
	CHECK(member.fleet->left->phase == SHARE_ERASED);
	CHECK(refresh_with(NO_FAULT) == 0 && member.fleet->left != NULL);
	virtual.now += LEASE / 2;
	CHECK(refresh_with(NO_FAULT) == 0 && member.fleet->left != NULL);
	virtual.now += LEASE / 2;
	CHECK(refresh_with(NO_FAULT) == 0 && member.fleet->left == NULL);
	end();
}

static void joining_is_not_answered(void)
{
	begin();
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	end();
	begin();
	CHECK(refresh_with(NO_ANSWERS) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	end();
}

static void a_session_is_lost(void)
{
	begin();
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	virtual.now += 2 * LEASE;
	CHECK(refresh_with(UNREACHABLE) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	virtual.now += 2 * LEASE;
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	end();
}

/* A refresh that is asked for does not keep the session, but begins another one if it is over. */
static void a_session_is_lost_before_a_share_asks(void)
{
	uint64_t session;

	begin_as_member();
	session = member.fleet->session;
	CHECK(weir_store_end(member.link.inner, session) == 0);
	CHECK(weir_share_demand_set(member.share, 50) == 0);
	member.fleet->asks = true;
	CHECK(refresh_with(NO_FAULT) == 0);
	member.fleet->asks = false;
	CHECK(member.fleet->session != 0 && member.fleet->session != session);
	CHECK(is(SHARE_MEMBER, LINE_KNOWN) && weir_share_units(member.share) == 50);
	end();
}

static void rows_are_erased_by_others(void)
{
	begin_as_member();
	erase_row(member.link.inner, "limit/cfg");
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	erase_row(member.link.inner, member.share->own_key);
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_ENTERING, LINE_KNOWN));
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	end();
}

/* The least that may be used meanwhile is used. */
static void a_commit_is_not_answered(void)
{
	begin_as_member();
	CHECK(weir_share_demand_set(member.share, 60) == 0);
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_MEMBER, LINE_UNSETTLED));
	CHECK(weir_share_units(member.share) == 60);
	CHECK(refresh_with(COMMITS_LOST) == -EIO && is(SHARE_MEMBER, LINE_UNSETTLED));
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	CHECK(weir_share_demand_set(member.share, 80) == 0);
	CHECK(refresh_with(NO_ANSWERS) == -EIO && is(SHARE_MEMBER, LINE_UNSETTLED));
	CHECK(weir_share_units(member.share) == 60);
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	CHECK(weir_share_units(member.share) == 80);
	CHECK(weir_share_demand_set(member.share, 70) == 0);
	CHECK(refresh_with(NO_ANSWERS) == -EIO && is(SHARE_MEMBER, LINE_UNSETTLED));
	virtual.now += 2 * LEASE;
	CHECK(refresh_with(NO_FAULT) == 0 && is(SHARE_MEMBER, LINE_KNOWN));
	end();
}

static struct leader {
	struct link above, below;
	struct weir_region *region;
	struct weir_fleet *fleet;
	struct weir_share *share;
} leader;

/* A region without members, and a process of it that has done nothing yet. */
static void begin_region(void)
{
	struct weir_fleet_config above = config_on(&leader.above), below = config_on(&leader.below);
	struct weir_share_config limit = limit_of(100);
	struct weir_region_config config;

	leader.above = (struct link){.store = {&link_ops}, .inner = open_store()};
	leader.below = (struct link){.store = {&link_ops}, .inner = open_store()};
	weir_region_config_init(&config);
	config.above = &above;
	config.below = &below;
	config.limit = &limit;
	CHECK(weir_region_open(&config, &leader.region, NULL, 0) == 0);
	leader.fleet = weir_region_fleet(leader.region);
	leader.share = weir_region_share(leader.region);
	leader.fleet->observer = count;
}

static void end_region(void)
{
	weir_region_close(leader.region);
	weir_store_close(leader.above.inner);
	weir_store_close(leader.below.inner);
}

static int refresh_region_with(enum fault above)
{
	leader.above.fault = above;
	virtual.now += WEIR_S;
	return weir_fleet_refresh(leader.fleet);
}

static bool leads(enum leader_phase phase, enum share_phase share, enum line_phase line)
{
	return leader.region->phase == phase && leader.share->phase == share &&
	       leader.share->line == line;
}

static void begin_as_leader(void)
{
	begin_region();
	CHECK(leads(LEADER_STANDBY, SHARE_OUTSIDE, LINE_KNOWN));
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
}

static void rest(void)
{
	virtual.now = leader.region->rests_until;
}

static void lose_session_below(void)
{
	CHECK(weir_store_end(leader.below.inner, leader.region->session) == 0);
}

/* Whatever becomes of a leader, it stands again, and goes on as the same member above. */
static void a_leader_is_elected_again(void)
{
	begin_as_leader();
	lose_session_below();
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
	/* Another process had the row in between. */
	erase_row(leader.below.inner, leader.region->leader_key);
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_STANDBY, SHARE_MEMBER, LINE_KNOWN));
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
	end_region();
}

static void a_leader_resigns(void)
{
	begin_as_leader();
	CHECK(refresh_region_with(UNREACHABLE) == -EIO);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
	virtual.now += LEASE / 2;
	CHECK(refresh_region_with(UNREACHABLE) == -EIO);
	CHECK(leads(LEADER_RESTING, SHARE_MEMBER, LINE_KNOWN));
	CHECK(refresh_region_with(NO_FAULT) == 0 && leader.region->phase == LEADER_RESTING);
	lose_session_below();
	CHECK(refresh_region_with(NO_FAULT) == 0 && leader.region->phase == LEADER_RESTING);
	rest();
	CHECK(refresh_region_with(UNREACHABLE) == -EIO);
	CHECK(leads(LEADER_RESTING, SHARE_ENTERING, LINE_ADOPTED));
	rest();
	CHECK(refresh_region_with(UNREACHABLE) == -EIO);
	CHECK(leads(LEADER_RESTING, SHARE_ENTERING, LINE_ADOPTED));
	rest();
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
	end_region();
}

/* It has read above, and cannot write there: what is carried stays as it is. */
static void taking_over_is_interrupted(void)
{
	begin_as_leader();
	for (unsigned i = 0; i < 2; i++) {
		lose_session_below();
		CHECK(refresh_region_with(CONFLICTS) == 0);
		CHECK(leads(LEADER_TAKING_OVER, SHARE_MEMBER, LINE_UNSETTLED));
	}
	erase_row(leader.below.inner, leader.region->leader_key);
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_STANDBY, SHARE_MEMBER, LINE_UNSETTLED));
	CHECK(refresh_region_with(NO_FAULT) == 0);
	CHECK(leads(LEADER_LEADING, SHARE_MEMBER, LINE_KNOWN));
	end_region();
}

static unsigned compare(const struct phase_table *table, const unsigned visits[][EVENTS_MAX])
{
	unsigned missing = 0;

	CHECK(table->phases <= PHASES_MAX && table->events <= EVENTS_MAX);
	for (unsigned i = 0; i < table->phases; i++)
		for (unsigned j = 0; j < table->events; j++) {
			if (table->to[i * table->events + j] == PHASE_NEVER || visits[i][j] > 0)
				continue;
			fprintf(stderr, "No test moves the %s from phase %u by event %u.\n",
				table->name, i, j);
			missing++;
		}
	return missing;
}

int main(void)
{
	unsigned missing = 0;

	virtual.clock.now = read_clock;
	virtual.now = 1000 * WEIR_S;
	a_member_joins_and_leaves();
	a_member_leaves_while_it_joins();
	joining_is_not_answered();
	a_session_is_lost();
	a_session_is_lost_before_a_share_asks();
	rows_are_erased_by_others();
	a_commit_is_not_answered();
	a_leader_is_elected_again();
	a_leader_resigns();
	taking_over_is_interrupted();
	for (unsigned i = 0; i < TABLES; i++)
		missing += compare(tables[i], (const unsigned(*)[EVENTS_MAX])seen[i]);
	CHECK(missing == 0);
	printf("every transition of the tables happens, and no other\n");
	return 0;
}
