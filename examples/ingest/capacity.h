/*
 * This processor's part of what the database allows: a leased share of it is the pace of a rate,
 * and the rate releases what is in a batcher.
 */
#ifndef INGEST_CAPACITY_H
#define INGEST_CAPACITY_H

#include <weir/share_of_rate.h>

struct capacity_config {
	const char *fleet; /* address of the store with the leases */
	const char *limit; /* its name there */
	uint64_t units;    /* a second, of all processors */
	uint64_t reserved; /* of these, for each, whatever becomes of the store */
	uint32_t members;  /* processors there are at most */
	weir_dur lease;
	uint32_t operations; /* in the batcher at most */
};

struct capacity {
	struct weir_rate *rate;
	struct weir_batcher *batcher;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_share_rate link;
};

/* 0; -1 after saying why not. */
int capacity_open(struct capacity *capacity, const struct capacity_config *config);

/* Nothing may be in the batcher: what others get from now on must not be used here. */
void capacity_close(struct capacity *capacity);

/* The database has refused something: less, for all processors. */
void capacity_throttled(struct capacity *capacity, weir_dur retry_after);

#endif
