/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This processor's part of the database's capacity: a leased share is the pace of a rate, and the
 * rate releases records from a batcher.
 */
#ifndef INGEST_CAPACITY_H
#define INGEST_CAPACITY_H

#include <weir/share_of_rate.h>

struct capacity_config {
	const char *fleet; /* address of the store of the leases */
	const char *limit; /* the name of the limit there */
	uint64_t units;    /* per second, of all processors */
	uint64_t reserved; /* part of these for each processor, without the store */
	uint32_t members;  /* the maximum number of processors */
	weir_dur lease;
	uint32_t operations; /* the maximum in the batcher */
};

struct capacity {
	struct weir_rate *rate;
	struct weir_batcher *batcher;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_share_rate link;
};

/* 0; -1 on failure, after an error message. */
int capacity_open(struct capacity *capacity, const struct capacity_config *config);

/* The batcher must be empty, because capacity given to others must not be used here. */
void capacity_close(struct capacity *capacity);

/* The database has refused a record: lower the limit of all processors. */
void capacity_throttled(struct capacity *capacity, weir_dur retry_after);

#endif
