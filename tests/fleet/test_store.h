/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores for tests: one of each kind, with its own server if it needs one, and any number of
 * independent stores in it.
 */
#ifndef WEIR_TESTS_FLEET_TEST_STORE_H
#define WEIR_TESTS_FLEET_TEST_STORE_H

#include <stdbool.h>

#include <weir/store.h>

#include "server.h"

struct test_store {
	const char *kind; /* memory, shm, redis, etcd */
	bool timed;       /* it uses a given clock: in memory */
	bool remote;
	struct server server;
	char address[128];
	unsigned stores; /* opened so far */
};

/* Starts the server; Redis in a durable configuration. */
void test_store_begin(struct test_store *test_store, const char *kind);
void test_store_end(struct test_store *test_store);

/* Open a store with nothing in it; with the given clock where that is possible. */
struct weir_store *test_store_open(struct test_store *test_store, const struct weir_clock *clock);

/*
 * Wrap a store that is known to have forgotten no lease, so that no member waits for old ones to
 * end. Closing it closes store too, and removes file, unless that is "".
 */
struct weir_store *test_store_trusted(struct weir_store *store, const char *file);

#endif
