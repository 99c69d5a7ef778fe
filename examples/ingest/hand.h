/*
 * The records that a processor has in hand: taken from the queue, and not known to be done there.
 * One thread takes them and lets them go; another writes them, and says which are written.
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
	struct record *next; /* of those that are free, or written */
};

struct hand {
	struct record records[HAND_MAX];
	struct record *free;
	size_t free_count;
	pthread_mutex_t lock;
	struct record *written; /* since they were collected last; under the lock */
};

void hand_init(struct hand *hand);

/* A record for that entry; NULL: the hand is full. */
struct record *hand_take(struct hand *hand, const struct entry *entry);
void hand_let_go(struct hand *hand, struct record *record);

/* It is in the database. Any thread. */
void hand_written(struct hand *hand, struct record *record);

/* Those that were written, linked by next; they are not told again. */
struct record *hand_collect(struct hand *hand);

/* The entries in hand of a type, in room for HAND_MAX. How many. */
size_t hand_entries(const struct hand *hand, unsigned type, const struct entry **entries);

#endif
