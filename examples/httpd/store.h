/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work: reports over a database of sales that is generated at the start.
 */
#ifndef HTTPD_STORE_H
#define HTTPD_STORE_H

#include <stddef.h>

#define STORE_SHOPS 5

struct store;

/* A database with that many rows, in memory. NULL on failure, after an error message. */
struct store *store_create(unsigned rows);
void store_destroy(struct store *store);

/*
 * The best-selling products of a shop, as text. Takes some milliseconds of CPU time. Returns the
 * length of the text, or -1 if the query failed. Any thread may call it.
 */
int store_report(struct store *store, unsigned shop, char *text, size_t size);

#endif
