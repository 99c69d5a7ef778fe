/* SPDX-License-Identifier: BSD-2-Clause */
#include "test_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../stress/check.h"

void test_store_begin(struct test_store *p, const char *kind)
{
	*p = (struct test_store){.kind = kind, .timed = strcmp(kind, "memory") == 0};
	if (strcmp(kind, "redis") == 0 || strcmp(kind, "etcd") == 0) {
		server_start(&p->server, kind[0] == 'e' ? SERVER_ETCD : SERVER_REDIS_DURABLE);
		p->remote = true;
		(void)snprintf(p->address, sizeof(p->address), "%s://127.0.0.1:%u", kind,
			       p->server.port);
	} else if (strcmp(kind, "shm") == 0) {
		(void)snprintf(p->address, sizeof(p->address), "shm:/weir-test-%d", (int)getpid());
	} else {
		CHECK(p->timed);
	}
}

void test_store_end(struct test_store *p)
{
	if (p->remote)
		server_end(&p->server);
}

/*
 * A new store, known to be new: it cannot have forgotten a lease. So no member has to wait for old
 * ones to end.
 */
struct fresh {
	struct weir_store store;
	struct weir_store *inner;
	char file[160]; /* to be removed on close; "": none */
};

static struct weir_store *inner_of(struct weir_store *self)
{
	return ((struct fresh *)self)->inner;
}

static int fresh_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	return weir_store_begin(inner_of(self), ttl, session, granted);
}

static int fresh_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	return weir_store_keep(inner_of(self), session, granted);
}

static int fresh_end(struct weir_store *self, uint64_t session)
{
	return weir_store_end(inner_of(self), session);
}

static int fresh_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	return weir_store_commit(inner_of(self), session, checks, check_count, writes, write_count,
				 version);
}

static int fresh_read(struct weir_store *self, const char *const *prefixes, size_t count,
		      weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	int r = weir_store_read(inner_of(self), prefixes, count, row, arg, view);

	view->proven = WEIR_FOREVER;
	return r;
}

static void fresh_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(inner_of(self), caps);
}

static void fresh_error(struct weir_store *self, char *text, size_t size)
{
	weir_store_error(inner_of(self), text, size);
}

static int fresh_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
			    void **watch, char *why)
{
	struct weir_store_watch *w;
	const int r = weir_store_watch_open(inner_of(self), prefixes, count, &w, why,
					    WEIR_STORE_WHY_SIZE);

	*watch = w;
	return r;
}

static int fresh_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
			    struct weir_store_change *change)
{
	(void)self;
	return weir_store_watch_wait(watch, timeout, change);
}

static void fresh_watch_wake(struct weir_store *self, void *watch)
{
	(void)self;
	weir_store_watch_wake(watch);
}

static void fresh_watch_close(struct weir_store *self, void *watch)
{
	(void)self;
	weir_store_watch_close(watch);
}

static void fresh_close(struct weir_store *self)
{
	const struct fresh *f = (struct fresh *)self;

	weir_store_close(f->inner);
	CHECK(f->file[0] == '\0' || shm_unlink(f->file) == 0);
	free(self);
}

static const struct weir_store_ops fresh_ops = {
	.size = sizeof(fresh_ops),
	.name = "fresh",
	.begin = fresh_begin,
	.keep = fresh_keep,
	.end = fresh_end,
	.commit = fresh_commit,
	.read = fresh_read,
	.caps = fresh_caps,
	.error = fresh_error,
	.close = fresh_close,
	.watch_open = fresh_watch_open,
	.watch_wait = fresh_watch_wait,
	.watch_wake = fresh_watch_wake,
	.watch_close = fresh_watch_close,
};

struct weir_store *test_store_trusted(struct weir_store *inner, const char *file)
{
	struct fresh *f = calloc(1, sizeof(*f));

	CHECK(f != NULL);
	*f = (struct fresh){{&fresh_ops}, inner, ""};
	(void)snprintf(f->file, sizeof(f->file), "%s", file);
	return &f->store;
}

struct weir_store *test_store_open(struct test_store *p, const struct weir_clock *clock)
{
	struct weir_store_config config;
	struct weir_store *store;
	unsigned tries = 0;
	char name[32], address[160], why[256];

	weir_store_config_init(&config);
	config.timeout = 60 * WEIR_S;
	(void)snprintf(name, sizeof(name), "test-%u", p->stores);
	(void)snprintf(address, sizeof(address), "%s-%u", p->address, p->stores++);
	if (p->timed)
		config.clock = clock;
	else
		config.address = p->remote ? p->address : address;
	if (p->remote)
		config.name = name;
	/* A server that listens need not be ready. */
	while (weir_store_open(&config, &store, why, sizeof(why)) != 0) {
		if (++tries == 1000) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		sleep_ms(100);
	}
	return p->timed ? store : test_store_trusted(store, p->remote ? "" : address + 4);
}
