/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * round_trips redis|etcd: how often a process with a hundred limits, or with partitions, waits for
 * its store in each refresh, as seen by a proxy: once. Everything that renews its session and reads
 * its rows is sent before anything is answered: in one packet to Redis, two to etcd. Only changes
 * cost more: a commit of up to 42 limits. A new process connects and joins with some more, and has a
 * share after its first refresh.
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/work.h>

#include "../stress/check.h"
#include "proxy.h"
#include "server.h"

#define LIMITS 100

static struct weir_share *shares[LIMITS];

static unsigned asked(struct proxy *proxy, struct weir_fleet *fleet)
{
	const unsigned before = atomic_load(&proxy->requests);

	CHECK(weir_fleet_refresh(fleet) == 0);
	return atomic_load(&proxy->requests) - before;
}

static void *refresh(void *fleet)
{
	CHECK(weir_fleet_refresh(fleet) == 0);
	return NULL;
}

static void check_trip(struct proxy *proxy, struct weir_fleet *fleet, unsigned packets)
{
	const unsigned before = atomic_load(&proxy->requests);
	unsigned tries = 0;
	pthread_t thread;

	atomic_store(&proxy->mode, PROXY_HOLD);
	CHECK(pthread_create(&thread, NULL, refresh, fleet) == 0);
	while (atomic_load(&proxy->requests) - before < packets) {
		CHECK(++tries < 100000);
		sleep_ms(1);
	}
	atomic_store(&proxy->mode, PROXY_PASS);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(atomic_load(&proxy->requests) - before == packets);
}

static void join(struct weir_fleet *fleet, unsigned index)
{
	struct weir_share_config config;
	char name[16];

	(void)snprintf(name, sizeof(name), "limit-%u", index);
	weir_share_config_init(&config);
	config.name = name;
	config.capacity = 1000;
	CHECK(weir_share_join(fleet, &config, &shares[index], NULL, 0) == 0);
	CHECK(weir_share_demand_set(shares[index], 10) == 0);
}

static void open_at(const char *address, weir_dur lease, struct weir_fleet **fleet)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.address = address;
	config.lease = config.learning = lease;
	config.manual = 1;
	CHECK(weir_fleet_open(&config, fleet, NULL, 0) == 0);
}

/* A server that listens need not be ready. */
static void settle(struct weir_fleet *fleet)
{
	unsigned tries = 0;

	while (weir_fleet_refresh(fleet) != 0) {
		CHECK(++tries < 1000);
		sleep_ms(100);
	}
}

static void with_limits(struct proxy *proxy, const char *address, unsigned packets)
{
	struct weir_fleet *fleet;

	open_at(address, 600 * WEIR_S, &fleet);
	for (unsigned i = 0; i < LIMITS; i++)
		join(fleet, i);
	settle(fleet);
	for (unsigned i = 0; i < 3; i++)
		check_trip(proxy, fleet, packets);
	for (unsigned i = 0; i < 42; i++)
		CHECK(weir_share_demand_set(shares[i], 20) == 0);
	CHECK(asked(proxy, fleet) <= packets + 2);
	check_trip(proxy, fleet, packets);
	weir_fleet_close(fleet);
}

static void with_parts(struct proxy *proxy, const char *address, unsigned packets)
{
	struct weir_work_config config;
	struct weir_work *parts;
	struct weir_fleet *fleet;

	/* The store is new: a lease must pass before partitions are claimed. */
	open_at(address, 4 * WEIR_S, &fleet);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = 8;
	CHECK(weir_work_open(fleet, &config, &parts, NULL, 0) == 0);
	while (weir_work_owned(parts) < 8)
		settle(fleet);
	check_trip(proxy, fleet, packets);
	weir_fleet_close(fleet);
}

static struct weir_share *join_measured(struct weir_fleet *fleet)
{
	struct weir_share_config config;
	struct weir_share *share;

	weir_share_config_init(&config);
	config.name = "measured";
	config.capacity = 1000;
	CHECK(weir_share_join(fleet, &config, &share, NULL, 0) == 0);
	return share;
}

/*
 * A new process has a share after its first refresh. It finds out about the store, begins a session,
 * reads, writes its row, reads, and writes the ledger: 8 requests to etcd, 16 to Redis.
 */
static void first_answer(struct proxy *proxy, const char *address, unsigned most)
{
	struct weir_fleet *before, *fleet;
	struct weir_share *share;
	unsigned packets;

	/* The store must have been used for the length of a lease. */
	open_at(address, 4 * WEIR_S, &before);
	share = join_measured(before);
	while (weir_share_units(share) == 0)
		settle(before);
	packets = atomic_load(&proxy->requests);
	open_at(address, 4 * WEIR_S, &fleet);
	share = join_measured(fleet);
	CHECK(weir_fleet_refresh(fleet) == 0);
	packets = atomic_load(&proxy->requests) - packets;
	CHECK(weir_share_units(share) > 0 && packets <= most);
	weir_fleet_close(fleet);
	weir_fleet_close(before);
}

int main(int argc, char **argv)
{
	struct server server;
	struct proxy proxy;
	unsigned packets;
	char address[64];

	CHECK(argc == 2);
	packets = strcmp(argv[1], "etcd") == 0 ? 2 : 1;
	server_start(&server, packets == 2 ? SERVER_ETCD : SERVER_REDIS_DURABLE);
	proxy_start(&proxy, server.port);
	(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", argv[1], proxy.port);
	with_limits(&proxy, address, packets);
	with_parts(&proxy, address, packets);
	first_answer(&proxy, address, packets == 2 ? 10 : 16);
	proxy_end(&proxy);
	server_end(&server);
	return 0;
}
