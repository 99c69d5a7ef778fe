/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to an etcd cluster: JSON over HTTP, to any member that answers. */
#ifndef WEIR_FLEET_ETCD_LINK_H
#define WEIR_FLEET_ETCD_LINK_H

#include <jansson.h>

#include "fleet/store/store.h"

struct etcd_link;

/*
 * Opening a link sends nothing. Returns 0, or a negative errno and a sentence in why, which holds
 * WHY_SIZE bytes.
 */
int etcd_link_open(const struct store_setup *setup, char *why, struct etcd_link **link);
void etcd_link_close(struct etcd_link *link);

/*
 * Send a request, taking ownership of it. Returns 0, and an answer to be freed by json_decref(); or
 * a negative errno and a sentence. idempotent: the request may be carried out twice, so that other
 * members are tried if one fails in the middle. Otherwise no other member is tried once one may
 * have received it.
 */
int etcd_ask(struct etcd_link *link, const char *path, json_t *request, bool idempotent,
	     json_t **answer);

/*
 * Send two idempotent requests at the same time, taking ownership of them. Returns 0, and two
 * answers to be freed; or the first error.
 */
int etcd_ask_both(struct etcd_link *link, const char *const *paths, json_t *const *requests,
		  json_t **answers);

/*
 * A stream of answers to one request, over a connection of its own. While there is one, the link
 * sends nothing else.
 *
 * etcd_stream_begin() logs in, and sends text to the host that answered last. etcd_stream_wait()
 * waits until something has come, for that time at most, or until any thread calls
 * etcd_stream_wake(). etcd_stream_next() returns 0 and the next answer, to be freed; or 0 and NULL: it
 * has not come yet. All of them return a negative errno and a sentence on an error. Then
 * etcd_stream_end() is to be called. The next stream goes to another host if this one has ended.
 */
int etcd_stream_begin(struct etcd_link *link, const char *path, const char *text);
int etcd_stream_wait(struct etcd_link *link, weir_dur timeout);
int etcd_stream_next(struct etcd_link *link, json_t **answer);
void etcd_stream_wake(struct etcd_link *link);
void etcd_stream_end(struct etcd_link *link);

/* The text of a request, whose ownership it takes, to be freed. NULL: out of memory. */
char *etcd_print(json_t *request);

/* Read a whole number, which is text in this JSON, and omitted if it is 0. False: not a number. */
bool etcd_number(const json_t *object, const char *name, uint64_t *number);

/*
 * Save and restore the store's sentence around requests whose errors are not errors of the caller.
 */
void etcd_link_save(const struct etcd_link *link, char sentence[WHY_SIZE]);
void etcd_link_restore(struct etcd_link *link, const char sentence[WHY_SIZE]);

/* Returns -EIO: the response cannot be interpreted. */
int etcd_invalid_response(struct etcd_link *link);

#endif
