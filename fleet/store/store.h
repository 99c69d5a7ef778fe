/* SPDX-License-Identifier: BSD-2-Clause */
/* What all stores share: how they are opened, and their error sentences. */
#ifndef WEIR_FLEET_STORE_H
#define WEIR_FLEET_STORE_H

#include <string.h>

#include <weir/store.h>

#include "fleet/store/address.h"

#define WHY_SIZE WEIR_STORE_WHY_SIZE

/* A complete configuration. Strings are valid until the store has been opened. */
struct store_setup {
	struct address address;
	char name[WEIR_STORE_KEY_MAX + 1];
	weir_dur timeout;
	const struct weir_store_config *config;
};

/* Returns 0, or a negative errno and a sentence in why, which holds WHY_SIZE bytes. */
int memory_store_open(const struct store_setup *setup, struct weir_store **store, char *why);
int redis_store_open(const struct store_setup *setup, struct weir_store **store, char *why);
int etcd_store_open(const struct store_setup *setup, struct weir_store **store, char *why);

/* The length of the key before the = at the end of a prefix; 0: it does not end so. */
static inline size_t store_exact(const char *prefix)
{
	const size_t length = strlen(prefix);

	return length > 0 && prefix[length - 1] == '=' ? length - 1 : 0;
}

/* Write a sentence to why, which holds WHY_SIZE bytes. Returns r. */
__attribute__((format(printf, 3, 4))) int store_say(int r, char *why, const char *format, ...);

/* Whether text is a key, or any prefix but "" (store.c). */
bool store_is_key(const char *text);
bool store_is_prefix(const char *text);

#endif
