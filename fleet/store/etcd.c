/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store in an etcd cluster: commits are its transactions, versions are its revisions plus a
 * base, and sessions are its leases.
 *
 * Each session has a row, so that a transaction can check whether it is alive. etcd keeps what it
 * has acknowledged, and the answer to a read is no older than the request. After a change of leader
 * it may keep a lease longer than it said; if it ends one sooner, it is no longer the same store.
 * Every transaction checks that it still is (etcd_life.c): a commit that was based on a reading of
 * another store is not written, and a session of another store is over.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fleet/store/base64.h"
#include "fleet/store/etcd_rows.h"

#define TTL_MIN  (2 * WEIR_S) /* etcd grants no shorter lease */
#define LATE     WEIR_S       /* etcd looks for expired leases every 500 ms */
#define TRANSACT "/v3/kv/txn"
#define KEEP     "/v3/lease/keepalive"

/*
 * Send a transaction, taking ownership of its three parts. 0: etcd answered, and the caller frees
 * *answer.
 */
static int transact(struct etcd *e, json_t *compare, json_t *success, json_t *failure,
		    bool idempotent, uint64_t *version, json_t **answer)
{
	int r = etcd_ask(e->link, TRANSACT, etcd_transaction(compare, success, failure), idempotent,
			 answer);

	if (r == 0)
		r = etcd_verify(e, *answer, version);
	if (r != 0) {
		json_decref(*answer);
		*answer = NULL;
	}
	return r;
}

/*
 * Compares that pass if this is still the same store, and the session, which belongs to it, is
 * alive.
 */
static json_t *compare_alive(const struct etcd *e, uint64_t session)
{
	char key[32];

	if (session == 0)
		return etcd_is_text(e, STORE_KEY, e->identity);
	etcd_session_key(session, key, sizeof(key));
	return etcd_is_text(e, key, e->identity);
}

/* What to read in the transaction if that check, or another one, fails. */
static json_t *read_on_failure(const struct etcd *e, uint64_t session)
{
	char key[32];

	if (session == 0)
		return json_pack("[o]", etcd_range(e, STORE_KEY, NULL));
	etcd_session_key(session, key, sizeof(key));
	return json_pack("[o, o]", etcd_range(e, STORE_KEY, NULL), etcd_range(e, key, NULL));
}

static int over(struct etcd *e)
{
	return store_say(-ESTALE, e->why, "The session is over.");
}

/* The same, but this very store says so: it may have ended the session too early. */
static int gone(struct etcd *e, uint64_t session)
{
	etcd_note_over(e, session);
	return over(e);
}

static int changed(struct etcd *e)
{
	return store_say(-EAGAIN, e->why, "Something has changed since it was read.");
}

static int why_failed(struct etcd *e, const json_t *answer, uint64_t session)
{
	char text[IDENTITY_SIZE];

	if (!json_is_object(etcd_response(answer, 0)) ||
	    (session != 0 && !json_is_object(etcd_response(answer, 1))))
		return etcd_invalid_response(e->link);
	if (!etcd_is_known(e, etcd_response(answer, 0)))
		return session != 0 ? over(e) : changed(e);
	if (session != 0 && (!etcd_value(etcd_response(answer, 1), text, sizeof(text)) ||
			     strcmp(text, e->identity) != 0))
		return gone(e, session);
	return changed(e);
}

/* The session number is chosen here, so that a grant can be requested again. */
static int grant(struct etcd *e, uint64_t session, weir_dur ttl, weir_dur *granted)
{
	json_t *request = json_pack("{s:o, s:o}", "ID", etcd_text_of(session), "TTL",
				    etcd_text_of((ttl + WEIR_S - 1) / WEIR_S));
	json_t *answer;
	uint64_t id, seconds;
	int r = etcd_ask(e->link, "/v3/lease/grant", request, false, &answer);

	if (r != 0)
		return r;
	if (!etcd_number(answer, "ID", &id) || !etcd_number(answer, "TTL", &seconds) ||
	    id != session || seconds == 0 || seconds > 1000000000)
		r = etcd_invalid_response(e->link);
	else
		*granted = seconds * WEIR_S;
	json_decref(answer);
	return r;
}

static int etcd_end(struct weir_store *self, uint64_t session)
{
	struct etcd *e = (struct etcd *)self;
	json_t *answer;
	int r;

	etcd_forget_session(e, session);
	r = etcd_ask(e->link, "/v3/lease/revoke", json_pack("{s:o}", "ID", etcd_text_of(session)),
		     true, &answer);
	json_decref(answer);
	return r == -ESTALE ? 0 : r;
}

/* Create the session's row if this is still the same store. -EAGAIN: it is not. */
static int write_session(struct etcd *e, uint64_t session)
{
	json_t *answer, *put;
	uint64_t version;
	char key[32];
	int r;

	etcd_session_key(session, key, sizeof(key));
	put = etcd_put(e, key, e->identity, strlen(e->identity), session);
	r = transact(e, json_pack("[o]", compare_alive(e, 0)), json_pack("[o]", put),
		     read_on_failure(e, 0), true, &version, &answer);
	if (r != 0)
		return r;
	if (!etcd_has_succeeded(answer))
		r = why_failed(e, answer, 0);
	json_decref(answer);
	return r;
}

static int try_begin(struct etcd *e, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	int r = etcd_identify(e);
	weir_time sent;

	if (r != 0)
		return r;
	if (getrandom(session, sizeof(*session), 0) != sizeof(*session))
		return store_say(-EIO, e->why, "getrandom() failed.");
	*session = (*session >> 1) | 1;
	sent = etcd_now();
	r = grant(e, *session, ttl, granted);
	if (r == 0)
		r = write_session(e, *session);
	if (r == 0)
		etcd_note_session(e, *session, sent, *granted);
	else
		(void)etcd_end(&e->store, *session);
	return r;
}

static int etcd_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct etcd *e = (struct etcd *)self;
	int r = try_begin(e, ttl, session, granted);

	if (r == -EAGAIN || (r == -EIO && e->doubted))
		r = try_begin(e, ttl, session, granted);
	if (r != 0)
		*session = 0;
	return r == -EAGAIN ? -EIO : r;
}

/* For an expired lease etcd answers as well, but without a TTL. */
static int take_granted(struct etcd *e, const json_t *answer, uint64_t session, weir_dur *granted)
{
	const json_t *result = json_object_get(answer, "result");
	uint64_t seconds;

	if (!etcd_number(result, "TTL", &seconds) || seconds > 1000000000 ||
	    json_object_get(result, "ID") == NULL)
		return etcd_invalid_response(e->link);
	if (seconds == 0)
		return gone(e, session);
	*granted = seconds * WEIR_S;
	return 0;
}

static json_t *compare_of(const struct etcd *e, const struct weir_store_check *check)
{
	const bool written = check->kind == WEIR_STORE_CHECK_VERSION;
	const uint64_t revision = check->version > e->base ? check->version - e->base : 0;

	return json_pack("{s:o, s:s, s:s, s:o}", "key", etcd_key(e, check->key), "result", "EQUAL",
			 "target", written ? "MOD" : "CREATE",
			 written ? "mod_revision" : "create_revision", etcd_text_of(revision));
}

/* A version from before this store began: there is no such row. */
static bool is_from_before(const struct etcd *e, const struct weir_store_check *checks,
			   size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (checks[i].kind != WEIR_STORE_CHECK_ABSENT && checks[i].version <= e->base)
			return true;
	return false;
}

static json_t *write_of(const struct etcd *e, const struct weir_store_write *w, uint64_t session)
{
	if (w->kind == WEIR_STORE_WRITE_ERASE)
		return etcd_erase(e, w->key);
	return etcd_put(e, w->key, w->value, w->size,
			w->kind == WEIR_STORE_WRITE_BIND ? session : 0);
}

/* A commit that was based on a reading of another store is not written to this one. */
static int identify_unchanged(struct etcd *e, uint64_t session)
{
	char before[IDENTITY_SIZE];
	int r;

	memcpy(before, e->identity, sizeof(before));
	r = etcd_identify(e);
	if (r == 0 && before[0] != '\0' && strcmp(before, e->identity) != 0)
		r = session != 0 ? over(e) : changed(e);
	return r;
}

static int etcd_commit(struct weir_store *self, uint64_t session,
		       const struct weir_store_check *checks, size_t check_count,
		       const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	struct etcd *e = (struct etcd *)self;
	json_t *compare, *success, *answer, *put_age;
	weir_dur age;
	int r = identify_unchanged(e, session);

	if (r != 0)
		return r;
	if (session == 0 && is_from_before(e, checks, check_count))
		return changed(e);
	compare = json_pack("[o]", compare_alive(e, session));
	success = json_array();
	for (size_t i = 0; i < check_count; i++)
		json_array_append_new(compare, compare_of(e, &checks[i]));
	for (size_t i = 0; i < write_count; i++)
		json_array_append_new(success, write_of(e, &writes[i], session));
	if (json_array_size(success) != write_count ||
	    json_array_size(compare) != check_count + 1) {
		json_decref(compare);
		json_decref(success);
		return store_say(-ENOMEM, e->why, "Out of memory.");
	}
	put_age = write_count < WEIR_STORE_ROWS_MAX ? etcd_put_age(e, &age) : NULL;
	if (put_age != NULL && json_array_append_new(success, put_age) != 0)
		put_age = NULL; /* the next commit tries again */
	r = etcd_ask(e->link, TRANSACT,
		     etcd_transaction(compare, success, read_on_failure(e, session)), false,
		     &answer);
	if (r != 0)
		return r;
	r = etcd_verify(e, answer, version);
	/* Nothing was written, whichever store it is. */
	if (!etcd_has_succeeded(answer) && (r == 0 || e->doubted))
		r = why_failed(e, answer, session);
	else if (r == 0 && put_age != NULL)
		e->published = age;
	json_decref(answer);
	return r;
}

/* Decode the key and value of one row into memory of the caller's. */
static bool row_of(const struct etcd *e, const json_t *kv, char *room, struct weir_store_row *row)
{
	const json_t *key = json_object_get(kv, "key"), *value = json_object_get(kv, "value");
	const size_t prefix = strlen(e->name) + 1;
	size_t key_size;

	if (!json_is_string(key) || (value != NULL && !json_is_string(value)) ||
	    !base64_decode(json_string_value(key), json_string_length(key), room, &key_size) ||
	    key_size <= prefix)
		return false;
	room[key_size] = '\0';
	row->key = room + prefix;
	row->value = room + key_size + 1;
	row->size = 0;
	if ((value != NULL && !base64_decode(json_string_value(value), json_string_length(value),
					     room + key_size + 1, &row->size)) ||
	    !etcd_number(kv, "mod_revision", &row->version) ||
	    !etcd_number(kv, "create_revision", &row->made))
		return false;
	row->version += e->base;
	row->made += e->base;
	return true;
}

static size_t room_for(const json_t *kv)
{
	return json_string_length(json_object_get(kv, "key")) +
	       json_string_length(json_object_get(kv, "value")) + 2;
}

/* 1: row() asked to stop. */
static int show_row(struct etcd *e, const json_t *kv, weir_store_row_fn *row, void *arg)
{
	char *room = malloc(room_for(kv));
	struct weir_store_row shown;
	int r;

	if (room == NULL)
		return store_say(-ENOMEM, e->why, "Out of memory.");
	if (!row_of(e, kv, room, &shown))
		r = etcd_invalid_response(e->link);
	else /* the rows of the store itself begin with a / */
		r = shown.key[0] == '/' || row(arg, &shown) ? 0 : 1;
	free(room);
	return r;
}

static int show(struct etcd *e, const json_t *answer, size_t count, weir_store_row_fn *row,
		void *arg)
{
	const json_t *responses = json_object_get(answer, "responses"), *response, *kv;
	size_t i, j;
	int r = 0;

	if (json_array_size(responses) != count)
		return etcd_invalid_response(e->link);
	json_array_foreach(responses, i, response)
	{
		const json_t *range = json_object_get(response, "response_range");

		if (!json_is_object(range))
			return etcd_invalid_response(e->link);
		json_array_foreach(json_object_get(range, "kvs"), j, kv)
		{
			r = show_row(e, kv, row, arg);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

/* NULL: out of memory. */
static json_t *ranges(const struct etcd *e, const char *const *prefixes, size_t count)
{
	json_t *ranges = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(ranges, etcd_range(e, NULL, prefixes[i]));
	if (json_array_size(ranges) == count)
		return ranges;
	json_decref(ranges);
	return NULL;
}

/*
 * Pass on the rows that were read if they are of this store, and, if session is not 0, of the store
 * of that session.
 */
static int show_read(struct etcd *e, const json_t *answer, uint64_t session, size_t count,
		     weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	int r;

	if (!etcd_has_succeeded(answer))
		return why_failed(e, answer, session);
	view->proven = etcd_age(e);
	r = show(e, answer, count, row, arg);
	return r < 0 ? r : 0;
}

static int try_read(struct etcd *e, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	json_t *answer;
	int r = etcd_identify(e);

	if (r == 0)
		r = transact(e, json_pack("[o]", compare_alive(e, 0)), ranges(e, prefixes, count),
			     read_on_failure(e, 0), true, &view->version, &answer);
	if (r != 0)
		return r;
	r = show_read(e, answer, 0, count, row, arg, view);
	json_decref(answer);
	return r;
}

/* If it is no longer the same store, no row has been passed on yet, so the read can be repeated. */
static int etcd_read(struct weir_store *self, const char *const *prefixes, size_t count,
		     weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct etcd *e = (struct etcd *)self;
	int r = try_read(e, prefixes, count, row, arg, view);

	if (r != 0 && e->doubted)
		r = try_read(e, prefixes, count, row, arg, view);
	if (r == 0)
		etcd_space_step(e, view->version);
	return r == -EAGAIN ? -EIO : r;
}

/* Without a live session no row is passed on. */
static int ask_kept(struct etcd *e, uint64_t session, weir_dur *granted,
		    const char *const *prefixes, size_t count, weir_store_row_fn *row, void *arg,
		    struct weir_store_view *view)
{
	static const char *const paths[] = {KEEP, TRANSACT};
	json_t *const requests[] = {
		json_pack("{s:o}", "ID", etcd_text_of(session)),
		etcd_transaction(json_pack("[o]", compare_alive(e, session)),
				 ranges(e, prefixes, count), read_on_failure(e, session)),
	};
	const weir_time sent = etcd_now();
	json_t *answers[2];
	int r = etcd_ask_both(e->link, paths, requests, answers);

	if (r == 0)
		r = etcd_verify(e, answers[1], &view->version);
	if (r == 0)
		r = take_granted(e, answers[0], session, granted);
	if (r == 0)
		r = show_read(e, answers[1], session, count, row, arg, view);
	json_decref(answers[0]);
	json_decref(answers[1]);
	if (r == 0) {
		etcd_note_session(e, session, sent, *granted);
		etcd_space_step(e, view->version);
	}
	return r == -EAGAIN ? -EIO : r;
}

static int etcd_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			      const char *const *prefixes, size_t count, weir_store_row_fn *row,
			      void *arg, struct weir_store_view *view)
{
	struct etcd *e = (struct etcd *)self;
	int r = identify_unchanged(e, session);

	return r == 0 ? ask_kept(e, session, granted, prefixes, count, row, arg, view) : r;
}

static bool skip_row(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	(void)row;
	return false;
}

static int etcd_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct weir_store_view view;

	return etcd_keep_and_read(self, session, granted, NULL, 0, skip_row, NULL, &view);
}

static void etcd_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	const struct etcd *e = (struct etcd *)self;

	*caps = (struct weir_store_caps){
		.ttl_min = TTL_MIN,
		.late = LATE,
		.durable = 1,
		.note = e->space.note,
	};
}

static void etcd_error(struct weir_store *self, char *text, size_t size)
{
	(void)snprintf(text, size, "%s", ((struct etcd *)self)->why);
}

static void etcd_close(struct weir_store *self)
{
	struct etcd *e = (struct etcd *)self;

	etcd_link_close(e->link);
	free((char *)(uintptr_t)e->config.tls_ca);
	free((char *)(uintptr_t)e->config.tls_cert);
	free((char *)(uintptr_t)e->config.tls_key);
	explicit_bzero(&e->address, sizeof(e->address));
	free(e);
}

static bool copy_text(const char **to, const char *from)
{
	*to = from != NULL ? strdup(from) : NULL;
	return (*to != NULL) == (from != NULL);
}

/* False: out of memory. */
static bool copy_setup(struct etcd *e, const struct store_setup *setup)
{
	const struct weir_store_config *c = setup->config;

	e->address = setup->address;
	e->timeout = setup->timeout;
	return copy_text(&e->config.tls_ca, c->tls_ca) &&
	       copy_text(&e->config.tls_cert, c->tls_cert) &&
	       copy_text(&e->config.tls_key, c->tls_key);
}

static const struct weir_store_ops etcd_ops = {
	.size = sizeof(etcd_ops),
	.name = "etcd",
	.begin = etcd_begin,
	.keep = etcd_keep,
	.end = etcd_end,
	.commit = etcd_commit,
	.read = etcd_read,
	.keep_and_read = etcd_keep_and_read,
	.caps = etcd_caps,
	.error = etcd_error,
	.close = etcd_close,
	.watch_open = etcd_watch_open,
	.watch_wait = etcd_watch_wait,
	.watch_wake = etcd_watch_wake,
	.watch_close = etcd_watch_close,
};

int etcd_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	struct etcd *e = calloc(1, sizeof(*e));
	int r;

	if (e == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	e->store.ops = &etcd_ops;
	(void)snprintf(e->name, sizeof(e->name), "%s", setup->name);
	e->space.interval = setup->config->compact;
	r = copy_setup(e, setup) ? etcd_link_open(setup, e->why, &e->link)
				 : store_say(-ENOMEM, e->why, "Out of memory.");
	if (r == 0)
		r = etcd_identify(e);
	if (r == 0)
		etcd_space_step(e, e->seen);
	if (r == 0 || (r == -EIO && setup->config->lazy != 0)) {
		*store = &e->store;
		return 0;
	}
	(void)snprintf(why, WHY_SIZE, "%s", e->why);
	etcd_close(&e->store);
	return r;
}
