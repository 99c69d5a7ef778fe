/* SPDX-License-Identifier: BSD-2-Clause */
#include "meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct meter *meter_at(struct weir_store *store)
{
	struct meter *m = (struct meter *)store;

	if (m->before != NULL)
		m->before();
	return m;
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static int meter_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	return weir_store_begin(meter_at(self)->to, ttl, session, granted);
}

static int meter_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct meter *m = meter_at(self);

	add(&m->count->keeps, 1);
	return weir_store_keep(m->to, session, granted);
}

static int meter_end(struct weir_store *self, uint64_t session)
{
	return weir_store_end(((struct meter *)self)->to, session);
}

static int meter_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	struct meter *m = meter_at(self);
	uint64_t bytes = 0;
	int r;

	for (size_t i = 0; i < check_count; i++)
		bytes += strlen(checks[i].key) + sizeof(checks[i].version);
	for (size_t i = 0; i < write_count; i++)
		bytes += strlen(writes[i].key) + writes[i].size;
	r = weir_store_commit(m->to, session, checks, check_count, writes, write_count, version);
	add(&m->count->commits, 1);
	add(&m->count->conflicts, r == -EAGAIN);
	add(&m->count->sent, bytes);
	return r;
}

struct passing {
	weir_store_row_fn *row;
	void *arg;
	uint64_t bytes;
};

static bool pass(void *arg, const struct weir_store_row *row)
{
	struct passing *p = arg;

	p->bytes += strlen(row->key) + row->size;
	return p->row(p->arg, row);
}

static int meter_read(struct weir_store *self, const char *const *prefixes, size_t count,
		      weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct meter *m = meter_at(self);
	struct passing p = {row, arg, 0};
	int r = weir_store_read(m->to, prefixes, count, pass, &p, view);

	add(&m->count->reads, 1);
	add(&m->count->got, p.bytes);
	return r;
}

/* Counted as one request, since it takes one round trip. */
static int meter_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			       const char *const *prefixes, size_t count, weir_store_row_fn *row,
			       void *arg, struct weir_store_view *view)
{
	struct meter *m = meter_at(self);
	struct passing p = {row, arg, 0};
	int r = weir_store_keep_and_read(m->to, session, granted, prefixes, count, pass, &p, view);

	add(&m->count->reads, 1);
	add(&m->count->got, p.bytes);
	return r;
}

static void meter_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(((struct meter *)self)->to, caps);
}

static void meter_error(struct weir_store *self, char *text, size_t size)
{
	weir_store_error(((struct meter *)self)->to, text, size);
}

static const struct weir_store_ops meter_ops = {
	.size = sizeof(meter_ops),
	.name = "meter",
	.begin = meter_begin,
	.keep = meter_keep,
	.end = meter_end,
	.commit = meter_commit,
	.read = meter_read,
	.keep_and_read = meter_keep_and_read,
	.caps = meter_caps,
	.error = meter_error,
};

struct meter meter_of(struct weir_store *to, struct count *count, void (*before)(void))
{
	return (struct meter){.store = {&meter_ops}, .to = to, .count = count, .before = before};
}

void count_clear(struct count *c)
{
	_Atomic uint64_t *const all[] = {&c->keeps,     &c->reads, &c->commits,
					 &c->conflicts, &c->sent,  &c->got};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		atomic_store_explicit(all[i], 0, memory_order_relaxed);
}

void must_do(int error, const char *what, const char *why)
{
	if (error == 0)
		return;
	fprintf(stderr, "weir-fleet-bench: %s: %s %s\n", what, strerror(error < 0 ? -error : error),
		why);
	exit(EXIT_FAILURE);
}

void *must(void *memory)
{
	must_do(memory != NULL ? 0 : -ENOMEM, "memory", "");
	return memory;
}
