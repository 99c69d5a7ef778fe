/*
 * A job processor: takes records from the queue and writes them to the database, at the pace that
 * its share of the database's capacity allows. There may be several; they need not know of each
 * other, and each may die.
 *
 * Two threads. The caller's talks to the queue: it takes records and puts them into the batcher,
 * says that they are being worked on, and acknowledges those that are written. The batcher's talks
 * to the database, whenever the rate has units. So neither waits for what the other waits for.
 *
 * A record is acknowledged when the database has said that it is there, and not before. So none is
 * lost, and some are written twice: of a processor that dies between the two.
 */
#ifndef INGEST_PROCESSOR_H
#define INGEST_PROCESSOR_H

#include "capacity.h"
#include "hand.h"
#include "writer.h"

#include <stdatomic.h>

struct processor_config {
	const char *name;     /* none of the other processors' */
	const char *redis;    /* the queue's HOST:PORT */
	const char *database; /* its URL */
	unsigned idle_ms;     /* so long after nobody has kept it a record is for others */
	struct capacity_config capacity;
};

struct processor {
	struct processor_config config;
	struct capacity capacity;
	struct streams streams;
	struct writer writer;
	struct hand hand;
	struct weir_batch_handler watcher;
	struct record *unacknowledged; /* written, and the queue does not know it yet */
	weir_time kept, claimed_at;
	uint64_t taken, claimed, acknowledged;
	atomic_uint_fast64_t refused, unanswered, left; /* counted by the batcher's thread */
};

/* 0; -1 after saying why not. */
int processor_open(struct processor *processor, const struct processor_config *config);

/* Look after the queue. To be called again and again, for the batcher to have something to do. */
void processor_turn(struct processor *processor);

/* Finish what is being written. What was not begun stays in the queue, for others. */
void processor_close(struct processor *processor);

#endif
