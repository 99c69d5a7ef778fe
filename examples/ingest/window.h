/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The throttle of the database: an exact number of units per second. A second begins with the first
 * request after the end of the previous one. The log has the units that each client was admitted
 * and refused in each second. It is the reference for all results.
 */
#ifndef INGEST_WINDOW_H
#define INGEST_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { WINDOW_CLIENTS_MAX = 16, WINDOW_NAME_MAX = 32 };

struct window_count {
	uint64_t records, units;
};

struct window_client {
	char name[WINDOW_NAME_MAX];
	struct window_count admitted, refused; /* in this second */
};

struct window {
	uint64_t capacity; /* units per second */
	FILE *log;
	int64_t began; /* ns, monotonic clock; 0: no request yet */
	int64_t began_epoch_ms;
	uint64_t used;
	unsigned client_count;
	struct window_client clients[WINDOW_CLIENTS_MAX];
	struct window_count admitted, refused; /* in total */
	uint64_t most;                         /* the most units admitted in a second */
};

/* The window owns the log from now on. */
void window_open(struct window *window, uint64_t capacity, FILE *log);
void window_close(struct window *window);

/* A request of that client arrives. NULL: too many clients, or the name is too long. */
struct window_client *window_request(struct window *window, const char *name);

/* Whether this request may use that many units now. */
bool window_admit(struct window *window, struct window_client *client, unsigned units);
void window_refuse(struct window *window, struct window_client *client, unsigned units);

#endif
