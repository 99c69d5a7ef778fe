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
