/*
 * Where a test is played: a store of each kind that there is, with a server of its own where it
 * needs one, and stores in it that know nothing of each other.
 */
#ifndef WEIR_TESTS_FLEET_PLACE_H
#define WEIR_TESTS_FLEET_PLACE_H

#include <stdbool.h>

#include <weir/store.h>

#include "server.h"

struct place {
	const char *kind; /* memory, shm, redis, etcd */
	bool timed;       /* its clock can be given: in memory */
	bool remote;
	struct server server;
	char address[128];
	unsigned stores; /* opened so far */
};

/* Starts the server; Redis as it keeps what it has acknowledged. */
void place_begin(struct place *place, const char *kind);
void place_end(struct place *place);

/* A store with nothing in it; with a clock where that can be. */
struct weir_store *place_open(struct place *place, const struct weir_clock *clock);

/*
 * A store that is known to have forgotten no lease, so that no member waits for old ones to end. It
 * is closed with that one, and the file of that name ("": there is none) is removed with it.
 */
struct weir_store *place_believe(struct weir_store *store, const char *file);

#endif
