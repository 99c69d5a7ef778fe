/* SPDX-License-Identifier: BSD-2-Clause */
/* The two halves of a block, and how one is made from the other. */

#include "fleet/store/row_table.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "fleet/store/store.h"

#define MAGIC (UINT64_C(0x7765697273746f31) ^ sizeof(struct block)) /* "weirsto1", and the layout */

/* A session: its time to live, and its deadline. */
struct session {
	uint64_t id;
	weir_dur ttl;
	_Atomic uint64_t deadline;
};

/* A row, followed by its key, with the terminating zero, and its value. */
struct record {
	uint64_t size; /* of the record in bytes, a multiple of 8 */
	uint64_t key_size, value_size;
	uint64_t version, made;
	uint64_t session; /* 0: not bound */
};

/* A half, followed by its sessions, and then its records. */
struct half {
	uint64_t version;
	uint64_t sessions;
	uint64_t used; /* by records, in bytes */
};

static size_t head_size(void)
{
	return (sizeof(struct block) + WEIR_ALIGN - 1) / WEIR_ALIGN * WEIR_ALIGN;
}

static size_t half_size(const struct block *b)
{
	return (b->size - head_size()) / 2 / WEIR_ALIGN * WEIR_ALIGN;
}

static struct half *half_at(const struct block *b, uint32_t index)
{
	return (struct half *)((char *)(uintptr_t)b + head_size() + (index & 1) * half_size(b));
}

static struct half *current_half(const struct block *b)
{
	return half_at(b, atomic_load_explicit(&b->current, memory_order_acquire));
}

static struct session *sessions_of(const struct half *h)
{
	return (struct session *)(uintptr_t)(h + 1);
}

static char *records_of(const struct half *h)
{
	return (char *)(sessions_of(h) + h->sessions);
}

static const char *key_of(const struct record *r)
{
	return (const char *)(r + 1);
}

static const char *value_of(const struct record *r)
{
	return key_of(r) + r->key_size;
}

/* Size of a record in bytes, such that the next one is aligned. */
static uint64_t record_size(uint64_t key_size, uint64_t value_size)
{
	return (sizeof(struct record) + key_size + value_size + 7) / 8 * 8;
}

static const struct record *first(const struct half *h)
{
	return h->used > 0 ? (const struct record *)records_of(h) : NULL;
}

static const struct record *next(const struct half *h, const struct record *r)
{
	const char *after = (const char *)r + r->size;

	return after < records_of(h) + h->used ? (const struct record *)after : NULL;
}

int block_make(struct block *b, size_t size, uint64_t run, uint64_t clock, weir_time now,
	       uint64_t version, bool shared)
{
	pthread_mutexattr_t attributes;
	int r;

	/* No note of the bell counts yet. */
	memset(b, 0, offsetof(struct block, bell.notes));
	b->magic = MAGIC;
	b->run = run;
	b->clock = clock;
	b->size = size;
	b->since = now;
	atomic_init(&b->current, 0);
	*half_at(b, 0) = (struct half){.version = version};
	pthread_mutexattr_init(&attributes);
	if (shared) {
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	}
	r = pthread_mutex_init(&b->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	if (r == 0)
		atomic_store_explicit(&b->ready, 1, memory_order_release);
	return -r;
}

/* Whether the records fill the used bytes exactly, each within them. */
static bool are_sound(const struct half *h)
{
	const char *at = records_of(h), *end = at + h->used;

	while (at < end) {
		const struct record *r = (const struct record *)at;
		const uint64_t left = (uint64_t)(end - at);

		if (left < sizeof(*r) || r->key_size < 2 || r->key_size > WEIR_STORE_KEY_MAX + 1 ||
		    r->value_size > WEIR_STORE_VALUE_MAX ||
		    r->size != record_size(r->key_size, r->value_size) || r->size > left ||
		    key_of(r)[r->key_size - 1] != '\0')
			return false;
		at += r->size;
	}
	return true;
}

bool block_is_ours(const struct block *b, size_t size)
{
	if (size < BLOCK_BYTES_MIN || b->magic != MAGIC)
		return false;
	/* A creator that died before it was ready may not have written the size. */
	return atomic_load_explicit(&b->ready, memory_order_acquire) != 1 || b->size == size;
}

bool block_is_sound(const struct block *b)
{
	const struct half *h = current_half(b);
	const uint64_t room = half_size(b) - sizeof(*h);

	return h->sessions <= room / sizeof(struct session) &&
	       h->used <= room - h->sessions * sizeof(struct session) && are_sound(h);
}

uint64_t block_version(const struct block *b)
{
	return current_half(b)->version;
}

static struct session *find_session(const struct half *h, uint64_t id)
{
	struct session *s = sessions_of(h);

	for (uint64_t i = 0; i < h->sessions; i++)
		if (s[i].id == id)
			return &s[i];
	return NULL;
}

static bool is_over(const struct session *s, weir_time now)
{
	return now >= atomic_load_explicit(&s->deadline, memory_order_relaxed);
}

/* Whether a row bound to that session exists. */
static bool lives(const struct half *h, uint64_t session, weir_time now)
{
	const struct session *s;

	if (session == 0)
		return true;
	s = find_session(h, session);
	return s != NULL && !is_over(s, now);
}

static const struct record *find(const struct half *h, const char *key, weir_time now)
{
	const size_t key_size = strlen(key) + 1;

	for (const struct record *r = first(h); r != NULL; r = next(h, r))
		if (r->key_size == key_size && memcmp(key_of(r), key, key_size) == 0)
			return lives(h, r->session, now) ? r : NULL;
	return NULL;
}

/* The other half, under construction. */
struct half_copy {
	const struct half *from;
	struct half *to;
	size_t room; /* for sessions and records, in bytes */
	weir_time now;
};

static struct half_copy begin_copy(struct block *b, weir_time now)
{
	const uint32_t current = atomic_load_explicit(&b->current, memory_order_acquire);
	struct half_copy m = {
		.from = half_at(b, current),
		.to = half_at(b, current ^ 1),
		.room = half_size(b) - sizeof(struct half),
		.now = now,
	};

	*m.to = (struct half){.version = m.from->version + 1};
	return m;
}

static bool add_session(struct half_copy *m, uint64_t id, weir_dur ttl, weir_time deadline)
{
	struct session *s = sessions_of(m->to) + m->to->sessions;

	if (m->room < sizeof(*s))
		return false;
	s->id = id;
	s->ttl = ttl;
	atomic_init(&s->deadline, deadline);
	m->to->sessions++;
	m->room -= sizeof(*s);
	return true;
}

/* Copy all live sessions except one. They fit, because they did before. */
static void copy_sessions(struct half_copy *m, uint64_t but)
{
	const struct session *s = sessions_of(m->from);

	for (uint64_t i = 0; i < m->from->sessions; i++)
		if (s[i].id != but && !is_over(&s[i], m->now))
			(void)add_session(
				m, s[i].id, s[i].ttl,
				atomic_load_explicit(&s[i].deadline, memory_order_relaxed));
}

static bool add_record(struct half_copy *m, const struct record *r, const char *key,
		       const void *value)
{
	char *to = records_of(m->to) + m->to->used;

	if (m->room < r->size)
		return false;
	/* Padding at the end is zero, so that halves with the same content are identical. */
	memset(to + r->size - 8, 0, 8);
	memcpy(to, r, sizeof(*r));
	memcpy(to + sizeof(*r), key, r->key_size);
	if (r->value_size > 0)
		memcpy(to + sizeof(*r) + r->key_size, value, r->value_size);
	m->to->used += r->size;
	m->room -= r->size;
	return true;
}

static bool is_written(const struct record *r, const struct weir_store_write *writes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(key_of(r), writes[i].key) == 0)
			return true;
	return false;
}

/* Copy all rows that are not written anew, if their sessions are in the new half. */
static bool copy_records(struct half_copy *m, const struct weir_store_write *writes, size_t count)
{
	for (const struct record *r = first(m->from); r != NULL; r = next(m->from, r))
		if (!is_written(r, writes, count) &&
		    (r->session == 0 || find_session(m->to, r->session) != NULL) &&
		    !add_record(m, r, key_of(r), value_of(r)))
			return false;
	return true;
}

static void flip(struct block *b)
{
	const uint32_t current = atomic_load_explicit(&b->current, memory_order_relaxed);

	atomic_store_explicit(&b->current, current ^ 1, memory_order_release);
}

int block_begin(struct block *b, weir_time now, weir_dur ttl, uint64_t *session)
{
	struct half_copy m = begin_copy(b, now);

	copy_sessions(&m, 0);
	if (!add_session(&m, m.to->version, ttl, now + ttl) || !copy_records(&m, NULL, 0))
		return -ENOSPC;
	*session = m.to->version;
	flip(b);
	return 0;
}

int block_keep(struct block *b, weir_time now, uint64_t session, weir_dur *granted)
{
	struct session *s = find_session(current_half(b), session);

	if (s == NULL || is_over(s, now))
		return -ESTALE;
	atomic_store_explicit(&s->deadline, now + s->ttl, memory_order_relaxed);
	*granted = s->ttl;
	return 0;
}

int block_end(struct block *b, weir_time now, uint64_t session)
{
	struct half_copy m = begin_copy(b, now);

	copy_sessions(&m, session);
	(void)copy_records(&m, NULL, 0);
	flip(b);
	return 0;
}

void block_bound(const struct block *b, uint64_t session, void (*visit)(void *arg, const char *key),
		 void *arg)
{
	const struct half *h = current_half(b);

	for (const struct record *r = first(h); r != NULL; r = next(h, r))
		if (r->session == session)
			visit(arg, key_of(r));
}

static bool holds(const struct half *h, const struct weir_store_check *check, weir_time now)
{
	const struct record *r = find(h, check->key, now);

	switch (check->kind) {
	case WEIR_STORE_CHECK_ABSENT:
		return r == NULL;
	case WEIR_STORE_CHECK_VERSION:
		return r != NULL && r->version == check->version;
	case WEIR_STORE_CHECK_MADE:
		return r != NULL && r->made == check->version;
	}
	return false;
}

static bool write_record(struct half_copy *m, const struct weir_store_write *w, uint64_t session)
{
	const struct record *was = find(m->from, w->key, m->now);
	const uint64_t key_size = strlen(w->key) + 1;

	return w->kind == WEIR_STORE_WRITE_ERASE ||
	       add_record(m,
			  &(struct record){
				  .size = record_size(key_size, w->size),
				  .key_size = key_size,
				  .value_size = w->size,
				  .version = m->to->version,
				  .made = was != NULL ? was->made : m->to->version,
				  .session = w->kind == WEIR_STORE_WRITE_BIND ? session : 0,
			  },
			  w->key, w->value);
}

int block_commit(struct block *b, weir_time now, uint64_t session,
		 const struct weir_store_check *checks, size_t check_count,
		 const struct weir_store_write *writes, size_t write_count)
{
	struct half_copy m;

	if (!lives(current_half(b), session, now))
		return -ESTALE;
	for (size_t i = 0; i < check_count; i++)
		if (!holds(current_half(b), &checks[i], now))
			return -EAGAIN;
	m = begin_copy(b, now);
	copy_sessions(&m, 0);
	if (!copy_records(&m, writes, write_count))
		return -ENOSPC;
	for (size_t i = 0; i < write_count; i++)
		if (!write_record(&m, &writes[i], session))
			return -ENOSPC;
	flip(b);
	return 0;
}

void block_raise(struct block *b, weir_time now, uint64_t version)
{
	struct half_copy m;

	if (block_version(b) >= version)
		return;
	m = begin_copy(b, now);
	m.to->version = version;
	copy_sessions(&m, 0);
	if (copy_records(&m, NULL, 0))
		flip(b);
}

static bool is_wanted(const struct record *r, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const size_t exact = store_exact(prefixes[i]);

		if (exact > 0
			    ? r->key_size == exact + 1 && memcmp(key_of(r), prefixes[i], exact) == 0
			    : strncmp(key_of(r), prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

void block_read(const struct block *b, weir_time now, const char *const *prefixes, size_t count,
		weir_store_row_fn *row, void *arg)
{
	const struct half *h = current_half(b);

	for (const struct record *r = first(h); r != NULL; r = next(h, r)) {
		const struct weir_store_row shown = {
			.key = key_of(r),
			.value = value_of(r),
			.size = r->value_size,
			.version = r->version,
			.made = r->made,
		};

		if (is_wanted(r, prefixes, count) && lives(h, r->session, now) && !row(arg, &shown))
			return;
	}
}
