/* SPDX-License-Identifier: BSD-2-Clause */

#include "fleet/protocol/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/pattern.h"
#include "fleet/protocol/share.h"
#include "fleet/store/store.h"

#define HEAD "weir-templates 1\n"

/* The index of a pattern, or where it is to be inserted. */
static size_t index_of(const struct templates *t, const char *pattern)
{
	size_t begin = 0, end = t->count;

	while (begin < end) {
		const size_t middle = begin + (end - begin) / 2;

		if (strcmp(t->at[middle].pattern, pattern) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

struct template_record *templates_find(const struct templates *t, const char *pattern)
{
	const size_t index = index_of(t, pattern);

	return index < t->count && strcmp(t->at[index].pattern, pattern) == 0 ? &t->at[index]
									      : NULL;
}

const struct template_record *templates_match(const struct templates *t, const char *name)
{
	const struct template_record *best = NULL;

	for (size_t i = 0; i < t->count; i++)
		if (pattern_matches(t->at[i].pattern, name) &&
		    (best == NULL || pattern_order(t->at[i].pattern, best->pattern) < 0))
			best = &t->at[i];
	return best;
}

static bool make_room(struct templates *t)
{
	const size_t room = t->room > 0 ? 2 * t->room : 8;
	struct template_record *at;

	if (t->count < t->room)
		return true;
	at = realloc(t->at, room * sizeof(*at));
	if (at == NULL)
		return false;
	t->at = at;
	t->room = room;
	return true;
}

bool templates_put(struct templates *t, const struct template_record *record)
{
	const size_t index = index_of(t, record->pattern);

	if (index == t->count || strcmp(t->at[index].pattern, record->pattern) != 0) {
		if (!make_room(t))
			return false;
		memmove(&t->at[index + 1], &t->at[index], (t->count - index) * sizeof(t->at[0]));
		t->count++;
	}
	t->at[index] = *record;
	return true;
}

void templates_drop(struct templates *t, struct template_record *record)
{
	const size_t after = (size_t)(&t->at[t->count] - record) - 1;

	memmove(record, record + 1, after * sizeof(*record));
	t->count--;
}

/* Whether it may follow those before it: anything may be in a row of the store. */
static bool is_good(const struct templates *t, const struct template_record *record)
{
	const struct limit_record *l = &record->limit;
	char why[WHY_SIZE];

	if (t->count == WEIR_FLEET_TEMPLATES_MAX || !is_pattern(record->pattern))
		return false;
	if (t->count > 0 && strcmp(t->at[t->count - 1].pattern, record->pattern) >= 0)
		return false;
	return l->lease >= LEASE_MIN / WEIR_MS && l->lease <= LEASE_MAX / WEIR_MS &&
	       l->learning <= LEASE_MAX / WEIR_MS && limit_check(l, why) == 0;
}

int templates_parse(const char *text, size_t size, struct templates *t)
{
	const size_t head = strlen(HEAD);
	const char *at = text + head, *end = text + size, *line;

	t->count = 0;
	if (size < head || memcmp(text, HEAD, head) != 0)
		return -EPROTO;
	for (; at < end; at = line + 1) {
		struct template_record record;

		line = memchr(at, '\n', (size_t)(end - at));
		if (line == NULL || !template_parse(at, (size_t)(line + 1 - at), &record) ||
		    !is_good(t, &record))
			return -EPROTO;
		if (!templates_put(t, &record))
			return -ENOMEM;
	}
	return 0;
}

/* A reading, and what came of the row. */
struct reading {
	struct templates *templates;
	int result;
};

static bool take(void *arg, const struct weir_store_row *row)
{
	struct reading *reading = arg;

	if (strcmp(row->key, TEMPLATES_KEY) != 0)
		return true;
	reading->templates->version = row->version;
	reading->result = templates_parse(row->value, row->size, reading->templates);
	if (reading->result != 0)
		reading->templates->count = 0;
	return false;
}

int templates_read(struct weir_store *store, struct templates *t)
{
	static const char *const prefixes[] = {TEMPLATES_KEY};
	struct reading reading = {.templates = t};
	int r;

	t->count = 0;
	t->version = 0;
	r = weir_store_read(store, prefixes, 1, take, &reading, NULL);
	return r != 0 ? r : reading.result;
}

void templates_free(struct templates *t)
{
	free(t->at);
	*t = (struct templates){.count = 0};
}

/* The row is erased with the last template. */
int templates_write(struct weir_store *store, const struct templates *t)
{
	const struct weir_store_check check = {
		TEMPLATES_KEY, t->version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		t->version};
	struct weir_store_write write = {TEMPLATES_KEY, WEIR_STORE_WRITE_ERASE, NULL, 0};
	char *text = malloc(strlen(HEAD) + t->count * TEMPLATE_SIZE + 1);
	size_t size = strlen(HEAD);
	int r;

	if (text == NULL)
		return -ENOMEM;
	(void)snprintf(text, size + 1, HEAD);
	for (size_t i = 0; i < t->count; i++)
		size += template_print(&t->at[i], text + size);
	if (t->count > 0)
		write = (struct weir_store_write){TEMPLATES_KEY, WEIR_STORE_WRITE_PUT, text, size};
	r = weir_store_commit(store, 0, &check, 1, &write, 1, NULL);
	free(text);
	return r;
}
