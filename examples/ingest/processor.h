/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job processor: takes records from the queue and writes them to the database, at the pace of its
 * share of the database's capacity. There may be several, which do not need to know of each other,
 * and each may die.
 *
 * There are two threads. The caller's thread talks to the queue: it takes records and puts them
 * into the batcher, keeps them claimed, and acknowledges those that are written. The batcher's
 * thread talks to the database, whenever the rate has units. So neither waits for the other's peer.
 *
 * A record is acknowledged after the database has confirmed it. So none is lost, but some are
 * written twice, if a processor dies between the two.
 */
#ifndef INGEST_PROCESSOR_H
#define INGEST_PROCESSOR_H

#include "capacity.h"
#include "hand.h"
#include "writer.h"

#include <stdatomic.h>

struct processor_config {
	const char *name;     /* unique among the processors */
	const char *redis;    /* HOST:PORT of the queue */
	const char *database; /* the URL of the database */
	unsigned idle_ms;     /* the time without a keep after which others may claim a record */
	struct capacity_config capacity;
};

struct processor {
	struct processor_config config;
	struct capacity capacity;
	struct streams streams;
	struct writer writer;
	struct hand hand;
	struct weir_batch_handler watcher;
	struct record *unacknowledged; /* written, not yet acknowledged */
	weir_time kept, claimed_at;
	uint64_t taken, claimed, acknowledged;
	atomic_uint_fast64_t refused, unanswered, left; /* counted by the batcher's thread */
};

/* 0; -1 on failure, after an error message. */
int processor_open(struct processor *processor, const struct processor_config *config);

/* Take, keep and acknowledge records. Call it repeatedly, so that the batcher has work. */
void processor_turn(struct processor *processor);

/* Finish the writes in progress. Other records stay in the queue, for other processors. */
void processor_close(struct processor *processor);

#endif
