/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work: reports over a database of sales that is generated at the start.
 *
 * All connections read one serialised database in memory, so that queries share no lock and no
 * file, and run on all CPUs. A connection serves one query at a time. Idle connections are kept,
 * and if none is idle, another is opened. So the store does not bound the number of concurrent
 * queries; its callers do.
 */
#include "store.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
	sqlite3 *db;
	sqlite3_stmt *report;
	struct session *next;
};

struct store {
	unsigned char *image;
	sqlite3_int64 size;
	pthread_mutex_t lock;
	struct session *idle;
};

static const char schema[] = "CREATE TABLE sale (shop INTEGER, product INTEGER, cents INTEGER)";

/* The multiplier scatters shops, products and prices. */
static const char generate[] =
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1),"
	" r(h) AS (SELECT (i * 2654435761) & 4294967295 FROM n)"
	" INSERT INTO sale SELECT (h >> 7) % ?2, (h >> 13) % 500, h % 9973 FROM r";

/* A report reads only this index, so it needs processor time and little memory bandwidth. */
static const char indexes[] = "CREATE INDEX sale_report ON sale (shop, product, cents)";

static const char report[] = "SELECT product, count(*), sum(cents) FROM sale WHERE shop = ?1"
			     " GROUP BY product ORDER BY sum(cents) DESC LIMIT 10";

static int fill(sqlite3 *db, unsigned rows)
{
	sqlite3_stmt *insert;
	int error;

	error = sqlite3_exec(db, schema, NULL, NULL, NULL);
	if (error)
		return error;
	error = sqlite3_prepare_v2(db, generate, -1, &insert, NULL);
	if (error)
		return error;
	sqlite3_bind_int64(insert, 1, rows);
	sqlite3_bind_int64(insert, 2, STORE_SHOPS);
	sqlite3_step(insert);
	error = sqlite3_finalize(insert);
	if (error)
		return error;
	return sqlite3_exec(db, indexes, NULL, NULL, NULL);
}

struct store *store_create(unsigned rows)
{
	struct store *store = calloc(1, sizeof(*store));
	sqlite3 *db = NULL;

	/* SQLite counts its memory under a lock that all queries would share. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (!store)
		return NULL;
	pthread_mutex_init(&store->lock, NULL);
	if (sqlite3_open(":memory:", &db) == SQLITE_OK && fill(db, rows) == SQLITE_OK)
		store->image = sqlite3_serialize(db, "main", &store->size, 0);
	if (!store->image) {
		fprintf(stderr, "%s: no database: %s\n", program_invocation_short_name,
			sqlite3_errmsg(db));
		store_destroy(store);
		store = NULL;
	}
	sqlite3_close(db);
	return store;
}

static void session_close(struct session *session)
{
	sqlite3_finalize(session->report);
	sqlite3_close(session->db);
	free(session);
}

static struct session *session_open(const struct store *store)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	if (sqlite3_open_v2(":memory:", &session->db, flags, NULL) ||
	    sqlite3_deserialize(session->db, "main", store->image, store->size, store->size,
				SQLITE_DESERIALIZE_READONLY) ||
	    sqlite3_prepare_v3(session->db, report, -1, SQLITE_PREPARE_PERSISTENT, &session->report,
			       NULL)) {
		session_close(session);
		return NULL;
	}
	return session;
}

static struct session *session_take(struct store *store)
{
	struct session *session;

	pthread_mutex_lock(&store->lock);
	session = store->idle;
	if (session)
		store->idle = session->next;
	pthread_mutex_unlock(&store->lock);
	return session ? session : session_open(store);
}

static void session_give_back(struct store *store, struct session *session)
{
	pthread_mutex_lock(&store->lock);
	session->next = store->idle;
	store->idle = session;
	pthread_mutex_unlock(&store->lock);
}

static int print_report(sqlite3_stmt *query, char *text, size_t size)
{
	size_t length = 0;

	while (sqlite3_step(query) == SQLITE_ROW && length < size)
		length += (size_t)snprintf(
			text + length, size - length, "product %3d sold %4d for %8.2f\n",
			sqlite3_column_int(query, 0), sqlite3_column_int(query, 1),
			sqlite3_column_double(query, 2) / 100);
	if (sqlite3_reset(query) != SQLITE_OK || length >= size)
		return -1;
	return (int)length;
}

int store_report(struct store *store, unsigned shop, char *text, size_t size)
{
	struct session *session = session_take(store);
	int length;

	if (!session)
		return -1;
	sqlite3_bind_int64(session->report, 1, shop);
	length = print_report(session->report, text, size);
	session_give_back(store, session);
	return length;
}

void store_destroy(struct store *store)
{
	struct session *session;

	while ((session = store->idle)) {
		store->idle = session->next;
		session_close(session);
	}
	pthread_mutex_destroy(&store->lock);
	sqlite3_free(store->image);
	free(store);
}
