/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records, in SQLite. A record that exists already is counted and stays as it is, so a client
 * may safely write a record again.
 */
#ifndef INGEST_TABLE_H
#define INGEST_TABLE_H

#include "record.h"

#include <stdint.h>

struct table;

/* NULL on failure, after an error message. */
struct table *table_open(const char *path);
void table_close(struct table *table);

/* A transaction of puts. 0; -1 after an error message: nothing was written since table_begin(). */
int table_begin(struct table *table);
int table_commit(struct table *table);
int table_put(struct table *table, const struct record_line *line);

uint64_t table_records(const struct table *table);
uint64_t table_duplicates(const struct table *table);

#endif
