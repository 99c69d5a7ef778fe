/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of libweir-fleet that allocates, maps, opens, sends or starts a thread. The argument
 * is the kind of store: memory, shm, redis or etcd; with the latter two, the store's own functions.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/batcher.h>
#include <weir/fleet_metrics.h>
#include <weir/work.h>

#include "../fleet/server.h"
#include "../fleet/test_store.h"
#include "cases.h"

#define CAPACITY 100
#define TTL      (60 * WEIR_S)
#define PARTS    2

/* What the cases work on; one at a time. */
static const char *kind;
static bool remote;
static struct server server;
static unsigned stores;
static char address[128], name[64], why[256];
static struct weir_store_config config;
static struct weir_store *store;
static uint64_t session;
static struct weir_fleet *fleet, *above;
static struct weir_share *share;
static struct weir_region *region;
static struct weir_work *work;
static struct weir_batcher *batcher;
static struct weir_rate *rate;
static uint64_t fence;
static unsigned seen;

/* What a server or a client library says may end without a full stop. */
static void is_explained(void)
{
	CHECK(why[0] != '\0' && (remote || why[strlen(why) - 1] == '.'));
}

/* Stores. Each is a new one. */

static void new_name(void)
{
	weir_store_config_init(&config);
	stores++;
	(void)snprintf(name, sizeof(name), "failures-%u", stores);
	if (strcmp(kind, "shm") == 0)
		(void)snprintf(address, sizeof(address), "shm:/weir-failures-%d-%u", (int)getpid(),
			       stores);
	config.name = remote ? name : NULL;
	config.address = strcmp(kind, "memory") != 0 ? address : NULL;
	config.timeout = 10 * WEIR_S;
	config.shm_bytes = (size_t)1 << 18;
}

static int open_store(void)
{
	why[0] = '\0';
	return weir_store_open(&config, &store, why, sizeof(why));
}

static void no_store(void)
{
	is_explained();
	CHECK(store == NULL);
}

static bool count_row(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	seen += row->size == 5 && memcmp(row->value, "value", 5) == 0;
	return true;
}

static int read_rows(void)
{
	const char *const prefix = "a/";

	seen = 0;
	return weir_store_read(store, &prefix, 1, count_row, NULL, NULL);
}

static int commit(void)
{
	const struct weir_store_write rows[] = {
		{"a/one", WEIR_STORE_WRITE_PUT, "value", 5},
		{"a/two", WEIR_STORE_WRITE_BIND, "value", 5},
	};

	return weir_store_commit(store, session, NULL, 0, rows, 2, NULL);
}

static int begin_session(void)
{
	weir_dur granted;

	return weir_store_begin(store, TTL, &session, &granted);
}

static int keep(void)
{
	weir_dur granted;

	return weir_store_keep(store, session, &granted);
}

static int keep_and_read(void)
{
	const char *const prefix = "a/";
	weir_dur granted;

	seen = 0;
	return weir_store_keep_and_read(store, session, &granted, &prefix, 1, count_row, NULL,
					NULL);
}

static int end_session(void)
{
	return weir_store_end(store, session);
}

static void begin_store(void)
{
	new_name();
	CHECK(open_store() == 0);
}

static void begin_with_session(void)
{
	begin_store();
	CHECK(begin_session() == 0);
}

static void begin_with_rows(void)
{
	begin_with_session();
	CHECK(commit() == 0);
}

static void has_rows(void)
{
	CHECK(read_rows() == 0 && seen == 2);
}

/* Has read them itself. */
static void saw_rows(void)
{
	CHECK(seen == 2);
	has_rows();
}

static void has_session(void)
{
	CHECK(commit() == 0);
	has_rows();
}

static void use_store(void)
{
	CHECK(begin_session() == 0);
	has_session();
}

static void lost_bound_row(void)
{
	CHECK(read_rows() == 0 && seen == 1);
}

static void end_store(void)
{
	weir_store_close(store);
	store = NULL;
	session = 0;
	if (strcmp(kind, "shm") == 0)
		CHECK(shm_unlink(address + strlen("shm:")) == 0);
}

/* The same row again: a file that exists, with what is in it. */
static struct weir_store *other;

static void begin_existing(void)
{
	begin_with_rows();
	other = store;
	store = NULL;
}

static void end_existing(void)
{
	weir_store_close(other);
	end_store();
}

/* Watches. */

static struct weir_store_watch *watch;

static int open_watch(void)
{
	const char *const prefix = "a/";

	why[0] = '\0';
	return weir_store_watch_open(store, &prefix, 1, &watch, why, sizeof(why));
}

static void no_watch(void)
{
	is_explained();
	CHECK(watch == NULL);
}

/* A report, or that any row may have changed. */
static int wait_for_change(void)
{
	struct weir_store_change change;
	const int r = weir_store_watch_wait(watch, 60 * WEIR_S, &change);

	CHECK(r != 0 || change.key[0] == '\0' || strncmp(change.key, "a/", 2) == 0);
	CHECK((r < 0) == (change.why[0] != '\0'));
	return r;
}

static void use_watch(void)
{
	CHECK(commit() == 0);
	CHECK(wait_for_change() == 0);
}

static void begin_changed(void)
{
	begin_with_session();
	CHECK(open_watch() == 0);
	CHECK(commit() == 0);
}

static void end_watch(void)
{
	weir_store_watch_close(watch);
	watch = NULL;
	end_store();
}

/* Fleets: over a store that cannot have forgotten a lease. */

static struct weir_fleet_config fleet_config(void)
{
	struct weir_fleet_config c;

	weir_fleet_config_init(&c);
	c.store = store;
	c.manual = 1;
	c.label = "failures";
	return c;
}

static int open_fleet_of(const struct weir_fleet_config *c)
{
	why[0] = '\0';
	return weir_fleet_open(c, &fleet, why, sizeof(why));
}

static int open_fleet(void)
{
	const struct weir_fleet_config c = fleet_config();

	return open_fleet_of(&c);
}

static int open_own_fleet(void)
{
	struct weir_fleet_config c = fleet_config();

	c.store_config = &config;
	c.manual = 0;
	return open_fleet_of(&c);
}

static void no_fleet(void)
{
	is_explained();
	CHECK(fleet == NULL);
}

static bool allocated; /* the limit has an allocator */

static int join(void)
{
	struct weir_share_config c;

	weir_share_config_init(&c);
	c.allocated = allocated;
	c.name = "limit";
	c.capacity = CAPACITY;
	why[0] = '\0';
	return weir_share_join(fleet, &c, &share, why, sizeof(why));
}

static void no_share(void)
{
	is_explained();
	CHECK(share == NULL);
}

static int refresh(void)
{
	return weir_fleet_refresh(fleet);
}

static int step(void)
{
	(void)weir_fleet_step(fleet);
	return 0;
}

static void has_sentence(void)
{
	weir_fleet_error(fleet, why, sizeof(why));
	is_explained();
	CHECK(weir_share_units(share) <= CAPACITY);
}

/* The whole limit, after two refreshes at most. */
static void has_units(void)
{
	CHECK(refresh() == 0 && refresh() == 0);
	CHECK(weir_share_units(share) == CAPACITY);
}

static void use_fleet(void)
{
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
	has_units();
}

static void use_own_fleet(void)
{
	CHECK(join() == 0);
	CHECK(refresh() == 0);
}

static void begin_trusted(void)
{
	begin_store();
	store = test_store_trusted(store, strcmp(kind, "shm") == 0 ? address + strlen("shm:") : "");
}

static void begin_fleet(void)
{
	begin_trusted();
	CHECK(open_fleet() == 0);
}

static void begin_share(void)
{
	begin_fleet();
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

static void begin_with_units(void)
{
	begin_share();
	has_units();
}

static void begin_allocated(void)
{
	allocated = true;
	begin_share();
}

/* It is elected, and wants more than its grant. */
static void begin_allocator(void)
{
	begin_allocated();
	CHECK(weir_share_demand_set(share, CAPACITY / 2) == 0);
	CHECK(refresh() == 0 && weir_share_units(share) == CAPACITY / 2);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

static void end_fleet(void)
{
	allocated = false;
	weir_fleet_close(fleet);
	weir_store_close(store);
	fleet = NULL;
	store = NULL;
	share = NULL;
	work = NULL;
}

static void end_own_fleet(void)
{
	weir_fleet_close(fleet);
	fleet = NULL;
	share = NULL;
	if (strcmp(kind, "shm") == 0)
		CHECK(shm_unlink(address + strlen("shm:")) == 0);
}

/* Three members that want more than there is, so that units are divided and rounded. */

static struct weir_fleet *others[2];
static struct weir_share *their_shares[2];
static enum weir_allotment allotment;

static void begin_three(void)
{
	struct weir_fleet_config c;
	struct weir_share_config limit;

	begin_trusted();
	c = fleet_config();
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	limit.allotment = allotment;
	for (int i = 0; i < 2; i++) {
		CHECK(weir_fleet_open(&c, &others[i], NULL, 0) == 0);
		CHECK(weir_share_join(others[i], &limit, &their_shares[i], NULL, 0) == 0);
		CHECK(weir_share_demand_set(their_shares[i], CAPACITY) == 0);
	}
	CHECK(open_fleet() == 0);
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(weir_fleet_refresh(others[0]) == 0 && weir_fleet_refresh(others[1]) == 0);
}

static void begin_three_fair(void)
{
	allotment = WEIR_ALLOT_FAIR;
	begin_three();
}

static void begin_three_proportional(void)
{
	allotment = WEIR_ALLOT_PROPORTIONAL;
	begin_three();
}

static uint64_t sum(void)
{
	return weir_share_units(share) + weir_share_units(their_shares[0]) +
	       weir_share_units(their_shares[1]);
}

static void not_too_much(void)
{
	has_sentence();
	CHECK(sum() <= CAPACITY);
}

static void all_used(void)
{
	for (int i = 0; i < 4; i++) {
		CHECK(refresh() == 0);
		CHECK(weir_fleet_refresh(others[0]) == 0 && weir_fleet_refresh(others[1]) == 0);
		CHECK(sum() <= CAPACITY);
	}
	CHECK(sum() == CAPACITY);
}

static void end_three(void)
{
	weir_fleet_close(others[0]);
	weir_fleet_close(others[1]);
	end_fleet();
}

/* Limits, from outside. */

static bool see_member(void *arg, const struct weir_fleet_member *member)
{
	*(struct weir_fleet_member *)arg = *member;
	seen++;
	return true;
}

static int inspect(void)
{
	struct weir_fleet_member last;
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	seen = 0;
	return weir_fleet_inspect(store, "limit", &limit, see_member, &last);
}

static void saw_member(void)
{
	CHECK(seen == 1);
}

static uint64_t capacity(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(store, "limit", &limit, NULL, NULL) == 0);
	return limit.capacity;
}

static int change(void)
{
	return weir_fleet_change(store, "limit", CAPACITY / 2);
}

static void unchanged(void)
{
	CHECK(capacity() == CAPACITY);
}

static void changed(void)
{
	CHECK(capacity() == CAPACITY / 2);
}

static int configure(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = CAPACITY / 2;
	return weir_fleet_configure(store, "limit", &limit, why, sizeof(why));
}

static void no_limit(void)
{
	CHECK(inspect() == -ENOENT);
}

static void begin_unused(void)
{
	begin_trusted();
	CHECK(configure() == 0);
}

static int remove_limit(void)
{
	return weir_fleet_remove(store, "limit");
}

/* One that has a member is not removed. */
static int remove_used(void)
{
	const int r = remove_limit();

	if (r == 0)
		return -EPERM;
	return r == -EBUSY ? 0 : r;
}

static int set_template(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = CAPACITY;
	return weir_fleet_template_set(store, "lim*", &limit, why, sizeof(why));
}

static bool see_template(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	(void)arg;
	seen += strcmp(pattern, "lim*") == 0 && limit->capacity == CAPACITY;
	return true;
}

static int list_templates(void)
{
	seen = 0;
	return weir_fleet_template_list(store, see_template, NULL);
}

static void saw_template(void)
{
	CHECK(seen == 1);
}

static void no_template(void)
{
	CHECK(list_templates() == 0 && seen == 0);
}

static void has_template(void)
{
	CHECK(list_templates() == 0 && seen == 1);
}

static void template_not_set(void)
{
	is_explained();
	no_template();
}

static void begin_template(void)
{
	begin_trusted();
	CHECK(set_template() == 0);
}

static int get_template(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	return weir_fleet_template_get(store, "lim*", &limit);
}

static int match_template(void)
{
	char pattern[WEIR_FLEET_PATTERN_MAX + 1];
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	return weir_fleet_template_match(store, "limit", pattern, &limit);
}

static int remove_template(void)
{
	return weir_fleet_template_remove(store, "lim*");
}

/* A limit that the store does not have, and a template for it. */
static void begin_by_template(void)
{
	begin_template();
	CHECK(open_fleet() == 0);
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

static struct weir_fleet_member member;

static void begin_member(void)
{
	struct weir_fleet_limit limit;

	begin_with_units();
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(store, "limit", &limit, see_member, &member) == 0);
}

static int drain(void)
{
	return weir_fleet_drain(store, "limit", member.id, true);
}

static int drain_label(void)
{
	return weir_fleet_drain_label(store, "limit", "failures", true);
}

static void not_drained(void)
{
	has_units();
}

static void drained(void)
{
	CHECK(refresh() == 0 && refresh() == 0);
	CHECK(weir_share_units(share) == 0);
}

static bool see_entry(void *arg, const struct weir_fleet_entry *entry)
{
	(void)arg;
	seen += strcmp(entry->name, "limit") == 0 && entry->limit != NULL;
	return true;
}

static int list_limits(void)
{
	seen = 0;
	return weir_fleet_list(store, see_entry, NULL);
}

/* Regions: the limit above and that below are in one store. */

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

/* Partitions of work. */

static int open_work(void)
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

/* Batchers. */

static void begin_batcher(void)
{
	struct weir_rate_config c;

	weir_rate_config_init(&c);
	c.quotas[0].units = 1000;
	CHECK(weir_rate_create(&c, &rate) == 0);
}

static int create_batcher(void)
{
	struct weir_batcher_config c;

	weir_batcher_config_init(&c);
	c.rate = rate;
	return weir_batcher_create(&c, &batcher);
}

static void no_batcher(void)
{
	CHECK(batcher == NULL);
}

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	(void)arg, (void)first, (void)count;
	CHECK(weir_batcher_done(batcher, batch) == 0);
}

static void use_batcher(void)
{
	static const struct weir_batch_handler handler = {.process = process};
	struct weir_operation operation = {.watcher = &handler, .cost = {{1}}};

	CHECK(weir_batcher_enqueue(batcher, &operation, WEIR_FOREVER) == 0);
	CHECK(weir_batcher_drain(batcher, WEIR_FOREVER) == 0);
}

static void end_batcher(void)
{
	CHECK(weir_batcher_destroy(batcher) == 0);
	weir_rate_destroy(rate);
	batcher = NULL;
}

/* Metrics, with a share and partitions of work. */

static struct weir_metrics *metrics;

static void begin_metrics(void)
{
	begin_with_units();
	CHECK(open_work() == 0);
	CHECK(weir_metrics_create(&metrics) == 0);
}

static int add_metrics(void)
{
	return weir_fleet_metrics_add(metrics, fleet, NULL, 0);
}

/* Some of the numbers may have been added: each fleet is added once. */
static void metrics_anew(void)
{
	weir_metrics_destroy(metrics);
	CHECK(weir_metrics_create(&metrics) == 0);
}

static void has_metrics(void)
{
	static char text[1 << 16];

	CHECK(weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text)) < sizeof(text));
	CHECK(strstr(text, "weir_share_units{limit=\"limit\"} 100\n") != NULL);
	CHECK(strstr(text, "weir_work_partitions{work=\"work\"} 2\n") != NULL);
}

static void end_metrics(void)
{
	weir_metrics_destroy(metrics);
	metrics = NULL;
	end_fleet();
}

/* What a server's client library needs: without it, there is no answer, or no memory. */
#define CLIENT                                                                                     \
	(FAULT_BIT(FAULT_MEMORY) | FAULT_BIT(FAULT_OPEN) | FAULT_BIT(FAULT_READ) |                 \
	 FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_STAT) | FAULT_BIT(FAULT_EVENT) |                 \
	 FAULT_BIT(FAULT_RANDOM) | FAULT_BIT(FAULT_SOCKET) | FAULT_BIT(FAULT_CONNECT) |            \
	 FAULT_BIT(FAULT_SEND) | FAULT_BIT(FAULT_RECEIVE))

/* Further documented results. */
/* clang-format off */
#define UNANSWERED {CLIENT, -EIO}
#define REPEATED   {CLIENT, 0} /* or not needed */
/* The file of a store in shared memory has no room, or cannot be examined. */
#define NO_ROOM    {FAULT_BIT(FAULT_RESERVE), -ENOSPC}
#define UNEXAMINED {FAULT_BIT(FAULT_STAT), -EIO}
/* Only weir_fleet_error() tells. */
#define NOT_TOLD   {FAULT_BIT(FAULT_STAT) | FAULT_BIT(FAULT_MEMORY), 0}
#define UNROUNDED  {FAULT_BIT(FAULT_MEMORY), 0}
#define NO_RANDOM  {FAULT_BIT(FAULT_RANDOM), -EIO}
/* clang-format on */

/* Of all stores. */
static struct failure_case store_cases[] = {
	{"weir_store_open",
	 NULL,
	 new_name,
	 open_store,
	 no_store,
	 use_store,
	 end_store,
	 {NO_ROOM, UNANSWERED, REPEATED}},
	{"weir_store_begin",
	 NULL,
	 begin_store,
	 begin_session,
	 NULL,
	 has_session,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_keep",
	 NULL,
	 begin_with_session,
	 keep,
	 NULL,
	 has_session,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_commit",
	 NULL,
	 begin_with_session,
	 commit,
	 NULL,
	 has_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_read",
	 NULL,
	 begin_with_rows,
	 read_rows,
	 NULL,
	 saw_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_keep_and_read",
	 NULL,
	 begin_with_rows,
	 keep_and_read,
	 NULL,
	 saw_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_end",
	 NULL,
	 begin_with_rows,
	 end_session,
	 NULL,
	 lost_bound_row,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_watch_open weir_store_watch_close",
	 NULL,
	 begin_with_session,
	 open_watch,
	 no_watch,
	 use_watch,
	 end_watch,
	 {UNANSWERED, REPEATED, UNEXAMINED}},
	{"weir_store_watch_wait",
	 NULL,
	 begin_changed,
	 wait_for_change,
	 NULL,
	 use_watch,
	 end_watch,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
};

static const struct failure_case shm_cases[] = {
	{"weir_store_open", "that exists", begin_existing, open_store, no_store, has_rows,
	 end_existing},
};

/* Of those without a server. */
static struct failure_case local_cases[] = {
	{"weir_fleet_open",
	 "with a store",
	 begin_trusted,
	 open_fleet,
	 no_fleet,
	 use_fleet,
	 end_fleet,
	 {NO_RANDOM}},
	{"weir_fleet_open",
	 NULL,
	 new_name,
	 open_own_fleet,
	 no_fleet,
	 use_own_fleet,
	 end_own_fleet,
	 {NO_ROOM, NO_RANDOM}},
	{"weir_share_join", NULL, begin_fleet, join, no_share, NULL, end_fleet},
	{"weir_fleet_refresh",
	 "at first",
	 begin_share,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of a lease",
	 begin_with_units,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "that elects an allocator",
	 begin_allocated,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of an allocator",
	 begin_allocator,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	/* Without memory, units are not rounded, and some are not used. */
	{"weir_fleet_refresh",
	 "of one of three members",
	 begin_three_fair,
	 refresh,
	 not_too_much,
	 all_used,
	 end_three,
	 {UNEXAMINED, UNROUNDED}},
	{"weir_fleet_refresh",
	 "by unmet demand",
	 begin_three_proportional,
	 refresh,
	 not_too_much,
	 all_used,
	 end_three,
	 {UNEXAMINED, UNROUNDED}},
	{"weir_fleet_refresh",
	 "of work",
	 begin_work,
	 refresh,
	 owns_some,
	 owns_all,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of an owner",
	 begin_owner,
	 refresh,
	 owns_some,
	 owns_all,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_step",
	 NULL,
	 begin_share,
	 step,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED, NOT_TOLD}},
	{"weir_fleet_inspect",
	 NULL,
	 begin_with_units,
	 inspect,
	 NULL,
	 saw_member,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_change",
	 NULL,
	 begin_with_units,
	 change,
	 unchanged,
	 changed,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_configure",
	 NULL,
	 begin_trusted,
	 configure,
	 no_limit,
	 changed,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_fleet_remove",
	 NULL,
	 begin_unused,
	 remove_limit,
	 changed,
	 no_limit,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_fleet_remove",
	 "of a limit with a member",
	 begin_with_units,
	 remove_used,
	 unchanged,
	 unchanged,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_set",
	 NULL,
	 begin_trusted,
	 set_template,
	 template_not_set,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_list",
	 NULL,
	 begin_template,
	 list_templates,
	 has_template,
	 saw_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_get",
	 NULL,
	 begin_template,
	 get_template,
	 has_template,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_match",
	 NULL,
	 begin_template,
	 match_template,
	 has_template,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_remove",
	 NULL,
	 begin_template,
	 remove_template,
	 has_template,
	 no_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of a limit that is made by a template",
	 begin_by_template,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_drain",
	 NULL,
	 begin_member,
	 drain,
	 not_drained,
	 drained,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_drain_label",
	 NULL,
	 begin_member,
	 drain_label,
	 not_drained,
	 drained,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_metrics_add", NULL, begin_metrics, add_metrics, metrics_anew, has_metrics,
	 end_metrics},
	{"weir_fleet_list",
	 NULL,
	 begin_with_units,
	 list_limits,
	 NULL,
	 saw_member,
	 end_fleet,
	 {UNEXAMINED}},
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
	{"weir_work_open", NULL, begin_fleet, open_work, no_work, owns_all, end_fleet},
	{"weir_work_checkpoint",
	 NULL,
	 begin_owner,
	 checkpoint,
	 no_checkpoint,
	 has_checkpoint,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_load",
	 NULL,
	 begin_checkpoint,
	 load,
	 still_owns,
	 has_checkpoint,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_rewind",
	 NULL,
	 begin_checkpoint,
	 set_back,
	 still_owns,
	 is_set_back,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_restart",
	 NULL,
	 begin_checkpoint,
	 restart,
	 still_owns,
	 is_restarted,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_resize",
	 NULL,
	 begin_capacity,
	 resize,
	 still_has,
	 is_resized,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_size_take",
	 NULL,
	 begin_capacity,
	 take_size,
	 still_has,
	 still_has,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_work_inspect",
	 NULL,
	 begin_owner,
	 inspect_work,
	 NULL,
	 saw_parts,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_batcher_create", NULL, begin_batcher, create_batcher, no_batcher, use_batcher,
	 end_batcher},
};

#define COUNT(cases) (sizeof(cases) / sizeof((cases)[0]))

/* Only a store in memory needs nothing, and only a server is without an answer. */
static void adapt(struct failure_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(kind, "memory") != 0)
			cases[i].quiet = false;
		for (struct instead *at = cases[i].instead; at->kinds != 0; at++)
			if (at->kinds == CLIENT && !remote)
				*at = (struct instead)UNEXAMINED;
	}
}

int main(int argc, char **argv)
{
	const bool only_list = argc > 1 && strcmp(argv[1], "--list") == 0;

	if (only_list)
		return cases_run(store_cases, COUNT(store_cases), argc, argv) +
		       cases_run(local_cases, COUNT(local_cases), argc, argv);
	CHECK(argc > 1);
	kind = argv[1];
	remote = strcmp(kind, "redis") == 0 || strcmp(kind, "etcd") == 0;
	/* hiredis aborts without memory. */
	if (strcmp(kind, "redis") == 0)
		fault_only_in("libweir");
	/* Its requests make hundreds of allocations, and it syncs its file for each commit. */
	if (strcmp(kind, "etcd") == 0)
		cases_only_single();
	if (remote) {
		server_start(&server, kind[0] == 'e' ? SERVER_ETCD : SERVER_REDIS);
		(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", kind, server.port);
		new_name();
		while (open_store() != 0)
			sleep_ms(20);
		end_store();
	}
	adapt(store_cases, COUNT(store_cases));
	adapt(local_cases, COUNT(local_cases));
	(void)cases_run(store_cases, COUNT(store_cases), argc - 1, argv + 1);
	if (strcmp(kind, "shm") == 0)
		(void)cases_run(shm_cases, COUNT(shm_cases), argc - 1, argv + 1);
	if (remote)
		server_end(&server);
	else
		(void)cases_run(local_cases, COUNT(local_cases), argc - 1, argv + 1);
	return 0;
}
