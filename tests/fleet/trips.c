/*
 * trips redis|etcd: how often a process with a hundred limits asks its store each refresh, counted
 * at a proxy in between: once to keep its session, and once for all limits. Only what has changed
 * is more: a commit of up to 42 limits.
 */

#include <stdio.h>
#include <string.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "proxy.h"
#include "server.h"

#define LIMITS 100

static struct weir_share *shares[LIMITS];

static unsigned asked(struct proxy *proxy, struct weir_fleet *fleet)
{
	const unsigned before = atomic_load(&proxy->questions);

	CHECK(weir_fleet_refresh(fleet) == 0);
	return atomic_load(&proxy->questions) - before;
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
	CHECK(weir_share_want(shares[index], 10) == 0);
}

int main(int argc, char **argv)
{
	struct server server;
	struct proxy proxy;
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	char address[64];
	unsigned tries = 0;

	CHECK(argc == 2);
	server_start(&server, strcmp(argv[1], "etcd") == 0 ? SERVER_ETCD : SERVER_REDIS);
	proxy_start(&proxy, server.port);
	(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", argv[1], proxy.port);
	weir_fleet_config_init(&config);
	config.address = address;
	config.lease = 600 * WEIR_S;
	config.manual = 1;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	for (unsigned i = 0; i < LIMITS; i++)
		join(fleet, i);
	/* A server that listens need not be ready. */
	while (weir_fleet_refresh(fleet) != 0) {
		CHECK(++tries < 100);
		sleep_ms(100);
	}
	for (unsigned i = 0; i < 3; i++)
		CHECK(asked(&proxy, fleet) == 2);
	for (unsigned i = 0; i < 42; i++)
		CHECK(weir_share_want(shares[i], 20) == 0);
	CHECK(asked(&proxy, fleet) <= 4);
	CHECK(asked(&proxy, fleet) == 2);
	weir_fleet_close(fleet);
	proxy_end(&proxy);
	server_end(&server);
	return 0;
}
