/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store in a Redis server: hiredis, and one script (redis.lua) that runs every operation
 * atomically, by the server's clock.
 *
 * What Redis does not keep is reported rather than hidden. Redis forgets acknowledged data when it
 * is killed, unless appendfsync is always; a replica that takes over may lack the most recent data;
 * and Redis may evict. The current configuration of the server says nothing about earlier losses.
 * So the store in it has an incarnation, which ends with each run of the server that cannot be
 * shown to have all that the run before it acknowledged. Each request names the incarnation that it
 * is meant for; weir_store_view.proven counts from the incarnation's beginning, so that members can
 * let old leases end first. The clock of a server is the wall clock of its machine: if it is set
 * forward, sessions end early.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fleet/store/redis_link.h"

#define ATTEMPTS 2

/* The status that every answer of the script begins with; -EIO if it has none. */
static int status_of(struct redis *r, const redisReply *reply, size_t elements)
{
	const char *status = "";

	if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	    redis_is_text(reply->element[0]))
		status = reply->element[0]->str;
	if (strcmp(status, "ok") == 0 && reply->elements == elements)
		return 0;
	if (strcmp(status, "other") == 0 && redis_adopt(r, reply) == 0)
		return store_say(REDIS_OTHER, r->why, "Redis has lost its data.");
	if (strcmp(status, "again") == 0)
		return store_say(-EAGAIN, r->why, "Something has changed since it was read.");
	if (strcmp(status, "stale") == 0)
		return store_say(-ESTALE, r->why, "The session is over.");
	redis_drop(r);
	return store_say(-EIO, r->why, "Redis sent an invalid response.");
}

/*
 * Check for an answer of that many elements. Otherwise free it, and return the error of its status.
 */
static int checked(struct redis *r, redisReply **reply, size_t elements)
{
	int error = status_of(r, *reply, elements);

	if (error == 0)
		return 0;
	freeReplyObject(*reply);
	*reply = NULL;
	return error;
}

/* Run the script. Returns 0, and an answer with that many elements to free. */
static int run(struct redis *r, const struct redis_command *c, size_t elements, redisReply **reply)
{
	int error = redis_ask(r, c, reply);

	return error != 0 ? error : checked(r, reply, elements);
}

/* A request, and its results. */
struct request {
	uint64_t session;
	weir_dur ttl;
	const struct weir_store_check *checks;
	size_t check_count;
	const struct weir_store_write *writes;
	size_t write_count;
	const char *const *prefixes;
	size_t count;

	weir_dur granted;
	uint64_t version;
	redisReply *rows; /* to be freed */
};

typedef int attempt_fn(struct redis *r, struct request *q);

/* Whether the request is based on a reading of another store. */
static bool is_outdated(const struct redis *r, const char *before, bool idempotent)
{
	return !idempotent && before[0] != '\0' && strcmp(r->incarnation, before) != 0;
}

/*
 * Repeat a request, on a new connection, if nothing was done because the script was not loaded, or
 * if it is idempotent; and if the store was not the known one, and is known now. In that last case
 * a commit is not repeated, because it was based on a reading of the other store.
 */
static int ask(struct redis *r, struct request *q, attempt_fn *attempt, bool idempotent)
{
	char before[DRAW_SIZE];
	int error = -ENOENT;

	memcpy(before, r->incarnation, sizeof(before));
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		error = redis_connect(r);
		if (error == 0 && is_outdated(r, before, idempotent))
			error = REDIS_OTHER;
		else if (error == 0)
			error = attempt(r, q);
		if (error == REDIS_OTHER && !idempotent)
			return q->session != 0 ? -ESTALE : -EAGAIN;
		if (error != REDIS_OTHER && error != -ENOENT && (error != -EIO || !idempotent))
			break;
	}
	return error == -ENOENT || error == REDIS_OTHER ? -EIO : error;
}

/* Record the highest version seen of this store; it never goes back. */
static void note_version(struct redis *r, uint64_t version)
{
	if (version > r->seen)
		r->seen = version;
}

static int invalid_response(struct redis *r)
{
	redis_drop(r);
	return store_say(-EIO, r->why, "Redis sent an invalid response.");
}

/*
 * The session number is random: a number counted by the server might be used twice if the server
 * loses data.
 */
static int try_begin(struct redis *r, struct request *q)
{
	struct redis_command c;
	redisReply *reply;
	int error = redis_script_command(r, "begin", &c);

	if (error != 0 || getrandom(&q->session, sizeof(q->session), 0) != sizeof(q->session))
		return store_say(-ECANCELED, r->why, "getrandom() failed.");
	q->session |= 1;
	redis_add_number(&c, "%llx", q->session);
	redis_add_number(&c, "%llu", q->ttl / WEIR_MS);
	error = run(r, &c, 1, &reply);
	if (error == 0)
		freeReplyObject(reply);
	return error;
}

static int redis_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct request q = {.ttl = ttl};
	int error = ask((struct redis *)self, &q, try_begin, true);

	*granted = ttl / WEIR_MS * WEIR_MS;
	*session = error == 0 ? q.session : 0;
	return error == -ECANCELED ? -EIO : error;
}

static int put_keep(struct redis *r, const struct request *q, struct redis_command *c)
{
	int error = redis_script_command(r, "keep", c);

	redis_add_number(c, "%llx", q->session);
	return error;
}

/* Frees reply. */
static int take_granted(struct redis *r, redisReply *reply, struct request *q)
{
	uint64_t ms;
	int error = 0;

	if (redis_number(reply->element[1], &ms) && ms < UINT64_MAX / WEIR_MS)
		q->granted = ms * WEIR_MS;
	else
		error = invalid_response(r);
	freeReplyObject(reply);
	return error;
}

static int try_keep(struct redis *r, struct request *q)
{
	struct redis_command c;
	redisReply *reply;
	int error = put_keep(r, q, &c);

	if (error == 0)
		error = run(r, &c, 2, &reply);
	return error != 0 ? error : take_granted(r, reply, q);
}

static int redis_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct request q = {.session = session};
	int error = ask((struct redis *)self, &q, try_keep, true);

	*granted = q.granted;
	return error;
}

static int try_end(struct redis *r, struct request *q)
{
	struct redis_command c;
	redisReply *reply;
	int error = redis_script_command(r, "end", &c);

	redis_add_number(&c, "%llx", q->session);
	if (error == 0)
		error = run(r, &c, 1, &reply);
	if (error == 0)
		freeReplyObject(reply);
	return error;
}

static int redis_end(struct weir_store *self, uint64_t session)
{
	struct request q = {.session = session};

	return ask((struct redis *)self, &q, try_end, true);
}

static int try_commit(struct redis *r, struct request *q)
{
	static const char *const kinds[] = {"absent", "version", "made"};
	static const char *const writes[] = {"put", "bind", "erase"};
	struct redis_command c;
	redisReply *reply;
	int error = redis_script_command(r, "commit", &c);

	redis_add_number(&c, "%llx", q->session);
	redis_add_number(&c, "%llu", q->check_count);
	for (size_t i = 0; i < q->check_count; i++) {
		redis_add(&c, q->checks[i].key);
		redis_add(&c, kinds[q->checks[i].kind]);
		redis_add_number(&c, "%llu", q->checks[i].version);
	}
	for (size_t i = 0; i < q->write_count; i++) {
		redis_add(&c, q->writes[i].key);
		redis_add(&c, writes[q->writes[i].kind]);
		redis_add_bytes(&c, q->writes[i].value, q->writes[i].size);
	}
	if (error == 0)
		error = run(r, &c, 2, &reply);
	if (error != 0)
		return error;
	if (redis_number(reply->element[1], &q->version))
		note_version(r, q->version);
	else
		error = invalid_response(r);
	freeReplyObject(reply);
	return error;
}

static int redis_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	struct request q = {
		.session = session,
		.checks = checks,
		.check_count = check_count,
		.writes = writes,
		.write_count = write_count,
	};
	int error = ask((struct redis *)self, &q, try_commit, false);

	*version = q.version;
	return error;
}

static bool row_of(const redisReply *reply, struct weir_store_row *row)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4)
		return false;
	for (size_t i = 0; i < 4; i++)
		if (!redis_is_text(reply->element[i]))
			return false;
	row->key = reply->element[0]->str;
	row->value = reply->element[3]->str;
	row->size = (size_t)reply->element[3]->len;
	return redis_number(reply->element[1], &row->version) &&
	       redis_number(reply->element[2], &row->made);
}

/* Everything is checked before any row is passed on. */
static int show(struct redis *r, const redisReply *reply, weir_store_row_fn *show_row, void *arg,
		struct weir_store_view *view)
{
	const redisReply *rows = reply->element[3];
	struct weir_store_row row;
	uint64_t us;

	if (!redis_number(reply->element[1], &view->version) ||
	    !redis_number(reply->element[2], &us) || rows->type != REDIS_REPLY_ARRAY)
		return invalid_response(r);
	for (size_t i = 0; i < rows->elements; i++)
		if (!row_of(rows->element[i], &row))
			return invalid_response(r);
	view->proven = us * WEIR_US;
	note_version(r, view->version);
	for (size_t i = 0; i < rows->elements; i++)
		if (row_of(rows->element[i], &row) && !show_row(arg, &row))
			break;
	return 0;
}

static int put_read(struct redis *r, const struct request *q, struct redis_command *c)
{
	int error = redis_script_command(r, "read", c);

	for (size_t i = 0; i < q->count; i++)
		redis_add(c, q->prefixes[i]);
	return error;
}

static int try_read(struct redis *r, struct request *q)
{
	struct redis_command c;
	int error = put_read(r, q, &c);

	return error == 0 ? run(r, &c, 4, &q->rows) : error;
}

/* Without a live session no row is passed on. */
static int try_keep_and_read(struct redis *r, struct request *q)
{
	struct redis_command c[2];
	redisReply *replies[2];
	int error = put_keep(r, q, &c[0]);

	if (error == 0)
		error = put_read(r, q, &c[1]);
	if (error == 0)
		error = redis_ask_both(r, c, replies);
	if (error != 0)
		return error;
	error = checked(r, &replies[0], 2);
	if (error == 0)
		error = take_granted(r, replies[0], q);
	if (error != 0) {
		freeReplyObject(replies[1]);
		return error;
	}
	q->rows = replies[1];
	return checked(r, &q->rows, 4);
}

static int read_by(struct redis *r, struct request *q, attempt_fn *attempt, weir_store_row_fn *row,
		   void *arg, struct weir_store_view *view)
{
	int error = ask(r, q, attempt, true);

	if (error != 0)
		return error;
	error = show(r, q->rows, row, arg, view);
	freeReplyObject(q->rows);
	return error;
}

static int redis_read(struct weir_store *self, const char *const *prefixes, size_t count,
		      weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct request q = {.prefixes = prefixes, .count = count};

	return read_by((struct redis *)self, &q, try_read, row, arg, view);
}

static int redis_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			       const char *const *prefixes, size_t count, weir_store_row_fn *row,
			       void *arg, struct weir_store_view *view)
{
	struct request q = {.session = session, .prefixes = prefixes, .count = count};
	int error = read_by((struct redis *)self, &q, try_keep_and_read, row, arg, view);

	*granted = q.granted;
	return error;
}

static void redis_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	const struct redis *r = (struct redis *)self;

	*caps = r->caps;
	caps->note = r->note;
}

static void redis_error(struct weir_store *self, char *text, size_t size)
{
	(void)snprintf(text, size, "%s", ((struct redis *)self)->why);
}

static void redis_close(struct weir_store *self)
{
	struct redis *r = (struct redis *)self;

	redis_drop(r);
	memset(r, 0, sizeof(*r));
	free(r);
}

static const struct weir_store_ops redis_ops = {
	.size = sizeof(redis_ops),
	.name = "redis",
	.begin = redis_begin,
	.keep = redis_keep,
	.end = redis_end,
	.commit = redis_commit,
	.read = redis_read,
	.keep_and_read = redis_keep_and_read,
	.caps = redis_caps,
	.error = redis_error,
	.close = redis_close,
	.watch_open = redis_watch_open,
	.watch_wait = redis_watch_wait,
	.watch_wake = redis_watch_wake,
	.watch_close = redis_watch_close,
};

/* The path of the address is SERVICE or SERVICE/DATABASE. */
static void set_service(struct redis *r)
{
	char *path = r->address.path;
	const size_t length = strcspn(path, "/");
	const char *database = path[length] == '/' ? path + length + 1 : "";

	memcpy(r->service, path, length);
	r->service[length] = '\0';
	memmove(path, database, strlen(database) + 1);
}

int redis_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	struct redis *r;
	int error;

	const bool sentinels = strcmp(setup->address.scheme, "redis-sentinel") == 0;
	if (!sentinels && setup->address.count != 1)
		return store_say(-EINVAL, why,
				 "The address of a Redis store must have exactly one host.");
	if (sentinels && strcspn(setup->address.path, "/") == 0)
		return store_say(-EINVAL, why,
				 "After the Sentinels in the address there must be a / and the "
				 "name of the service.");
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	r->store.ops = &redis_ops;
	r->address = setup->address;
	r->timeout = setup->timeout;
	if (sentinels)
		set_service(r);
	(void)snprintf(r->base, sizeof(r->base), "{%s}:store", setup->name);
	r->caps.ttl_min = WEIR_MS;
	error = redis_connect(r);
	if (error == 0 || (error == -EIO && setup->config->lazy != 0)) {
		*store = &r->store;
		return 0;
	}
	(void)snprintf(why, WHY_SIZE, "%s", r->why);
	redis_close(&r->store);
	return error;
}
