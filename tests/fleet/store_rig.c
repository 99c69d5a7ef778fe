/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../stress/check.h"
#include "store_rig.h"

static const struct {
	const char *kind, *scheme;
	enum server_kind server;
} servers[] = {
	{"redis", "redis://", SERVER_REDIS},
	{"redis-durable", "redis://", SERVER_REDIS_DURABLE},
	{"redis-guarded", "redis://:se%20cret@", SERVER_REDIS_GUARDED},
	{"etcd", "etcd://", SERVER_ETCD},
	{"etcd-tls", "etcds://", SERVER_ETCD_TLS},
	{"etcd-guarded", "etcd://root:se%20cret@", SERVER_ETCD_GUARDED},
};

static void use_certificates(struct rig *rig)
{
	(void)snprintf(rig->ca, sizeof(rig->ca), "%s/cert.pem", rig->server.folder);
	(void)snprintf(rig->key, sizeof(rig->key), "%s/key.pem", rig->server.folder);
	rig->config.tls_ca = rig->config.tls_cert = rig->ca;
	rig->config.tls_key = rig->key;
}

static void start_server(struct rig *rig, enum server_kind kind, const char *scheme)
{
	server_start(&rig->server, kind);
	proxy_start(&rig->proxy, rig->server.port);
	rig->remote = true;
	rig->durable = kind >= SERVER_ETCD || kind == SERVER_REDIS_DURABLE;
	rig->ttl = kind >= SERVER_ETCD ? 2 * WEIR_S : 150 * WEIR_MS;
	(void)snprintf(rig->address, sizeof(rig->address), "%s127.0.0.1:%u", scheme,
		       rig->proxy.port);
	(void)snprintf(rig->direct, sizeof(rig->direct), "%s127.0.0.1:%u", scheme,
		       rig->server.port);
	if (kind == SERVER_ETCD_TLS)
		use_certificates(rig);
}

void rig_begin(struct rig *rig, const char *kind)
{
	*rig = (struct rig){.kind = kind, .ttl = 100 * WEIR_MS};
	weir_store_config_init(&rig->config);
	rig->config.timeout = PATIENCE;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		if (strcmp(kind, servers[i].kind) == 0)
			start_server(rig, servers[i].server, servers[i].scheme);
	if (strcmp(kind, "shm") == 0) {
		(void)snprintf(rig->direct, sizeof(rig->direct), "shm:/weir-rig-%d", (int)getpid());
		(void)shm_unlink(rig->direct + strlen("shm:"));
	} else if (!rig->remote) {
		CHECK(strcmp(kind, "memory") == 0);
	}
	rig->store = rig_open(rig, rig->direct[0] != '\0' ? rig->direct : NULL);
}

struct weir_store *rig_open(const struct rig *rig, const char *address)
{
	struct weir_store_config config = rig->config;
	struct weir_store *store;
	unsigned tries = 0;
	char why[256];

	config.address = address;
	while (weir_store_open(&config, &store, why, sizeof(why)) != 0) {
		if (++tries == 1000) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		sleep_ms(100);
	}
	return store;
}

void rig_set_mode(struct rig *rig, enum proxy_mode mode)
{
	atomic_store_explicit(&rig->proxy.mode, (int)mode, memory_order_release);
}

void rig_end(struct rig *rig)
{
	weir_store_close(rig->store);
	if (rig->remote) {
		proxy_end(&rig->proxy);
		server_end(&rig->server);
	} else if (rig->direct[0] != '\0') {
		CHECK(shm_unlink(rig->direct + strlen("shm:")) == 0);
	}
}
