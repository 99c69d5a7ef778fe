/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The durable queue: a Redis stream for each type of record, read by the consumer group "writers".
 * A record that was delivered to a consumer stays in the queue until it is acknowledged. If the
 * consumer has not kept it (streams_keep()) for some time, the record is delivered to another one.
 *
 * A connection that fails is closed, and the next call opens it again. It is not known then whether
 * the last command was executed, and it need not be: a record added twice is a duplicate, and a
 * record that was delivered but never arrived is not kept, so another consumer claims it.
 *
 * For one thread.
 */
#ifndef INGEST_STREAMS_H
#define INGEST_STREAMS_H

#include "record.h"

enum { ENTRY_ID_MAX = 48 };

/* An entry of a stream, with a record in it. */
struct entry {
	unsigned type; /* of record_types */
	char id[ENTRY_ID_MAX];
	char line[RECORD_MAX];
};

struct streams {
	char host[64];
	unsigned port;
	const char *consumer;
	struct redisContext *redis; /* NULL: not connected */
};

/* Called with each entry, which is valid during the call only. */
typedef void streams_take_fn(void *arg, const struct entry *entry);

/* address: HOST:PORT. Connects at the first use. consumer: NULL to add only. -1: bad address. */
int streams_open(struct streams *streams, const char *address, const char *consumer);
void streams_close(struct streams *streams);

/* 0: all of them are in the queue. -1: some may be. */
int streams_add(struct streams *streams, const char *lines);

/*
 * New entries, up to a number of each type; and entries of consumers that have not kept them for
 * idle_ms. 0; -1: no connection.
 */
int streams_read(struct streams *streams, unsigned count, streams_take_fn *take, void *arg);
int streams_claim(struct streams *streams, unsigned idle_ms, unsigned count, streams_take_fn *take,
		  void *arg);

/* Keep entries of one type, which are being processed. 0; -1. */
int streams_keep(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count);

/* Acknowledge and delete entries. 0; -1: the result is unknown. */
int streams_done(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count);

#endif
