/*
 * The work: reports over a database of sales that is generated at start.
 */
#ifndef HTTPD_STORE_H
#define HTTPD_STORE_H

#include <stddef.h>

#define STORE_SHOPS 5

struct store;

/* A database of so many rows, in memory. NULL after saying why not. */
struct store *store_create(unsigned rows);
void store_destroy(struct store *store);

/*
 * The products of a shop that sell best, as text. Burns some milliseconds of CPU.
 * The length of the text; -1 if the query failed. Any thread.
 */
int store_report(struct store *store, unsigned shop, char *text, size_t size);

#endif
