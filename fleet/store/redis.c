/*
 * The store that is a Redis server: hiredis, and one script (redis.lua) in which everything
 * happens at once, by the server's clock.
 *
 * What Redis does not keep, this says rather than hides. It forgets what it has acknowledged when
 * it is killed, unless it appends to its file always; a replica that takes over may lack the last
 * of it; and it may evict. The way the server runs now says nothing about what was lost before. So
 * the store there has an incarnation, which ends with each run of the server that cannot be shown
 * to have all that the run before it acknowledged. Each question names the incarnation that it is
 * meant for; weir_store_view.proven counts from its beginning, so that members can let old leases end
 * first. The clock of a server is the wall clock of its machine: set forward, it ends sessions
 * early.
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
		return store_say(REDIS_OTHER, r->why, "Redis has lost what it knew.");
	if (strcmp(status, "again") == 0)
		return store_say(-EAGAIN, r->why, "Something has changed since it was read.");
	if (strcmp(status, "stale") == 0)
		return store_say(-ESTALE, r->why, "The session is over.");
	redis_drop(r);
	return store_say(-EIO, r->why, "Redis answers what makes no sense.");
}

/* An answer of so many elements; or it is freed, and what its status says. */
static int checked(struct redis *r, redisReply **reply, size_t elements)
{
	int error = status_of(r, *reply, elements);

	if (error == 0)
		return 0;
	freeReplyObject(*reply);
	*reply = NULL;
	return error;
}

/* Run the script. 0, and an answer of so many elements to free. */
static int run(struct redis *r, const struct redis_command *c, size_t elements, redisReply **reply)
{
	int error = redis_ask(r, c, reply);

	return error != 0 ? error : checked(r, reply, elements);
}

/* What is asked, and what came of it. */
struct question {
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

typedef int attempt_fn(struct redis *r, struct question *q);

/* Whether the question is based on a reading of another store. */
static bool is_overtaken(const struct redis *r, const char *before, bool harmless)
{
	return !harmless && before[0] != '\0' && strcmp(r->incarnation, before) != 0;
}

/*
 * Ask once more, on a new connection, where nothing was done because the script was not there, or
 * where it does no harm to do it twice; and where the store is not the known one, if it is known
 * now. A commit is not repeated then: it was based on a reading of the other store.
 */
static int ask(struct redis *r, struct question *q, attempt_fn *attempt, bool harmless)
{
	char before[DRAW_SIZE];
	int error = -ENOENT;

	memcpy(before, r->incarnation, sizeof(before));
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		error = redis_connect(r);
		if (error == 0 && is_overtaken(r, before, harmless))
			error = REDIS_OTHER;
		else if (error == 0)
			error = attempt(r, q);
		if (error == REDIS_OTHER && !harmless)
			return q->session != 0 ? -ESTALE : -EAGAIN;
		if (error != REDIS_OTHER && error != -ENOENT && (error != -EIO || !harmless))
			break;
	}
	return error == -ENOENT || error == REDIS_OTHER ? -EIO : error;
}

/* The highest version heard of from this store; it never goes back. */
static void note_version(struct redis *r, uint64_t version)
{
	if (version > r->seen)
		r->seen = version;
}

static int senseless(struct redis *r)
{
	redis_drop(r);
	return store_say(-EIO, r->why, "Redis answers what makes no sense.");
}

/* Its number is drawn: one that the server counts might come twice, once it forgets. */
static int try_begin(struct redis *r, struct question *q)
{
	struct redis_command c;
	redisReply *reply;
	int error = redis_script_command(r, "begin", &c);

	if (error != 0 || getrandom(&q->session, sizeof(q->session), 0) != sizeof(q->session))
		return store_say(-ECANCELED, r->why,
				 "There are no random numbers: getrandom() failed.");
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
	struct question q = {.ttl = ttl};
	int error = ask((struct redis *)self, &q, try_begin, true);

	*granted = ttl / WEIR_MS * WEIR_MS;
	*session = error == 0 ? q.session : 0;
	return error == -ECANCELED ? -EIO : error;
}

static int put_keep(struct redis *r, const struct question *q, struct redis_command *c)
{
	int error = redis_script_command(r, "keep", c);

	redis_add_number(c, "%llx", q->session);
	return error;
}

/* And the answer is freed. */
static int take_granted(struct redis *r, redisReply *reply, struct question *q)
{
	uint64_t ms;
	int error = 0;

	if (redis_number(reply->element[1], &ms) && ms < UINT64_MAX / WEIR_MS)
		q->granted = ms * WEIR_MS;
	else
		error = senseless(r);
	freeReplyObject(reply);
	return error;
}

static int try_keep(struct redis *r, struct question *q)
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
	struct question q = {.session = session};
	int error = ask((struct redis *)self, &q, try_keep, true);

	*granted = q.granted;
	return error;
}

static int try_end(struct redis *r, struct question *q)
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
	struct question q = {.session = session};

	return ask((struct redis *)self, &q, try_end, true);
}

static int try_commit(struct redis *r, struct question *q)
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
		error = senseless(r);
	freeReplyObject(reply);
	return error;
}

static int redis_commit(struct weir_store *self, uint64_t session,
			const struct weir_store_check *checks, size_t check_count,
			const struct weir_store_write *writes, size_t write_count,
			uint64_t *version)
{
	struct question q = {
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

/* All of it is looked at before anything is shown. */
static int show(struct redis *r, const redisReply *reply, weir_store_row_fn *show_row, void *arg,
		struct weir_store_view *view)
{
	const redisReply *rows = reply->element[3];
	struct weir_store_row row;
	uint64_t us;

	if (!redis_number(reply->element[1], &view->version) ||
	    !redis_number(reply->element[2], &us) || rows->type != REDIS_REPLY_ARRAY)
		return senseless(r);
	for (size_t i = 0; i < rows->elements; i++)
		if (!row_of(rows->element[i], &row))
			return senseless(r);
	view->proven = us * WEIR_US;
	note_version(r, view->version);
	for (size_t i = 0; i < rows->elements; i++)
		if (row_of(rows->element[i], &row) && !show_row(arg, &row))
			break;
	return 0;
}

static int put_read(struct redis *r, const struct question *q, struct redis_command *c)
{
	int error = redis_script_command(r, "read", c);

	for (size_t i = 0; i < q->count; i++)
		redis_add(c, q->prefixes[i]);
	return error;
}

static int try_read(struct redis *r, struct question *q)
{
	struct redis_command c;
	int error = put_read(r, q, &c);

	return error == 0 ? run(r, &c, 4, &q->rows) : error;
}

/* Nothing is shown to whoever has no session any more. */
static int try_keep_and_read(struct redis *r, struct question *q)
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

static int read_by(struct redis *r, struct question *q, attempt_fn *attempt, weir_store_row_fn *row,
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
	struct question q = {.prefixes = prefixes, .count = count};

	return read_by((struct redis *)self, &q, try_read, row, arg, view);
}

static int redis_keep_and_read(struct weir_store *self, uint64_t session, weir_dur *granted,
			       const char *const *prefixes, size_t count, weir_store_row_fn *row,
			       void *arg, struct weir_store_view *view)
{
	struct question q = {.session = session, .prefixes = prefixes, .count = count};
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
};

int redis_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	struct redis *r;
	int error;

	if (setup->address.count != 1)
		return store_say(-EINVAL, why, "A Redis store is one server.");
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return store_say(-ENOMEM, why, "There is no memory.");
	r->store.ops = &redis_ops;
	r->address = setup->address;
	r->timeout = setup->timeout;
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
