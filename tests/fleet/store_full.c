/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_full KIND: a server that has no room for writes, and goes on answering. Members keep what
 * they hold, report it, and go on when there is room again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "test_store.h"

#define QUOTA "2097152" /* bytes; etcd's quota */
#define SOME  100000

static struct server server;
static char address[64];

static struct weir_store *open_store(weir_dur compact)
{
	struct weir_store_config config;
	struct weir_store *store;
	unsigned tries = 0;

	weir_store_config_init(&config);
	config.address = address;
	config.timeout = 20 * WEIR_S;
	config.compact = compact;
	/* A server that listens need not be ready. */
	while (weir_store_open(&config, &store, NULL, 0) != 0) {
		CHECK(++tries < 200);
		sleep_ms(100);
	}
	return store;
}

static uint64_t write_some(struct weir_store *store, size_t size, int *r)
{
	static char some[SOME];
	const struct weir_store_write write = {"some/row", WEIR_STORE_WRITE_PUT, some, size};
	uint64_t version;

	memset(some, 'x', sizeof(some));
	*r = weir_store_commit(store, 0, NULL, 0, &write, 1, &version);
	return version;
}

static bool skip_row(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	(void)row;
	return true;
}

static uint64_t version_of(struct weir_store *store)
{
	const char *prefix = "some/";
	struct weir_store_view view;

	CHECK(weir_store_read(store, &prefix, 1, skip_row, NULL, &view) == 0);
	return view.version;
}

/* The current revision of etcd. */
static uint64_t revision(void)
{
	char answer[ANSWER_ROOM];
	const char *at;

	CHECK(server_post(&server, "/v3/kv/range", "{\"key\":\"YQ==\"}", answer));
	at = strstr(answer, "\"revision\":\"");
	CHECK(at != NULL);
	return strtoull(at + strlen("\"revision\":\""), NULL, 10);
}

/* Whether etcd still has that revision, of any row. */
static bool is_kept(uint64_t revision)
{
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"key\":\"YQ==\",\"revision\":\"%llu\"}",
		       (unsigned long long)revision);
	return server_post(&server, "/v3/kv/range", body, NULL);
}

/*
 * Two handles that are configured for it compact together; without any such handle, nothing is
 * compacted.
 */
static void compacted(void)
{
	struct weir_store *plain = open_store(0), *two[] = {open_store(WEIR_S), open_store(WEIR_S)};
	unsigned tries = 0;
	uint64_t first;
	int r;

	(void)write_some(plain, 1, &r);
	first = revision();
	CHECK(r == 0 && is_kept(first));
	while (is_kept(first)) {
		CHECK(++tries < 1000);
		for (unsigned i = 0; i < 2; i++) {
			(void)write_some(two[i], 1, &r);
			CHECK(r == 0 && revision() > first);
			(void)version_of(two[i]);
		}
		sleep_ms(50);
	}
	/* At least the last write can still be read. */
	(void)write_some(two[0], 1, &r);
	CHECK(r == 0 && is_kept(revision()));
	for (unsigned i = 0; i < 2; i++)
		weir_store_close(two[i]);
	first = revision();
	sleep_ms(2500);
	CHECK(version_of(plain) > 0 && revision() == first && is_kept(first));
	weir_store_close(plain);
}

static void bad_input(void)
{
	static const weir_dur bad[] = {1, WEIR_S - 1, UINT64_C(86401) * WEIR_S};
	struct weir_store_config config;
	struct weir_store *store;
	char why[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		weir_store_config_init(&config);
		config.address = address;
		config.compact = bad[i];
		CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EINVAL);
		CHECK(store == NULL && strstr(why, "compact must be") == why);
	}
}

struct member {
	struct weir_store *store;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_share *second; /* of another limit, which is the same */
};

static void want(const struct member *m, uint64_t units)
{
	CHECK(weir_share_demand_set(m->share, units) == 0);
	CHECK(weir_share_demand_set(m->second, units) == 0);
}

static bool has(const struct member *m, uint64_t units)
{
	return weir_share_units(m->share) == units && weir_share_units(m->second) == units;
}

/* They refresh on demand, and their leases outlast the test. */
static struct member join(uint32_t allocated)
{
	struct weir_fleet_config config;
	struct weir_share_config limit;
	struct member m = {.store = test_store_trusted(open_store(0), "")};

	weir_fleet_config_init(&config);
	config.store = m.store;
	config.lease = config.learning = 600 * WEIR_S;
	config.refresh = 10 * WEIR_MS; /* an allocator divides as often as it is refreshed */
	config.manual = 1;
	CHECK(weir_fleet_open(&config, &m.fleet, NULL, 0) == 0);
	weir_share_config_init(&limit);
	limit.name = allocated != 0 ? "allocated" : "limit";
	limit.capacity = 100;
	limit.allocated = allocated;
	CHECK(weir_share_join(m.fleet, &limit, &m.share, NULL, 0) == 0);
	limit.name = allocated != 0 ? "allocated-2" : "limit-2";
	CHECK(weir_share_join(m.fleet, &limit, &m.second, NULL, 0) == 0);
	want(&m, 100);
	return m;
}

static void leave(struct member *m)
{
	weir_fleet_close(m->fleet);
	weir_store_close(m->store);
}

static enum weir_share_state state_of(const struct member *m, char reason[256])
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(m->share, &info);
	memcpy(reason, info.reason, 256);
	return info.state;
}

static void fill(struct weir_store *store)
{
	int r = 0;

	if (server.kind == SERVER_ETCD) {
		for (unsigned i = 0; i < 1000 && r == 0; i++)
			(void)write_some(store, SOME, &r);
		CHECK(r == -ENOSPC);
	} else {
		CHECK(server_tell(&server, "CONFIG SET maxmemory 1\r\n"));
	}
}

/* As an operator would do it. */
static void make_room(void)
{
	char body[128], answer[ANSWER_ROOM];
	const char *at;

	if (server.kind != SERVER_ETCD) {
		CHECK(server_tell(&server, "CONFIG SET maxmemory 0\r\n"));
		return;
	}
	(void)snprintf(body, sizeof(body), "{\"revision\":\"%llu\",\"physical\":true}",
		       (unsigned long long)revision());
	CHECK(server_post(&server, "/v3/kv/compaction", body, NULL));
	CHECK(server_post(&server, "/v3/maintenance/defragment", "{}", NULL));
	/* The alarm belongs to one member. */
	CHECK(server_post(&server, "/v3/maintenance/status", "{}", answer));
	at = strstr(answer, "\"member_id\":\"");
	CHECK(at != NULL);
	(void)snprintf(body, sizeof(body),
		       "{\"action\":\"DEACTIVATE\",\"alarm\":\"NOSPACE\",\"memberID\":\"%llu\"}",
		       strtoull(at + strlen("\"member_id\":\""), NULL, 10));
	CHECK(server_post(&server, "/v3/maintenance/alarm", body, NULL));
}

/* Refresh both until they have that many units. */
static void settle(struct member *m, uint64_t first, uint64_t second)
{
	unsigned tries = 0;

	do {
		CHECK(++tries < 100);
		CHECK(weir_fleet_refresh(m[tries % 2].fleet) == 0);
	} while (!has(&m[0], first) || !has(&m[1], second));
}

static void full(uint32_t allocated)
{
	struct weir_store *store = open_store(0), *another;
	struct member m[2] = {join(allocated), join(allocated)}, late;
	struct weir_store_caps caps;
	char reason[256];

	settle(m, 50, 50);
	fill(store);
	for (unsigned i = 0; i < 10; i++) {
		want(&m[i % 2], (uint64_t)10 * i);
		CHECK(weir_fleet_refresh(m[i % 2].fleet) == -ENOSPC);
		CHECK(has(&m[0], 50) && has(&m[1], 50));
		CHECK(state_of(&m[i % 2], reason) == WEIR_SHARE_FROZEN && reason[0] != '\0');
	}
	another = open_store(0);
	weir_store_caps_take(another, &caps);
	CHECK(strstr(caps.note, "refuses writes") != NULL || strstr(caps.note, "may refuse"));
	weir_store_close(another);
	late = join(allocated);
	CHECK(weir_fleet_refresh(late.fleet) == -ENOSPC);
	CHECK(state_of(&late, reason) == WEIR_SHARE_LOCAL && reason[0] != '\0');
	make_room();
	want(&m[0], 10);
	want(&m[1], 100);
	settle(m, 10, 90);
	CHECK(state_of(&m[0], reason) == WEIR_SHARE_LEASED && reason[0] == '\0');
	CHECK(weir_fleet_refresh(late.fleet) == 0);
	leave(&late);
	for (unsigned i = 0; i < 2; i++)
		leave(&m[i]);
	weir_store_close(store);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 2 ? argv[1] : "etcd";
	const bool etcd = strcmp(kind, "etcd") == 0;

	CHECK(setenv("ETCD_QUOTA_BACKEND_BYTES", QUOTA, 1) == 0);
	server_start(&server, etcd ? SERVER_ETCD : SERVER_REDIS_DURABLE);
	(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", kind, server.port);
	bad_input();
	if (etcd)
		compacted();
	full(0);
	full(1);
	server_end(&server);
	printf("a full store loses nothing, %s\n", kind);
	return 0;
}
