/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records in hand: taken from the queue, and not yet acknowledged there. One thread takes and
 * removes records; another writes them to the database and marks them as written.
 */
#ifndef INGEST_HAND_H
#define INGEST_HAND_H

#include "streams.h"

#include <weir/batcher.h>

#include <pthread.h>
#include <stdbool.h>

enum { HAND_MAX = 4096 };

struct record {
	struct weir_operation operation; /* first: an operation is its record */
	struct entry entry;
	bool in_hand;
	struct record *next; /* in the list of free or written records */
};

struct hand {
	struct record records[HAND_MAX];
	struct record *free;
	size_t free_count;
	pthread_mutex_t lock;
	struct record *written; /* since the last collection; protected by the lock */
};

void hand_init(struct hand *hand);

/* A record for that entry; NULL: the hand is full. */
struct record *hand_take(struct hand *hand, const struct entry *entry);
void hand_let_go(struct hand *hand, struct record *record);

/* Mark it as written. Any thread may call it. */
void hand_written(struct hand *hand, struct record *record);

/* The records written since the last call, linked by next. */
struct record *hand_collect(struct hand *hand);

/* Write the entries in hand of a type to room for HAND_MAX. Returns their number. */
size_t hand_entries(const struct hand *hand, unsigned type, const struct entry **entries);

#endif
