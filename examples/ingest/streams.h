/*
 * The durable queue: a Redis stream for each type of record, read by the consumer group "writers".
 * What a consumer was given stays in the queue until it is acknowledged. It is given to another
 * once nobody has said for some time that it is being worked on: streams_keep().
 *
 * A connection that fails is closed, and opened again by the next call. Whether what it was asked
 * last has happened is not known then, and need not be: what was added twice is a duplicate, what
 * was read and never arrived is not kept, and is claimed by somebody.
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

/* Called with each entry. It is copied if it is wanted. */
typedef void streams_take_fn(void *arg, const struct entry *entry);

/* address: HOST:PORT. Nothing is connected yet. consumer: NULL to add only. -1: no such address. */
int streams_open(struct streams *streams, const char *address, const char *consumer);
void streams_close(struct streams *streams);

/* All of them are in the queue: 0. -1: some may be. */
int streams_add(struct streams *streams, const char *lines);

/*
 * Entries that nobody was given, so many of each type at most; and such as were given to somebody
 * who has not kept them for idle_ms. 0; -1: no connection.
 */
int streams_read(struct streams *streams, unsigned count, streams_take_fn *take, void *arg);
int streams_claim(struct streams *streams, unsigned idle_ms, unsigned count, streams_take_fn *take,
		  void *arg);

/* These are being worked on, all of one type. 0; -1. */
int streams_keep(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count);

/* They are done, and leave the queue. 0; -1: it is not known. */
int streams_done(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count);

#endif
