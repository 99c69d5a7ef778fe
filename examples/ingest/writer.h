/*
 * What goes to the database, a request at a time. For one thread at a time.
 */
#ifndef INGEST_WRITER_H
#define INGEST_WRITER_H

#include "record.h"

#include <curl/curl.h>
#include <stdbool.h>

enum { WRITER_RECORDS_MAX = 100 }; /* of a request */

struct writer {
	CURL *easy;
	char body[WRITER_RECORDS_MAX * RECORD_MAX];
	size_t size;
	unsigned count;
	char answer[64];
	size_t answered;
};

struct writer_answer {
	unsigned committed;   /* so many, the first ones, are in the database */
	bool throttled;       /* the others are too much for now */
	unsigned retry_after; /* seconds */
};

/* url: of the database, without a path; name: whose records these are. 0; -1 after saying why not. */
int writer_open(struct writer *writer, const char *url, const char *name);
void writer_close(struct writer *writer);

/* Put a record into the next request, of WRITER_RECORDS_MAX. */
void writer_add(struct writer *writer, const char *line);

/* Send it. 0; -1: there was no answer, or none that makes sense: what became of it is not known. */
int writer_send(struct writer *writer, struct writer_answer *answer);

#endif
