/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
	sqlite3 *db;
	sqlite3_stmt *insert;
	uint64_t records, duplicates;
	uint64_t new_records, new_duplicates; /* not committed */
};

static const char schema[] =
	"PRAGMA journal_mode = WAL;"
	"CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID";

static int complain(const struct table *table)
{
	fprintf(stderr, "weir-ingest-db: %s\n", sqlite3_errmsg(table->db));
	return -1;
}

static int execute(struct table *table, const char *statement)
{
	return sqlite3_exec(table->db, statement, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

struct table *table_open(const char *path)
{
	static const char insert[] = "INSERT OR IGNORE INTO record VALUES (?1, ?2)";
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	if (sqlite3_open(path, &table->db) == SQLITE_OK && execute(table, schema) == 0 &&
	    sqlite3_prepare_v2(table->db, insert, -1, &table->insert, NULL) == SQLITE_OK)
		return table;
	complain(table);
	table_close(table);
	return NULL;
}

void table_close(struct table *table)
{
	sqlite3_finalize(table->insert);
	sqlite3_close(table->db);
	free(table);
}

static int give_up(struct table *table)
{
	complain(table);
	(void)execute(table, "ROLLBACK");
	return -1;
}

int table_begin(struct table *table)
{
	table->new_records = 0;
	table->new_duplicates = 0;
	return execute(table, "BEGIN") == 0 ? 0 : complain(table);
}

int table_put(struct table *table, const struct record_line *line)
{
	const size_t text = line->id_length + 1;
	int result;

	sqlite3_bind_text(table->insert, 1, line->text, (int)line->id_length, SQLITE_STATIC);
	sqlite3_bind_text(table->insert, 2, line->text + text, (int)(line->length - text),
			  SQLITE_STATIC);
	sqlite3_step(table->insert);
	result = sqlite3_reset(table->insert);
	if (result != SQLITE_OK)
		return give_up(table);
	if (sqlite3_changes(table->db) == 1)
		table->new_records++;
	else
		table->new_duplicates++;
	return 0;
}

int table_commit(struct table *table)
{
	if (execute(table, "COMMIT") != 0)
		return give_up(table);
	table->records += table->new_records;
	table->duplicates += table->new_duplicates;
	return 0;
}

uint64_t table_records(const struct table *table)
{
	return table->records;
}

uint64_t table_duplicates(const struct table *table)
{
	return table->duplicates;
}
