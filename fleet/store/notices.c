/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet/store/notices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/store/store.h"

void notices_any(struct notices *n)
{
	n->any = true;
	n->count = 0;
}

void notices_add(struct notices *n, const char *key, uint64_t version)
{
	struct notice *last = &n->at[n->count];

	if (n->any)
		return;
	for (struct notice *at = n->at; at < last; at++)
		if (strcmp(at->key, key) == 0) {
			if (version > at->version)
				at->version = version;
			return;
		}
	if (n->count == NOTICES_MAX) {
		notices_any(n);
		return;
	}
	last->version = version;
	(void)snprintf(last->key, sizeof(last->key), "%s", key);
	n->count++;
}

bool notices_take(struct notices *n, struct notice *first)
{
	if (n->any) {
		n->any = false;
		*first = (struct notice){.version = 0};
		return true;
	}
	if (n->count == 0)
		return false;
	*first = n->at[0];
	n->count--;
	memmove(n->at, n->at + 1, n->count * sizeof(n->at[0]));
	return true;
}

bool watched_set(struct watched *w, const char *const *prefixes, size_t count)
{
	*w = (struct watched){.prefixes = calloc(count, sizeof(*w->prefixes))};
	if (w->prefixes == NULL)
		return false;
	for (; w->count < count; w->count++) {
		w->prefixes[w->count] = strdup(prefixes[w->count]);
		if (w->prefixes[w->count] == NULL) {
			watched_free(w);
			return false;
		}
	}
	return true;
}

void watched_free(struct watched *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->prefixes[i]);
	free(w->prefixes);
	*w = (struct watched){.count = 0};
}

bool watched_has(const struct watched *w, const char *text)
{
	if (!store_is_key(text))
		return false;
	for (size_t i = 0; i < w->count; i++)
		if (strncmp(text, w->prefixes[i], strlen(w->prefixes[i])) == 0)
			return true;
	return false;
}
