/*
 * What stores have in common: how they are opened, and their sentences.
 */
#ifndef WEIR_FLEET_STORE_H
#define WEIR_FLEET_STORE_H

#include <weir/store.h>

#include "fleet/store/address.h"

#define WHY_SIZE 256

/* As configured, complete; the strings live until the opening is over. */
struct store_setup {
	struct address address;
	char name[WEIR_STORE_KEY_MAX + 1];
	weir_dur timeout;
	const struct weir_store_config *config;
};

/* 0, or a negative errno and a sentence in why, of WHY_SIZE. */
int memory_store_open(const struct store_setup *setup, struct weir_store **store, char *why);
int redis_store_open(const struct store_setup *setup, struct weir_store **store, char *why);
int etcd_store_open(const struct store_setup *setup, struct weir_store **store, char *why);

/* Put a sentence where there is a place for it; answers r. */
__attribute__((format(printf, 3, 4))) int store_say(int r, char *why, const char *format, ...);

#endif
