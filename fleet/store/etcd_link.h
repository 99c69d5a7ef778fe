/*
 * Talking to an etcd cluster: JSON over HTTP, to whichever of its members answers.
 */
#ifndef WEIR_FLEET_ETCD_LINK_H
#define WEIR_FLEET_ETCD_LINK_H

#include <jansson.h>

#include "fleet/store/store.h"

struct etcd_link;

/* 0, or a negative errno and a sentence in why, of WHY_SIZE. Nothing is sent yet. */
int etcd_link_open(const struct store_setup *setup, char *why, struct etcd_link **link);
void etcd_link_close(struct etcd_link *link);

/*
 * Ask, and take the request away. 0, and an answer to be freed by json_decref(); or a negative
 * errno and a sentence. harmless: it may be done twice, so other members are asked where one fails
 * in the middle. Else who has begun to hear it, alone is asked.
 */
int etcd_ask(struct etcd_link *link, const char *path, json_t *request, bool harmless,
	     json_t **answer);

/*
 * Ask two that are harmless at once: neither waits for the other's answer. The requests are taken
 * away. 0, and two answers to be freed; or what went wrong first.
 */
int etcd_ask_both(struct etcd_link *link, const char *const *paths, json_t *const *requests,
		  json_t **answers);

/* A whole number, which is text in this JSON, and left out where it is 0. False: it is none. */
bool etcd_number(const json_t *object, const char *name, uint64_t *number);

/* The store's sentence, kept over questions whose failures are not those of a call of the store. */
void etcd_link_save(const struct etcd_link *link, char sentence[WHY_SIZE]);
void etcd_link_restore(struct etcd_link *link, const char sentence[WHY_SIZE]);

/* -EIO: what came makes no sense. */
int etcd_senseless(struct etcd_link *link);

#endif
