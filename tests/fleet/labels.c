/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels of members, for observers: which are invalid, what the default is, and where they are
 * shown.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/work.h>

#include "fleet/protocol/ledger.h"
#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUNDS  (3 * REFRESH) /* each has refreshed twice */

#define LONGEST "longest-_.:@ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmno"

_Static_assert(sizeof(LONGEST) == LABEL_ROOM, "it is the longest");

static struct world w;

static struct weir_fleet_config manual(const char *label)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.store = w.store;
	config.lease = LEASE;
	config.refresh = REFRESH;
	config.manual = 1;
	config.clock = &w.clock;
	config.seed = draw(&w.chance);
	config.label = label;
	return config;
}

static void bad_input(void)
{
	static const char *const bad[] = {
		"", "a b", "a/b", "a\n", "a\tb", "a\\", "\x1b[2J", "\xc3\xa4", LONGEST "p",
	};

	world_begin(&w, 100, LEASE, REFRESH);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct weir_fleet_config config = manual(bad[i]);
		struct weir_fleet *fleet;
		char why[256] = "";

		CHECK(weir_fleet_open(&config, &fleet, why, sizeof(why)) == -EINVAL);
		CHECK(fleet == NULL && strstr(why, "label is not 1 to 63 letters") == why);
	}
	world_end(&w);
}

/* Labels of members, each with a space after it, drained ones with a mark; and the last one. */
struct seen {
	char labels[500];
	uint64_t id;
};

static bool add_member(void *arg, const struct weir_fleet_member *member)
{
	struct seen *s = arg;

	strcat(s->labels, member->label);
	strcat(s->labels, member->drained == 0 ? " " : "! ");
	s->id = member->id;
	return true;
}

static struct seen see(const char *name)
{
	struct weir_fleet_limit limit;
	struct seen s = {.id = 0};

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, name, &limit, add_member, &s) == 0);
	return s;
}

static bool is_seen(const char *labels)
{
	return strcmp(see("limit").labels, labels) == 0;
}

/* It is copied, may have any length allowed, and is the same for all shares. */
static void copied(void)
{
	struct weir_share_config other;
	struct weir_share *share;
	char label[] = LONGEST;

	world_begin(&w, 100, LEASE, REFRESH);
	w.actors[0].label = label;
	world_enter(&w, 0, 100);
	memset(label, 'x', sizeof(label) - 1);
	weir_share_config_init(&other);
	other.name = "other";
	other.capacity = 5;
	CHECK(weir_share_join(w.actors[0].fleet, &other, &share, NULL, 0) == 0);
	world_run(&w, ROUNDS);
	world_want(&w, 0, 50);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 && is_seen(LONGEST " "));
	CHECK(strcmp(see("other").labels, LONGEST " ") == 0);
	world_end(&w);
}

static void by_default(void)
{
	struct weir_fleet_config config;
	struct weir_share_config limit;
	struct weir_fleet *fleet;
	struct weir_share *share;
	char host[256] = "", label[LABEL_ROOM + 1];

	world_begin(&w, 100, LEASE, REFRESH);
	config = manual(NULL);
	limit = w.limit;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	CHECK(weir_share_join(fleet, &limit, &share, NULL, 0) == 0);
	CHECK(weir_fleet_refresh(fleet) == 0);
	CHECK(gethostname(host, sizeof(host) - 1) == 0);
	label_of_process(host, (long)getpid(), label);
	strcat(label, " ");
	CHECK(is_seen(label));
	weir_fleet_close(fleet);
	world_end(&w);
}

static bool is_called(const char *host, long pid, const char *expected)
{
	char label[LABEL_ROOM];

	label_of_process(host, pid, label);
	return is_word(label, WEIR_FLEET_LABEL_MAX) && strcmp(label, expected) == 0;
}

/* Whatever the name of a host, and however long: processes on it have different labels. */
static void of_hosts(void)
{
	CHECK(is_called("db-1.example", 4711, "db-1.example:4711"));
	CHECK(is_called("", 1, ":1"));
	CHECK(is_called("a b/c\n\xc3\xa4", 2, "a-b-c---:2"));
	CHECK(is_called(LONGEST, 4194304,
			"longest-_.:@ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg"
			":4194304"));
}

/* A drained member that is not present has no label; when it is back, it has its label again. */
static void drained(void)
{
	uint64_t id;

	world_begin(&w, 100, LEASE, REFRESH);
	w.actors[0].label = "blue";
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(is_seen("blue "));
	id = see("limit").id;
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	world_run(&w, ROUNDS);
	CHECK(is_seen("blue! "));
	w.actors[0].manner = UNREACHABLE;
	world_run(&w, 2 * LEASE);
	CHECK(is_seen("! "));
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(is_seen("blue! ") && see("limit").id != id);
	world_end(&w);
}

static void write_row(const char *key, const char *value, size_t size)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, value, size};

	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
}

/* What follows the numbers, or the version, in the row of a member, or of a worker. */
static const char *const ends[] = {
	"",      "\n",     " \n",    " a",          " a b\n",
	"  a\n", " a\n\n", " a/b\n", " \xc3\xa4\n", " " LONGEST "p\n",
};

/* Rows without a valid label are refused; so are those with a zero byte in it. */
static void damaged(void)
{
	struct weir_fleet_limit limit;
	char row[200];

	world_begin(&w, 100, LEASE, REFRESH);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	weir_fleet_limit_init(&limit);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const int size = snprintf(row, sizeof(row), "weir-member 1 1 1 0%s", ends[i]);

		write_row("limit/m/1", row, (size_t)size);
		CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO &&
		      world_units(&w, 0) == 100);
	}
	write_row("limit/m/1", "weir-member 1 1 1 0 a\0b\n", 24);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
	write_row("limit/m/1", "weir-member 1 1 1 0 " LONGEST "\n", 20 + WEIR_FLEET_LABEL_MAX + 1);
	CHECK(is_seen(LONGEST " member "));
	world_end(&w);
}

static void go_on(void *arg, uint32_t partition, uint64_t fence)
{
	(void)arg;
	(void)partition;
	(void)fence;
}

/* Two partitions, which no member releases when asked. */
static struct weir_work *open_partitions(unsigned member)
{
	struct weir_work_config config;
	struct weir_work *work;

	weir_work_config_init(&config);
	config.name = "work";
	config.count = 2;
	config.handover = 100 * LEASE;
	config.on_request = go_on;
	CHECK(weir_work_open(w.actors[member].fleet, &config, &work, NULL, 0) == 0);
	return work;
}

static bool add_partition(void *arg, const struct weir_work_partition *partition)
{
	char text[2 * LABEL_ROOM];

	(void)snprintf(text, sizeof(text), "%s<%s ", partition->owner_label,
		       partition->requester_label);
	strcat(arg, text);
	return true;
}

static bool work_kind_is(const char *expected)
{
	char labels[500] = "";

	CHECK(weir_work_inspect(w.store, "work", NULL, add_partition, labels) == 0);
	return strcmp(labels, expected) == 0;
}

/* Owners and members that ask, by the labels of their fleets. */
static void of_partitions(void)
{
	static const char *const weights[] = {" 1048576", " 1",   " 0",      " ",
					      " x",       " 2 2", " 1048577"};
	char row[200];
	struct weir_work *work;

	world_begin(&w, 100, LEASE, REFRESH);
	w.actors[0].label = "red";
	world_enter(&w, 0, 0);
	work = open_partitions(0);
	world_run(&w, ROUNDS);
	CHECK(weir_work_owned(work) == 2 && work_kind_is("red< red< "));
	w.actors[1].label = "blue";
	world_enter(&w, 1, 0);
	(void)open_partitions(1);
	world_run(&w, ROUNDS);
	CHECK(work_kind_is("red<blue red< ") || work_kind_is("red< red<blue "));
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const int size = snprintf(row, sizeof(row), "weir-worker 1%s", ends[i]);

		write_row("work/worker/1", row, (size_t)size);
		CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) == -EPROTO);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
		CHECK(weir_work_owned(work) == 2);
	}
	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		const int size = snprintf(row, sizeof(row), "weir-worker 1 a%s\n", weights[i]);

		write_row("work/worker/1", row, (size_t)size);
		CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) ==
		      (i == 0 ? 0 : -EPROTO));
	}
	write_row("work/worker/1", "weir-worker 1 a\n", 16);
	write_row("work/worker/x", "weir-worker 1 a\n", 16);
	CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) == -EPROTO);
	world_end(&w);
}

static void of_nobody(void)
{
	world_begin(&w, 100, LEASE, REFRESH);
	write_row("work/partition/0", "0000000000000001\n", 17);
	write_row("work/request/0", "0000000000000002\n", 17);
	write_row("work.checkpoints/1", "weir-checkpoint 1 7\n", 20);
	CHECK(work_kind_is("< < "));
	write_row("work/worker/2", "weir-worker 1 blue\n", 19);
	CHECK(work_kind_is("<blue < "));
	world_end(&w);
}

static struct weir_region *carry(struct weir_store *store, const char *label)
{
	const struct weir_fleet_config above = manual(label);
	struct weir_fleet_config below;
	struct weir_region_config config;
	struct weir_region *region;

	weir_fleet_config_init(&below);
	below.store = store;
	weir_region_config_init(&config);
	config.above = &above;
	config.below = &below;
	config.limit = &w.limit;
	CHECK(weir_region_open(&config, &region, NULL, 0) == 0);
	return region;
}

static void refresh(struct weir_region *region)
{
	for (unsigned i = 0; i < 4; i++) {
		w.now += WEIR_S;
		CHECK(weir_fleet_refresh(weir_region_fleet(region)) == 0);
	}
}

/* A region has the label of its leader. */
static void of_regions(void)
{
	struct weir_store_config config;
	struct weir_fleet_limit limit;
	struct weir_store *below;
	struct weir_region *region;
	uint64_t id;

	world_begin(&w, 100, LEASE, REFRESH);
	weir_store_config_init(&config);
	config.clock = &w.clock;
	CHECK(weir_store_open(&config, &below, NULL, 0) == 0);
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_configure(below, "limit", &limit, NULL, 0) == 0);
	region = carry(below, "red");
	refresh(region);
	CHECK(is_seen("red "));
	id = see("limit").id;
	weir_region_close(region);
	region = carry(below, "blue");
	refresh(region);
	CHECK(is_seen("blue ") && see("limit").id == id);
	weir_region_close(region);
	weir_store_close(below);
	world_end(&w);
}

int main(void)
{
	bad_input();
	copied();
	by_default();
	of_hosts();
	drained();
	damaged();
	of_partitions();
	of_nobody();
	of_regions();
	printf("members have the labels expected\n");
	return 0;
}
