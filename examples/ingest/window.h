/*
 * So many units a second, to the unit: what the database throttles by. A second begins with the
 * first request after the one before it has ended. Of each second it is logged what every client
 * was admitted and refused: this is the truth that all claims are held to.
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
	uint64_t capacity; /* units a second */
	FILE *log;
	int64_t began; /* ns, of the clock that nobody sets; 0: there was no request yet */
	int64_t began_epoch_ms;
	uint64_t used;
	unsigned client_count;
	struct window_client clients[WINDOW_CLIENTS_MAX];
	struct window_count admitted, refused; /* ever */
	uint64_t most;                         /* units admitted in a second */
};

/* The log is the window's from now on. */
void window_open(struct window *window, uint64_t capacity, FILE *log);
void window_close(struct window *window);

/* A request of that client comes in. NULL: there are too many clients, or the name is too long. */
struct window_client *window_request(struct window *window, const char *name);

/* Of that request: may so many units be used now? */
bool window_admit(struct window *window, struct window_client *client, unsigned units);
void window_refuse(struct window *window, struct window_client *client, unsigned units);

#endif
