/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening stores. Every call on a store is checked, serialized, and protected from the SIGPIPE that
 * a closed connection raises.
 *
 * weir_store_open() returns a wrapper around the real store, which has the lock. A store of the
 * caller's own has no wrapper, but its calls are checked all the same.
 */

#include "fleet/store/store.h"
#include "fleet/cancel.h"
#include "fleet/fair_lock.h"
#include "fleet/store/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT (2 * WEIR_S)
#define TIMEOUT_MAX     (600 * WEIR_S)
#define TTL_MAX         (UINT64_C(86400) * WEIR_S)

int store_say(int r, char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, WHY_SIZE, format, args);
	va_end(args);
	return r;
}

/* The wrapper. */
struct gated {
	struct weir_store store;
	struct weir_store *inner;
	struct fair_lock lock;
};

static struct gated *gated_of(struct weir_store *store)
{
	return (struct gated *)store;
}

/* How a call was entered. The thread cannot be cancelled during a call. */
struct entry {
	struct quiet quiet;
	int cancel;
};

static struct entry enter(struct gated *g)
{
	struct entry entry = {.cancel = cancel_hold()};

	fair_lock_take(&g->lock);
	entry.quiet = quiet_begin();
	return entry;
}

static int leave(struct gated *g, const struct entry *entry, int r)
{
	quiet_end(&entry->quiet);
	fair_lock_release(&g->lock);
	cancel_release(entry->cancel);
	return r;
}

static int gated_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry, g->inner->ops->begin(g->inner, ttl, session, granted));
}

static int gated_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry, g->inner->ops->keep(g->inner, session, granted));
}

static int gated_end(struct weir_store *self, uint64_t session)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry, g->inner->ops->end(g->inner, session));
}

static int gated_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry,
		     g->inner->ops->commit(g->inner, session, checks, check_count, writes,
					   write_count, version));
}

static int gated_read(struct weir_store *self, const char *const *prefixes, size_t count,
		      weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry, g->inner->ops->read(g->inner, prefixes, count, row, arg, view));
}

/* keep_and_read, in two requests if the store has no such function. */
static int keep_and_read(struct weir_store *store, uint64_t session, weir_dur *granted,
			 const char *const *prefixes, size_t count, weir_store_row_fn *row,
			 void *arg, struct weir_store_view *view)
{
	const struct weir_store_ops *ops = store->ops;
	int r;

	if (ops->keep_and_read != NULL)
		return ops->keep_and_read(store, session, granted, prefixes, count, row, arg, view);
	r = ops->keep(store, session, granted);
	return r != 0 ? r : ops->read(store, prefixes, count, row, arg, view);
}

static int gated_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			       const char *const *prefixes, size_t count, weir_store_row_fn *row,
			       void *arg, struct weir_store_view *view)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	return leave(g, &entry,
		     keep_and_read(g->inner, session, granted, prefixes, count, row, arg, view));
}

static void gated_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	g->inner->ops->caps(g->inner, caps);
	(void)leave(g, &entry, 0);
}

static void gated_error(struct weir_store *self, char *text, size_t size)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	g->inner->ops->error(g->inner, text, size);
	(void)leave(g, &entry, 0);
}

static void gated_close(struct weir_store *self)
{
	struct gated *g = gated_of(self);
	const struct entry entry = enter(g);

	g->inner->ops->close(g->inner);
	(void)leave(g, &entry, 0);
	fair_lock_destroy(&g->lock);
	free(g);
}

/* A watch shares nothing with other calls, so these take no lock. store_watch.c serializes them. */
static int gated_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
			    void **watch, char *why)
{
	struct weir_store *inner = gated_of(self)->inner;

	return inner->ops->watch_open(inner, prefixes, count, watch, why);
}

static int gated_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
			    struct weir_store_change *change)
{
	struct weir_store *inner = gated_of(self)->inner;

	return inner->ops->watch_wait(inner, watch, timeout, change);
}

static void gated_watch_wake(struct weir_store *self, void *watch)
{
	struct weir_store *inner = gated_of(self)->inner;

	inner->ops->watch_wake(inner, watch);
}

static void gated_watch_close(struct weir_store *self, void *watch)
{
	struct weir_store *inner = gated_of(self)->inner;

	inner->ops->watch_close(inner, watch);
}

static const struct weir_store_ops gated_ops = {
	.size = sizeof(gated_ops),
	.name = "store",
	.begin = gated_begin,
	.keep = gated_keep,
	.end = gated_end,
	.commit = gated_commit,
	.read = gated_read,
	.keep_and_read = gated_keep_and_read,
	.caps = gated_caps,
	.error = gated_error,
	.close = gated_close,
	.watch_open = gated_watch_open,
	.watch_wait = gated_watch_wait,
	.watch_wake = gated_watch_wake,
	.watch_close = gated_watch_close,
};

void weir_store_config_init_sized(struct weir_store_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-_.:@", c) != NULL);
}

/* Characters of a key, separated by single /, with none at the beginning. */
static bool is_path(const char *text)
{
	const size_t length = strnlen(text, WEIR_STORE_KEY_MAX + 1);

	if (length == 0 || length > WEIR_STORE_KEY_MAX || text[0] == '/')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_key_char(text[i]) && (text[i] != '/' || text[i - 1] == '/'))
			return false;
	return true;
}

bool store_is_prefix(const char *text)
{
	return is_path(text) && strchr(text, '/') != NULL;
}

bool store_is_key(const char *text)
{
	return store_is_prefix(text) && text[strlen(text) - 1] != '/';
}

/* A key and a =. */
static bool is_exact(const char *text)
{
	char key[WEIR_STORE_KEY_MAX + 1];
	const size_t length = store_exact(text);

	if (length == 0 || length > WEIR_STORE_KEY_MAX)
		return false;
	memcpy(key, text, length);
	key[length] = '\0';
	return store_is_key(key);
}

#ifndef WEIR_FLEET_REDIS
int redis_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	(void)setup;
	*store = NULL;
	return store_say(-ENOTSUP, why, "This library was built without Redis.");
}
#endif

#ifndef WEIR_FLEET_ETCD
int etcd_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	(void)setup;
	*store = NULL;
	return store_say(-ENOTSUP, why, "This library was built without etcd.");
}
#endif

static int open_scheme(const struct store_setup *setup, struct weir_store **store, char *why)
{
	const char *scheme = setup->address.scheme;

	if (scheme[0] == '\0' || strcmp(scheme, "shm") == 0)
		return memory_store_open(setup, store, why);
	if (strcmp(scheme, "rediss") == 0)
		return store_say(
			-ENOTSUP, why,
			"Redis over TLS is not supported: hiredis has none. Use a tunnel, or etcds://.");
	if (strcmp(scheme, "redis") == 0 || strcmp(scheme, "redis-sentinel") == 0)
		return redis_store_open(setup, store, why);
	if (strcmp(scheme, "etcd") == 0 || strcmp(scheme, "etcds") == 0)
		return etcd_store_open(setup, store, why);
	return store_say(
		-EINVAL, why,
		"The address must begin with shm:, redis://, redis-sentinel://, etcd:// or "
		"etcds://.");
}

/* It is read at each login, but a program should learn at once that it cannot be. */
static int check_password(const struct address *address, char *why)
{
	char password[PASSWORD_SIZE];
	const int r = address_password(address, password, why);

	explicit_bzero(password, sizeof(password));
	return r;
}

static int setup_from(const struct weir_store_config *config, struct store_setup *setup, char *why)
{
	const char *name = config->name != NULL ? config->name : "weir";
	int r;

	if (config->size != sizeof(*config))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	*setup = (struct store_setup){
		.timeout = config->timeout != 0 ? config->timeout : TIMEOUT_DEFAULT,
		.config = config,
	};
	if (setup->timeout < WEIR_MS || setup->timeout > TIMEOUT_MAX)
		return store_say(-EINVAL, why, "timeout must be from 1 ms to 10 minutes.");
	if (config->compact != 0 && (config->compact < WEIR_S || config->compact > TTL_MAX))
		return store_say(-EINVAL, why, "compact must be from a second to a day.");
	if (!is_path(name) || strchr(name, '/') != NULL)
		return store_say(-EINVAL, why, "name must consist of letters, digits and -_.:@.");
	memcpy(setup->name, name, strlen(name) + 1);
	r = address_parse(config->address, &setup->address, why);
	return r == 0 ? check_password(&setup->address, why) : r;
}

static int open_gated(const struct store_setup *setup, struct weir_store **store, char *why)
{
	struct gated *g = calloc(1, sizeof(*g));
	struct entry entry;
	int r;

	if (g == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	g->store.ops = &gated_ops;
	fair_lock_init(&g->lock);
	entry = enter(g);
	r = leave(g, &entry, open_scheme(setup, &g->inner, why));
	if (r != 0) {
		fair_lock_destroy(&g->lock);
		free(g);
		return r;
	}
	*store = &g->store;
	return 0;
}

int weir_store_open(const struct weir_store_config *config, struct weir_store **store, char *why,
		    size_t why_size)
{
	struct weir_store_config all_defaults;
	struct store_setup setup = {.timeout = 0};
	const int cancel = cancel_hold();
	char text[WHY_SIZE] = "";
	int r;

	*store = NULL;
	weir_store_config_init(&all_defaults);
	r = setup_from(config != NULL ? config : &all_defaults, &setup, text);
	if (r == 0)
		r = open_gated(&setup, store, text);
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	cancel_release(cancel);
	return r;
}

void weir_store_close(struct weir_store *store)
{
	if (store != NULL)
		store->ops->close(store);
}

void weir_store_caps_take(struct weir_store *store, struct weir_store_caps *caps)
{
	store->ops->caps(store, caps);
}

int weir_store_begin(struct weir_store *store, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	*session = 0;
	*granted = 0;
	if (ttl < WEIR_MS || ttl > TTL_MAX)
		return -EINVAL;
	return store->ops->begin(store, ttl, session, granted);
}

int weir_store_keep(struct weir_store *store, uint64_t session, weir_dur *granted)
{
	*granted = 0;
	return session != 0 ? store->ops->keep(store, session, granted) : -EINVAL;
}

int weir_store_end(struct weir_store *store, uint64_t session)
{
	return session != 0 ? store->ops->end(store, session) : -EINVAL;
}

static bool is_check(const struct weir_store_check *check)
{
	if (!store_is_key(check->key))
		return false;
	switch (check->kind) {
	case WEIR_STORE_CHECK_ABSENT:
		return check->version == 0;
	case WEIR_STORE_CHECK_VERSION:
	case WEIR_STORE_CHECK_MADE:
		return check->version != 0;
	}
	return false;
}

static int check_write(const struct weir_store_write *write, uint64_t session)
{
	if (!store_is_key(write->key))
		return -EINVAL;
	if (write->size > WEIR_STORE_VALUE_MAX)
		return -EMSGSIZE;
	switch (write->kind) {
	case WEIR_STORE_WRITE_BIND:
		return session != 0 && write->value != NULL ? 0 : -EINVAL;
	case WEIR_STORE_WRITE_PUT:
		return write->value != NULL ? 0 : -EINVAL;
	case WEIR_STORE_WRITE_ERASE:
		return write->value == NULL && write->size == 0 ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int weir_store_commit(struct weir_store *store, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	uint64_t unused;
	int r;

	if (check_count >= WEIR_STORE_ROWS_MAX || write_count > WEIR_STORE_ROWS_MAX ||
	    write_count == 0)
		return -EINVAL;
	for (size_t i = 0; i < check_count; i++)
		if (!is_check(&checks[i]))
			return -EINVAL;
	for (size_t i = 0; i < write_count; i++) {
		r = check_write(&writes[i], session);
		if (r != 0)
			return r;
		for (size_t j = 0; j < i; j++)
			if (strcmp(writes[i].key, writes[j].key) == 0)
				return -EINVAL;
	}
	return store->ops->commit(store, session, checks, check_count, writes, write_count,
				  version != NULL ? version : &unused);
}

/* Whether a row could match both that prefix and an earlier one. */
static bool is_covered(const char *const *prefixes, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		const size_t a = strlen(prefixes[i]), b = strlen(prefixes[index]);

		if (strncmp(prefixes[i], prefixes[index], a < b ? a : b) == 0)
			return true;
	}
	return false;
}

static bool are_prefixes(const char *const *prefixes, size_t count)
{
	if (count == 0 || count > WEIR_STORE_ROWS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if ((prefixes[i][0] != '\0' && !store_is_prefix(prefixes[i]) &&
		     !is_exact(prefixes[i])) ||
		    is_covered(prefixes, i))
			return false;
	return true;
}

int weir_store_read(struct weir_store *store, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct weir_store_view unused;

	if (!are_prefixes(prefixes, count))
		return -EINVAL;
	return store->ops->read(store, prefixes, count, row, arg, view != NULL ? view : &unused);
}

int weir_store_keep_and_read(struct weir_store *store, uint64_t session, weir_dur *granted,
			     const char *const *prefixes, size_t count, weir_store_row_fn *row,
			     void *arg, struct weir_store_view *view)
{
	struct weir_store_view unused;
	int r;

	*granted = 0;
	if (session == 0 || !are_prefixes(prefixes, count))
		return -EINVAL;
	r = keep_and_read(store, session, granted, prefixes, count, row, arg,
			  view != NULL ? view : &unused);
	if (r != 0)
		*granted = 0;
	return r;
}

void weir_store_error(struct weir_store *store, char *text, size_t size)
{
	if (size > 0) {
		text[0] = '\0';
		store->ops->error(store, text, size);
	}
}
