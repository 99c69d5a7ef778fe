/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store of one kind, and its server behind a proxy if it has one. Kinds: memory, shm, redis,
 * redis-durable, redis-guarded, etcd, etcd-tls, etcd-guarded.
 */
#ifndef WEIR_TESTS_FLEET_STORE_RIG_H
#define WEIR_TESTS_FLEET_STORE_RIG_H

#include <stdbool.h>

#include <weir/store.h>

#include "proxy.h"
#include "server.h"

#define PATIENCE (60 * WEIR_S) /* where an answer is certain to come */

struct rig {
	const char *kind;
	bool remote;  /* it has a server */
	bool durable; /* its rows survive that server */
	weir_dur ttl; /* the shortest that this store allows */
	struct server server;
	struct proxy proxy;
	char direct[160];  /* the store's address; empty: in memory */
	char address[160]; /* through the proxy; empty: no server */
	char ca[128], key[128];
	struct weir_store_config config;
	struct weir_store *store; /* not through the proxy */
};

/* Start the server, if the kind has one, and open the store. Exits with 77 if it is not installed. */
void rig_begin(struct rig *rig, const char *kind);

/* Another handle. A server that listens need not be ready: this waits. NULL: a store in memory. */
struct weir_store *rig_open(const struct rig *rig, const char *address);

void rig_set_mode(struct rig *rig, enum proxy_mode mode);

/* Close rig->store, and end the server. */
void rig_end(struct rig *rig);

#endif
