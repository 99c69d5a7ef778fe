/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to the database, one request at a time. For one thread at a time.
 */
#ifndef INGEST_WRITER_H
#define INGEST_WRITER_H

#include "record.h"

#include <curl/curl.h>
#include <stdbool.h>

enum { WRITER_RECORDS_MAX = 100 }; /* the maximum in a request */

struct writer {
	CURL *easy;
	char body[WRITER_RECORDS_MAX * RECORD_MAX];
	size_t size;
	unsigned count;
	char answer[64];
	size_t answered;
};

struct writer_answer {
	unsigned committed;   /* the number of records, from the first, that are in the database */
	bool throttled;       /* the others were refused for now */
	unsigned retry_after; /* seconds */
};

/* url: of the database, without a path; name: of this client. 0; -1 after an error message. */
int writer_open(struct writer *writer, const char *url, const char *name);
void writer_close(struct writer *writer);

/* Add a record to the next request, which holds WRITER_RECORDS_MAX. */
void writer_add(struct writer *writer, const char *line);

/* Send the request. 0; -1: no valid answer, so the result is unknown. */
int writer_send(struct writer *writer, struct writer_answer *answer);

#endif
