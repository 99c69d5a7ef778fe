/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"
#include "meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS ((size_t)1 << 18)

struct row {
	struct row *next;
	char *key;
	void *value;
	size_t size;
	uint64_t version, made, session;
};

struct session {
	weir_dur ttl;
	weir_time end; /* 0: it was ended */
};

struct table {
	struct weir_store store; /* must be the first member */
	const struct weir_clock *clock;
	struct row *buckets[BUCKETS];
	struct session *sessions; /* by their numbers, from 1 on */
	size_t session_count, session_room;
	uint64_t version;
};

static struct table *table_of(struct weir_store *store)
{
	return (struct table *)store;
}

static struct session *session_of(struct table *t, uint64_t session)
{
	struct session *s = session > 0 && session <= t->session_count ? &t->sessions[session - 1]
								       : NULL;

	return s != NULL && s->end > t->clock->now(t->clock) ? s : NULL;
}

static struct row **bucket_of(struct table *t, const char *key, size_t length)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)key[i]) * UINT64_C(1099511628211);
	return &t->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static bool lives(struct table *t, const struct row *r)
{
	return r->session == 0 || session_of(t, r->session) != NULL;
}

static void erase(struct row **at)
{
	struct row *r = *at;

	*at = r->next;
	free(r->key);
	free(r->value);
	free(r);
}

/* Where a row is, or where the chain of its bucket ends. Rows of ended sessions are removed. */
static struct row **find(struct table *t, const char *key, size_t length)
{
	struct row **at = bucket_of(t, key, length);

	while (*at != NULL) {
		if (!lives(t, *at))
			erase(at);
		else if (strncmp((*at)->key, key, length) == 0 && (*at)->key[length] == '\0')
			break;
		else
			at = &(*at)->next;
	}
	return at;
}

static int table_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct table *t = table_of(self);

	if (t->session_count == t->session_room) {
		t->session_room = t->session_room > 0 ? 2 * t->session_room : 1024;
		t->sessions = must(realloc(t->sessions, t->session_room * sizeof(*t->sessions)));
	}
	t->sessions[t->session_count++] = (struct session){ttl, t->clock->now(t->clock) + ttl};
	*session = t->session_count;
	*granted = ttl;
	return 0;
}

static int table_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct table *t = table_of(self);
	struct session *s = session_of(t, session);

	if (s == NULL)
		return -ESTALE;
	s->end = t->clock->now(t->clock) + s->ttl;
	*granted = s->ttl;
	return 0;
}

static int table_end(struct weir_store *self, uint64_t session)
{
	struct session *s = session_of(table_of(self), session);

	if (s != NULL)
		s->end = 0;
	return 0;
}

static bool holds(struct table *t, const struct weir_store_check *check)
{
	const struct row *r = *find(t, check->key, strlen(check->key));

	if (check->kind == WEIR_STORE_CHECK_ABSENT)
		return r == NULL;
	return r != NULL &&
	       check->version == (check->kind == WEIR_STORE_CHECK_MADE ? r->made : r->version);
}

static void put(struct table *t, const struct weir_store_write *w, uint64_t session)
{
	struct row **at = find(t, w->key, strlen(w->key)), *r = *at;

	if (w->kind == WEIR_STORE_WRITE_ERASE) {
		if (r != NULL)
			erase(at);
		return;
	}
	if (r == NULL) {
		r = *at = must(calloc(1, sizeof(*r)));
		r->key = must(strdup(w->key));
		r->made = t->version;
	}
	r->value = must(realloc(r->value, w->size + 1));
	if (w->size > 0)
		memcpy(r->value, w->value, w->size);
	r->size = w->size;
	r->version = t->version;
	r->session = w->kind == WEIR_STORE_WRITE_BIND ? session : 0;
}

static int table_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	struct table *t = table_of(self);

	if (session != 0 && session_of(t, session) == NULL)
		return -ESTALE;
	for (size_t i = 0; i < check_count; i++)
		if (!holds(t, &checks[i]))
			return -EAGAIN;
	t->version++;
	for (size_t i = 0; i < write_count; i++)
		put(t, &writes[i], session);
	*version = t->version;
	return 0;
}

static bool show(const struct row *r, weir_store_row_fn *row, void *arg)
{
	const struct weir_store_row shown = {r->key, r->value, r->size, r->version, r->made};

	return row(arg, &shown);
}

static bool show_all(struct table *t, const char *prefix, weir_store_row_fn *row, void *arg)
{
	const size_t length = strlen(prefix);

	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct row *r = t->buckets[i]; r != NULL; r = r->next)
			if (strncmp(r->key, prefix, length) == 0 && lives(t, r) &&
			    !show(r, row, arg))
				return false;
	return true;
}

static int table_read(struct weir_store *self, const char *const *prefixes, size_t count,
		      weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct table *t = table_of(self);
	bool more = true;

	*view = (struct weir_store_view){.version = t->version + 1, .proven = WEIR_FOREVER};
	for (size_t i = 0; i < count && more; i++) {
		const size_t length = strlen(prefixes[i]);

		if (length == 0 || prefixes[i][length - 1] != '=') {
			more = show_all(t, prefixes[i], row, arg);
		} else {
			const struct row *r = *find(t, prefixes[i], length - 1);

			more = r == NULL || show(r, row, arg);
		}
	}
	return 0;
}

static void table_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	(void)self;
	*caps = (struct weir_store_caps){.note = ""};
}

static void table_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "A check failed.");
}

static void table_close(struct weir_store *self)
{
	struct table *t = table_of(self);

	for (size_t i = 0; i < BUCKETS; i++)
		while (t->buckets[i] != NULL)
			erase(&t->buckets[i]);
	free(t->sessions);
	free(t);
}

struct weir_store *table_open(const struct weir_clock *clock)
{
	static const struct weir_store_ops ops = {
		.size = sizeof(ops),
		.name = "table",
		.begin = table_begin,
		.keep = table_keep,
		.end = table_end,
		.commit = table_commit,
		.read = table_read,
		.caps = table_caps,
		.error = table_error,
		.close = table_close,
	};
	struct table *t = must(calloc(1, sizeof(*t)));

	t->store.ops = &ops;
	t->clock = clock;
	return &t->store;
}
