/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of changes on their way to a caller: a bounded list, in which a row is listed once. If
 * there are more rows than it has room for, any row may have changed.
 */
#ifndef WEIR_FLEET_NOTICES_H
#define WEIR_FLEET_NOTICES_H

#include <stdbool.h>

#include <weir/store.h>

#define NOTICES_MAX 64

struct notice {
	uint64_t version; /* 0 if any row may have changed */
	char key[WEIR_STORE_KEY_MAX + 1];
};

struct notices {
	struct notice at[NOTICES_MAX];
	unsigned count;
	bool any;
};

void notices_add(struct notices *notices, const char *key, uint64_t version);
void notices_any(struct notices *notices);

/* Take the first one. Returns false if there is none. */
bool notices_take(struct notices *notices, struct notice *first);

/* What is watched: a copy of prefixes. */
struct watched {
	char **prefixes;
	size_t count;
};

/* Returns false without memory. */
bool watched_set(struct watched *watched, const char *const *prefixes, size_t count);
void watched_free(struct watched *watched);

/* Whether text is a key, and has one of the prefixes. It may come from anywhere. */
bool watched_has(const struct watched *watched, const char *text);

#endif
