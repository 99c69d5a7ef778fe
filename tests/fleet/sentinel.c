/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fleet over a Redis service with a Sentinel: the master is killed and another one elected, the
 * old one returns as a replica, and an operator changes back.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "server.h"

#define CAPACITY 100
#define TRIES    2400 /* of 50 ms: a busy machine may be late */

struct rig {
	struct server servers[2], sentinel;
	char address[128];
	struct weir_fleet *fleet;
	struct weir_share *share;
};

/* Send a command, and read the beginning of the answer; "" if there is none. */
static void say(const struct server *server, const char *command, char answer[4096])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server->port)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = 0;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	    send(fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command))
		n = recv(fd, answer, 4095, 0);
	answer[n > 0 ? n : 0] = '\0';
	close(fd);
}

/* Wait until the answer to a command contains a text. */
static void until(const struct server *server, const char *command, const char *text)
{
	char answer[4096];
	unsigned tries = 0;

	for (;;) {
		say(server, command, answer);
		if (strstr(answer, text) != NULL)
			return;
		if (++tries == TRIES) {
			fprintf(stderr, "%s: %s\n", command, answer);
			abort();
		}
		sleep_ms(50);
	}
}

static void begin(struct rig *r)
{
	char command[64], answer[4096];

	server_start(&r->servers[0], SERVER_REDIS);
	server_start(&r->servers[1], SERVER_REDIS);
	(void)snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %u\r\n", r->servers[0].port);
	say(&r->servers[1], command, answer);
	until(&r->servers[0], "INFO replication\r\n", "state=online");
	sentinel_start(&r->sentinel, &r->servers[0]);
	until(&r->sentinel, "SENTINEL master weir\r\n", "num-slaves\r\n$1\r\n1");
	/* The first of the two does not exist. */
	(void)snprintf(r->address, sizeof(r->address),
		       "redis-sentinel://127.0.0.1:%u,127.0.0.1:%u/weir/2", free_port(),
		       r->sentinel.port);
}

static void join(struct rig *r)
{
	struct weir_fleet_config config;
	struct weir_share_config limit;
	char why[256];

	weir_fleet_config_init(&config);
	config.address = r->address;
	config.lease = WEIR_S;
	config.learning = WEIR_S;
	if (weir_fleet_open(&config, &r->fleet, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	CHECK(weir_share_join(r->fleet, &limit, &r->share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(r->share, CAPACITY) == 0);
}

static struct weir_share_info info_of(const struct rig *r)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(r->share, &info);
	return info;
}

/* Wait until it has its whole share from a store that it trusts. */
static void wait_for_share(const struct rig *r)
{
	unsigned tries = 0;

	while (info_of(r).state != WEIR_SHARE_LEASED || weir_share_units(r->share) != CAPACITY) {
		if (++tries == TRIES) {
			fprintf(stderr, "%s\n", info_of(r).reason);
			abort();
		}
		sleep_ms(50);
	}
}

/* The members that a server knows: -1 if it is not the master. */
static int members_at(const char *address)
{
	struct weir_store_config config;
	struct weir_fleet_limit limit;
	struct weir_store *store;
	char why[256];
	int error;

	weir_store_config_init(&config);
	config.address = address;
	if (weir_store_open(&config, &store, why, sizeof(why)) != 0)
		return -1;
	weir_fleet_limit_init(&limit);
	error = weir_fleet_inspect(store, "limit", &limit, NULL, NULL);
	weir_store_close(store);
	return error == 0 ? (int)limit.members : 0;
}

/* Wait until the fleet is at that server, which a client of the Sentinel finds too. */
static void is_at(const struct rig *r, unsigned index)
{
	unsigned tries = 0;
	char address[64];

	(void)snprintf(address, sizeof(address), "redis://127.0.0.1:%u/2", r->servers[index].port);
	while (members_at(address) != 1 || members_at(r->address) != 1) {
		CHECK(++tries < TRIES);
		sleep_ms(50);
	}
	wait_for_share(r);
}

/* The one that was stopped comes back as a master, until the Sentinel makes a replica of it. */
static void killed(struct rig *r)
{
	char master[16];

	server_kill(&r->servers[0]);
	(void)snprintf(master, sizeof(master), "\r\n%u\r\n", r->servers[1].port);
	until(&r->sentinel, "SENTINEL get-master-addr-by-name weir\r\n", master);
	is_at(r, 1);
	server_restart(&r->servers[0]);
	until(&r->servers[0], "INFO replication\r\n", "master_link_status:up");
	is_at(r, 1);
}

/* The former master is up, and refuses writes. */
static void changed_back(struct rig *r)
{
	char master[16], old[64];

	(void)snprintf(master, sizeof(master), "\r\n%u\r\n", r->servers[0].port);
	until(&r->sentinel, "SENTINEL failover weir\r\n", "+OK");
	until(&r->sentinel, "SENTINEL get-master-addr-by-name weir\r\n", master);
	until(&r->servers[1], "INFO replication\r\n", "role:slave");
	is_at(r, 0);
	(void)snprintf(old, sizeof(old), "redis://127.0.0.1:%u/2", r->servers[1].port);
	CHECK(members_at(old) == -1);
}

static void refused(const struct rig *r)
{
	struct weir_store_config config;
	struct weir_store *store;
	char address[128], why[256];

	weir_store_config_init(&config);
	config.address = address;
	(void)snprintf(address, sizeof(address), "redis-sentinel://127.0.0.1:%u/other",
		       r->sentinel.port);
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EIO);
	CHECK(strcmp(why, "Sentinel knows no service of that name.") == 0);
	(void)snprintf(address, sizeof(address), "redis-sentinel://127.0.0.1:%u/weir", free_port());
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EIO);
	CHECK(strstr(why, "Sentinel cannot be reached: ") == why);
	(void)snprintf(address, sizeof(address), "redis-sentinel://127.0.0.1:%u/weir",
		       r->servers[0].port);
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EIO);
	CHECK(strstr(why, "Sentinel reports an error: ") == why);
}

int main(void)
{
	static struct rig rig;

	alarm(600);
	begin(&rig);
	refused(&rig);
	join(&rig);
	is_at(&rig, 0);
	killed(&rig);
	changed_back(&rig);
	weir_fleet_close(rig.fleet);
	server_end(&rig.sentinel);
	server_end(&rig.servers[0]);
	server_end(&rig.servers[1]);
	printf("the fleet follows the master\n");
	return 0;
}
