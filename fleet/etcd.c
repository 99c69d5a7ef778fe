/*
 * The store that is an etcd cluster: its transactions are ours, its revisions are our versions, and
 * its leases our sessions.
 *
 * Keys are NAME/KEY. A session has a row of its own, NAME//ID, so that a transaction can tell
 * whether it lives. etcd keeps what it has acknowledged, and an answer to a reading is no older
 * than the question. It may keep a lease longer than it said, after a change of leaders; never
 * shorter. Who answers as another cluster than before is not believed: its numbers begin anew.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base64.h"
#include "etcd_link.h"
#include "store.h"

#define TTL_MIN  (2 * WEIR_S) /* it grants no less */
#define LATE     WEIR_S       /* it looks for what is over each half second */
#define KEY_SIZE (2 * WEIR_STORE_KEY_MAX + 4)
#define TRANSACT "/v3/kv/txn"
#define KEEP     "/v3/lease/keepalive"

struct etcd {
	struct weir_store store;
	struct etcd_link *link;
	char name[WEIR_STORE_KEY_MAX + 1];
	uint64_t cluster; /* 0: not known yet */
	char why[WHY_SIZE];
};

static json_t *encoded(const void *bytes, size_t size)
{
	char *text = malloc(base64_size(size) + 1);
	json_t *string;

	if (text == NULL)
		return NULL;
	base64_encode(bytes, size, text);
	string = json_string(text);
	free(text);
	return string;
}

static json_t *encoded_key(const struct etcd *e, const char *key)
{
	char full[KEY_SIZE];
	const int n = snprintf(full, sizeof(full), "%s/%s", e->name, key);

	return encoded(full, (size_t)n);
}

/* What comes after all keys of the prefix. */
static json_t *encoded_end(const struct etcd *e, const char *prefix)
{
	char full[KEY_SIZE];
	const int n = snprintf(full, sizeof(full), "%s/%s", e->name, prefix);

	full[n - 1]++; /* keys are of characters below the last one */
	return encoded(full, (size_t)n);
}

static json_t *number(uint64_t value)
{
	return json_sprintf("%llu", (unsigned long long)value);
}

static void session_key(uint64_t session, char *key, size_t size)
{
	(void)snprintf(key, size, "/%llx", (unsigned long long)session);
}

/* Whose answer it is; then the version that it tells of. */
static int look_at_header(struct etcd *e, const json_t *answer, uint64_t *version)
{
	const json_t *header = json_object_get(answer, "header");
	uint64_t cluster;

	if (!etcd_number(header, "cluster_id", &cluster) || cluster == 0 ||
	    !etcd_number(header, "revision", version))
		return etcd_senseless(e->link);
	if (e->cluster != 0 && e->cluster != cluster)
		return store_say(-EIO, e->why, "This is another etcd cluster than before.");
	e->cluster = cluster;
	return 0;
}

static json_t *transaction(json_t *compare, json_t *success, json_t *failure)
{
	return json_pack("{s:o*, s:o*, s:o*}", "compare", compare, "success", success, "failure",
			 failure);
}

/* A transaction, whose three parts it takes. 0: it answered, and *succeeded or not. */
static int transact(struct etcd *e, json_t *compare, json_t *success, json_t *failure,
		    bool harmless, uint64_t *version, json_t **answer)
{
	int r = etcd_ask(e->link, TRANSACT, transaction(compare, success, failure), harmless,
			 answer);

	if (r == 0)
		r = look_at_header(e, *answer, version);
	if (r != 0) {
		json_decref(*answer);
		*answer = NULL;
	}
	return r;
}

static bool has_succeeded(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "succeeded"));
}

/* A number of its own, with which a grant can be asked for once more. */
static int grant(struct etcd *e, uint64_t session, weir_dur ttl, weir_dur *granted)
{
	json_t *request = json_pack("{s:o, s:o}", "ID", number(session), "TTL",
				    number((ttl + WEIR_S - 1) / WEIR_S));
	json_t *answer;
	uint64_t id, seconds;
	int r = etcd_ask(e->link, "/v3/lease/grant", request, false, &answer);

	if (r != 0)
		return r;
	if (!etcd_number(answer, "ID", &id) || !etcd_number(answer, "TTL", &seconds) ||
	    id != session || seconds == 0 || seconds > 1000000000)
		r = etcd_senseless(e->link);
	else
		*granted = seconds * WEIR_S;
	json_decref(answer);
	return r;
}

static json_t *put_of(const struct etcd *e, const char *key, const void *value, size_t size,
		      uint64_t session)
{
	return json_pack("{s:{s:o, s:o, s:o}}", "request_put", "key", encoded_key(e, key), "value",
			 encoded(value, size), "lease", number(session));
}

static int etcd_end(struct weir_store *self, uint64_t session)
{
	struct etcd *e = (struct etcd *)self;
	json_t *answer;
	int r = etcd_ask(e->link, "/v3/lease/revoke", json_pack("{s:o}", "ID", number(session)),
			 true, &answer);

	json_decref(answer);
	return r == -ESTALE ? 0 : r;
}

static int etcd_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct etcd *e = (struct etcd *)self;
	json_t *answer, *put;
	uint64_t version;
	char key[32];
	int r;

	if (getrandom(session, sizeof(*session), 0) != sizeof(*session))
		return store_say(-EIO, e->why, "There is no chance to draw from.");
	*session = (*session >> 1) | 1;
	r = grant(e, *session, ttl, granted);
	if (r == 0) {
		session_key(*session, key, sizeof(key));
		put = put_of(e, key, "", 0, *session);
		r = transact(e, NULL, json_pack("[o]", put), NULL, true, &version, &answer);
		if (r == 0)
			json_decref(answer);
		else
			(void)etcd_end(self, *session);
	}
	if (r != 0)
		*session = 0;
	return r;
}

/* It answers for a lease that is over too, without a time. */
static int take_granted(struct etcd *e, const json_t *answer, weir_dur *granted)
{
	const json_t *result = json_object_get(answer, "result");
	uint64_t seconds;

	if (!etcd_number(result, "TTL", &seconds) || seconds > 1000000000 ||
	    json_object_get(result, "ID") == NULL)
		return etcd_senseless(e->link);
	if (seconds == 0)
		return store_say(-ESTALE, e->why, "The session is over.");
	*granted = seconds * WEIR_S;
	return 0;
}

static int etcd_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct etcd *e = (struct etcd *)self;
	json_t *answer;
	int r = etcd_ask(e->link, KEEP, json_pack("{s:o}", "ID", number(session)), true, &answer);

	if (r == 0)
		r = take_granted(e, answer, granted);
	json_decref(answer);
	return r;
}

static json_t *compare_of(const struct etcd *e, const struct weir_check *check)
{
	const bool written = check->kind == WEIR_CHECK_VERSION;

	return json_pack("{s:o, s:s, s:s, s:o}", "key", encoded_key(e, check->key), "result",
			 "EQUAL", "target", written ? "MOD" : "CREATE",
			 written ? "mod_revision" : "create_revision", number(check->version));
}

static json_t *write_of(const struct etcd *e, const struct weir_write *w, uint64_t session)
{
	if (w->kind == WEIR_WRITE_ERASE)
		return json_pack("{s:{s:o}}", "request_delete_range", "key",
				 encoded_key(e, w->key));
	return put_of(e, w->key, w->value, w->size, w->kind == WEIR_WRITE_BIND ? session : 0);
}

/* Where it fails, what is asked is whether the session is still there. */
static json_t *asking_for(const struct etcd *e, const char *key)
{
	return json_pack("[{s:{s:o, s:b}}]", "request_range", "key", encoded_key(e, key),
			 "count_only", 1);
}

static json_t *living(const struct etcd *e, const char *key)
{
	return json_pack("{s:o, s:s, s:s, s:s}", "key", encoded_key(e, key), "result", "GREATER",
			 "target", "CREATE", "create_revision", "0");
}

static int why_failed(struct etcd *e, const json_t *answer, uint64_t session)
{
	const json_t *first = json_array_get(json_object_get(answer, "responses"), 0);
	const json_t *range = json_object_get(first, "response_range");
	uint64_t count = 1;

	if (session != 0 && !etcd_number(range, "count", &count))
		return etcd_senseless(e->link);
	if (count == 0)
		return store_say(-ESTALE, e->why, "The session is over.");
	return store_say(-EAGAIN, e->why, "Something has changed since it was read.");
}

static int etcd_commit(struct weir_store *self, uint64_t session, const struct weir_check *checks,
		       size_t check_count, const struct weir_write *writes, size_t write_count,
		       uint64_t *version)
{
	struct etcd *e = (struct etcd *)self;
	json_t *compare = json_array(), *success = json_array(), *failure = NULL, *answer;
	char key[32];
	int r;

	if (session != 0) {
		session_key(session, key, sizeof(key));
		json_array_append_new(compare, living(e, key));
		failure = asking_for(e, key);
	}
	for (size_t i = 0; i < check_count; i++)
		json_array_append_new(compare, compare_of(e, &checks[i]));
	for (size_t i = 0; i < write_count; i++)
		json_array_append_new(success, write_of(e, &writes[i], session));
	if (json_array_size(success) != write_count ||
	    json_array_size(compare) != check_count + (session != 0)) {
		json_decref(compare);
		json_decref(success);
		json_decref(failure);
		return store_say(-ENOMEM, e->why, "There is no memory.");
	}
	r = transact(e, compare, success, failure, false, version, &answer);
	if (r != 0)
		return r;
	if (!has_succeeded(answer))
		r = why_failed(e, answer, session);
	json_decref(answer);
	return r;
}

/* One row, its key and value decoded into room of the caller's. */
static bool row_of(const struct etcd *e, const json_t *kv, char *room, struct weir_row *row)
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
	return (value == NULL || base64_decode(json_string_value(value), json_string_length(value),
					       room + key_size + 1, &row->size)) &&
	       etcd_number(kv, "mod_revision", &row->version) &&
	       etcd_number(kv, "create_revision", &row->made);
}

static size_t room_for(const json_t *kv)
{
	return json_string_length(json_object_get(kv, "key")) +
	       json_string_length(json_object_get(kv, "value")) + 2;
}

/* 1: row() has had enough. */
static int show_row(struct etcd *e, const json_t *kv, weir_row_fn *row, void *arg)
{
	char *room = malloc(room_for(kv));
	struct weir_row shown;
	int r;

	if (room == NULL)
		return store_say(-ENOMEM, e->why, "There is no memory.");
	if (!row_of(e, kv, room, &shown))
		r = etcd_senseless(e->link);
	else /* a session begins with a / */
		r = shown.key[0] == '/' || row(arg, &shown) ? 0 : 1;
	free(room);
	return r;
}

static int show(struct etcd *e, const json_t *answer, size_t count, weir_row_fn *row, void *arg)
{
	const json_t *responses = json_object_get(answer, "responses"), *response, *kv;
	size_t i, j;
	int r = 0;

	if (json_array_size(responses) != count)
		return etcd_senseless(e->link);
	json_array_foreach(responses, i, response)
	{
		const json_t *range = json_object_get(response, "response_range");

		if (!json_is_object(range))
			return etcd_senseless(e->link);
		json_array_foreach(json_object_get(range, "kvs"), j, kv)
		{
			r = show_row(e, kv, row, arg);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

static json_t *ranges(const struct etcd *e, const char *const *prefixes, size_t count)
{
	json_t *ranges = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(ranges, json_pack("{s:{s:o, s:o}}", "request_range", "key",
							encoded_key(e, prefixes[i]), "range_end",
							encoded_end(e, prefixes[i])));
	return ranges;
}

static int etcd_read(struct weir_store *self, const char *const *prefixes, size_t count,
		     weir_row_fn *row, void *arg, struct weir_view *view)
{
	struct etcd *e = (struct etcd *)self;
	json_t *answer;
	int r = transact(e, NULL, ranges(e, prefixes, count), NULL, true, &view->version, &answer);

	if (r != 0)
		return r;
	view->proven = WEIR_FOREVER;
	r = show(e, answer, count, row, arg);
	json_decref(answer);
	return r < 0 ? r : 0;
}

/* Nothing is shown to whoever has no session any more. */
static int etcd_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			      const char *const *prefixes, size_t count, weir_row_fn *row,
			      void *arg, struct weir_view *view)
{
	static const char *const paths[] = {KEEP, TRANSACT};
	struct etcd *e = (struct etcd *)self;
	json_t *const requests[] = {
		json_pack("{s:o}", "ID", number(session)),
		transaction(NULL, ranges(e, prefixes, count), NULL),
	};
	json_t *answers[2];
	int r = etcd_ask_both(e->link, paths, requests, answers);

	if (r == 0)
		r = take_granted(e, answers[0], granted);
	if (r == 0)
		r = look_at_header(e, answers[1], &view->version);
	view->proven = WEIR_FOREVER;
	if (r == 0)
		r = show(e, answers[1], count, row, arg);
	json_decref(answers[0]);
	json_decref(answers[1]);
	return r < 0 ? r : 0;
}

static void etcd_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	(void)self;
	*caps = (struct weir_store_caps){
		.ttl_min = TTL_MIN,
		.late = LATE,
		.durable = 1,
		.note = "",
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
	free(e);
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
};

static bool see_nothing(void *arg, const struct weir_row *row)
{
	(void)arg;
	(void)row;
	return false;
}

int etcd_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	static const char *const nothing[] = {"weir/"};
	struct etcd *e = calloc(1, sizeof(*e));
	struct weir_view view;
	int r;

	if (e == NULL)
		return store_say(-ENOMEM, why, "There is no memory.");
	e->store.ops = &etcd_ops;
	(void)snprintf(e->name, sizeof(e->name), "%s", setup->name);
	r = etcd_link_open(setup, e->why, &e->link);
	if (r == 0)
		r = etcd_read(&e->store, nothing, 1, see_nothing, NULL, &view);
	if (r == 0 || (r == -EIO && setup->config->lazy != 0)) {
		*store = &e->store;
		return 0;
	}
	(void)snprintf(why, WHY_SIZE, "%s", e->why);
	etcd_close(&e->store);
	return r;
}
