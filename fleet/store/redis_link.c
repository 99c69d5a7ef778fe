/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting to Redis, and reading its configuration.
 *
 * A connection on which anything has gone wrong is dropped: hiredis cannot continue after a
 * timeout, and an answer that arrives late must not be taken for that of the next request.
 */

#include "fleet/store/redis_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fleet/store/redis_script.h"

#define PORT_DEFAULT 6379

void redis_add_bytes(struct redis_command *c, const void *bytes, size_t size)
{
	c->word[c->words] = size > 0 ? bytes : "";
	c->size[c->words++] = size;
}

void redis_add(struct redis_command *c, const char *word)
{
	redis_add_bytes(c, word, strlen(word));
}

void redis_add_number(struct redis_command *c, const char *format, uint64_t number)
{
	char *text = c->text[c->texts++];

	(void)snprintf(text, sizeof(c->text[0]), format, (unsigned long long)number);
	redis_add(c, text);
}

void redis_drop(struct redis *r)
{
	if (r->context != NULL)
		redisFree(r->context);
	r->context = NULL;
}

bool redis_is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

bool redis_number(const redisReply *reply, uint64_t *number)
{
	char *end;

	if (!redis_is_text(reply) || reply->str[0] < '0' || reply->str[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(reply->str, &end, 10);
	return errno == 0 && *end == '\0';
}

/* 128 random bits, for an incarnation that may have to begin. */
static bool draw(char text[DRAW_SIZE])
{
	uint64_t bits[2];

	if (getrandom(bits, sizeof(bits), 0) != sizeof(bits))
		return false;
	(void)snprintf(text, DRAW_SIZE, "%016llx%016llx", (unsigned long long)bits[0],
		       (unsigned long long)bits[1]);
	return true;
}

int redis_script_command(struct redis *r, const char *verb, struct redis_command *c)
{
	c->words = c->texts = 0;
	if (!draw(c->draw))
		return store_say(-EIO, r->why, "getrandom() failed.");
	redis_add(c, "EVALSHA");
	redis_add(c, r->script);
	redis_add(c, "1");
	redis_add(c, r->base);
	redis_add(c, r->run);
	redis_add(c, r->incarnation);
	redis_add_number(c, "%llu", r->seen);
	redis_add(c, r->keeps ? "1" : "0");
	redis_add(c, c->draw);
	redis_add(c, verb);
	return 0;
}

int redis_adopt(struct redis *r, const redisReply *reply)
{
	uint64_t version;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	    !redis_is_text(reply->element[1]) || !redis_number(reply->element[2], &version) ||
	    strlen(reply->element[1]->str) >= sizeof(r->incarnation))
		return store_say(-EIO, r->why, "Redis sent an invalid response.");
	(void)snprintf(r->incarnation, sizeof(r->incarnation), "%s", reply->element[1]->str);
	r->seen = version;
	return 0;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * These errors are reported before anything is written. Versions below 7 prefix them with the line
 * of the script.
 */
static bool refuses_writes(const char *error)
{
	return begins(error, "OOM") || strstr(error, "-OOM command") != NULL ||
	       begins(error, "MISCONF") || strstr(error, "-MISCONF") != NULL ||
	       begins(error, "NOREPLICAS") || strstr(error, "-NOREPLICAS") != NULL;
}

int redis_error_of(struct redis *r, const redisReply *reply)
{
	static const char *const access[] = {
		"NOAUTH",
		"WRONGPASS",
		"NOPERM",
		"ERR AUTH",
		"ERR invalid password",
		"ERR Client sent AUTH",
	};

	(void)store_say(-EIO, r->why, "Redis reports an error: %.200s", reply->str);
	for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++)
		if (begins(reply->str, access[i]))
			return -EACCES;
	if (refuses_writes(reply->str))
		return -ENOSPC;
	return begins(reply->str, "NOSCRIPT") ? -ENOENT : -EIO;
}

static int unanswered(struct redis *r)
{
	(void)store_say(-EIO, r->why, "Redis does not answer: %.128s", r->context->errstr);
	redis_drop(r);
	return -EIO;
}

static int send(struct redis *r, const struct redis_command *c)
{
	if (redisAppendCommandArgv(r->context, c->words, (const char **)(uintptr_t)c->word,
				   c->size) == REDIS_OK)
		return 0;
	return unanswered(r);
}

/* On error *reply is NULL. An error reply leaves the connection usable. */
static int receive(struct redis *r, redisReply **reply)
{
	void *received = NULL;
	int error;

	*reply = NULL;
	if (redisGetReply(r->context, &received) != REDIS_OK || received == NULL)
		return unanswered(r);
	*reply = received;
	if ((*reply)->type != REDIS_REPLY_ERROR)
		return 0;
	error = redis_error_of(r, *reply);
	freeReplyObject(*reply);
	*reply = NULL;
	return error;
}

/* After an error the connection is kept only if a request was refused permanently. */
static void settle(struct redis *r, int error)
{
	if (error != -EACCES && error != -ENOSPC)
		redis_drop(r);
}

int redis_ask(struct redis *r, const struct redis_command *c, redisReply **reply)
{
	int error = send(r, c);

	*reply = NULL;
	if (error == 0)
		error = receive(r, reply);
	if (*reply != NULL)
		return 0;
	settle(r, error);
	return error != 0 ? error : -EIO;
}

int redis_ask_both(struct redis *r, const struct redis_command *c, redisReply **replies)
{
	int first, second;

	replies[0] = replies[1] = NULL;
	first = send(r, &c[0]);
	if (first == 0)
		first = send(r, &c[1]);
	if (first == 0)
		first = receive(r, &replies[0]);
	if (r->context == NULL)
		return -EIO;
	second = receive(r, &replies[1]);
	if (replies[0] != NULL && replies[1] != NULL)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		if (replies[i] != NULL)
			freeReplyObject(replies[i]);
		replies[i] = NULL;
	}
	first = first != 0 ? first : second;
	settle(r, first);
	return first;
}

/* Send a plain command whose answer is not needed. */
static int send_plain(struct redis *r, const char *verb, const char *first, const char *second)
{
	struct redis_command c = {.words = 0};
	redisReply *reply;
	int error;

	redis_add(&c, verb);
	if (first != NULL)
		redis_add(&c, first);
	if (second != NULL)
		redis_add(&c, second);
	error = redis_ask(r, &c, &reply);
	if (error == 0)
		freeReplyObject(reply);
	return error;
}

/* The text of a line "name:text" of INFO; "" if there is none. */
static int info(struct redis *r, const char *section, const char *name, char *text, size_t size)
{
	struct redis_command c = {.words = 0};
	redisReply *reply;
	const char *at;
	int error;

	text[0] = '\0';
	redis_add(&c, "INFO");
	redis_add(&c, section);
	error = redis_ask(r, &c, &reply);
	if (error != 0)
		return error;
	at = redis_is_text(reply) ? strstr(reply->str, name) : NULL;
	if (at != NULL) {
		at += strlen(name);
		(void)snprintf(text, size, "%.*s", (int)strcspn(at, "\r\n"), at);
	}
	freeReplyObject(reply);
	return 0;
}

/* A setting; "" if the client may not read it. */
static void setting(struct redis *r, const char *name, char *text, size_t size)
{
	struct redis_command c = {.words = 0};
	redisReply *reply;

	text[0] = '\0';
	redis_add(&c, "CONFIG");
	redis_add(&c, "GET");
	redis_add(&c, name);
	if (r->context == NULL || redis_ask(r, &c, &reply) != 0)
		return;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    redis_is_text(reply->element[1]))
		(void)snprintf(text, size, "%s", reply->element[1]->str);
	freeReplyObject(reply);
}

/* Determine what the server guarantees, with its current configuration. */
static void examine(struct redis *r)
{
	char append[16], sync[16], replicas[16] = "", policy[32], memory[32];
	const char *lack;

	setting(r, "appendonly", append, sizeof(append));
	setting(r, "appendfsync", sync, sizeof(sync));
	setting(r, "maxmemory", memory, sizeof(memory));
	setting(r, "maxmemory-policy", policy, sizeof(policy));
	if (r->context != NULL)
		(void)info(r, "replication", "connected_slaves:", replicas, sizeof(replicas));
	if (strcmp(append, "yes") != 0 || strcmp(sync, "always") != 0)
		lack = "Redis does not sync its file on every write (appendonly yes, appendfsync "
		       "always): after a restart old leases must end before new ones begin.";
	else if (strcmp(replicas, "0") != 0)
		lack = "Redis has replicas: one that takes over may lack acknowledged data.";
	else if (strcmp(memory, "0") != 0 && strcmp(policy, "noeviction") != 0)
		lack = "Redis may evict acknowledged data (maxmemory-policy).";
	else
		lack = "";
	r->keeps = lack[0] == '\0';
	r->caps = (struct weir_store_caps){.ttl_min = WEIR_MS, .durable = r->keeps};
	(void)snprintf(r->note, sizeof(r->note), "%s", lack);
}

/* Check beforehand whether it has room for writes. */
static void examine_room(struct redis *r)
{
	char most[32], used[32] = "";

	if (r->context == NULL)
		return;
	setting(r, "maxmemory", most, sizeof(most));
	if (r->context != NULL)
		(void)info(r, "memory", "used_memory:", used, sizeof(used));
	if (strtoull(most, NULL, 10) != 0 && strtoull(used, NULL, 10) > strtoull(most, NULL, 10))
		(void)snprintf(r->note, sizeof(r->note),
			       "Redis may refuse writes: it uses more than its maxmemory.");
}

static int log_in(struct redis *r)
{
	const struct address *a = &r->address;
	char password[PASSWORD_SIZE];
	int error = address_password(a, password, r->why);

	if (error == 0 && password[0] != '\0' && a->user[0] != '\0')
		error = send_plain(r, "AUTH", a->user, password);
	else if (error == 0 && password[0] != '\0')
		error = send_plain(r, "AUTH", password, NULL);
	explicit_bzero(password, sizeof(password));
	if (error == 0 && a->path[0] != '\0')
		error = send_plain(r, "SELECT", a->path, NULL);
	return error;
}

static int load_script(struct redis *r)
{
	struct redis_command c = {.words = 0};
	redisReply *reply;
	int error;

	redis_add(&c, "SCRIPT");
	redis_add(&c, "LOAD");
	redis_add(&c, redis_script);
	error = redis_ask(r, &c, &reply);
	if (error != 0)
		return error;
	if (redis_is_text(reply) && strlen(reply->str) < sizeof(r->script))
		(void)snprintf(r->script, sizeof(r->script), "%s", reply->str);
	else
		error = store_say(-EIO, r->why, "Redis sent an invalid response.");
	freeReplyObject(reply);
	return error;
}

/* Find out which store it is: a new one if the server has lost data. */
static int say_hello(struct redis *r)
{
	struct redis_command c;
	redisReply *reply;
	int error = redis_script_command(r, "hello", &c);

	if (error == 0)
		error = redis_ask(r, &c, &reply);
	if (error != 0)
		return error;
	error = redis_adopt(r, reply);
	freeReplyObject(reply);
	return error;
}

static int check_role(struct redis *r)
{
	char role[16];
	int error = info(r, "replication", "role:", role, sizeof(role));

	if (error == 0 && strcmp(role, "master") != 0)
		error = store_say(-EIO, r->why, "This Redis is a replica.");
	return error;
}

static int set_up(struct redis *r)
{
	int error = info(r, "server", "run_id:", r->run, sizeof(r->run));

	if (error != 0)
		return error;
	if (r->run[0] == '\0')
		return store_say(-EIO, r->why, "Redis does not report its run_id.");
	examine(r);
	examine_room(r);
	error = r->context != NULL ? load_script(r) : -EIO;
	return error == 0 ? say_hello(r) : error;
}

struct timeval redis_wait(const struct redis *r)
{
	return (struct timeval){
		.tv_sec = (time_t)(r->timeout / WEIR_S),
		.tv_usec = (suseconds_t)(r->timeout % WEIR_S / WEIR_US),
	};
}

int redis_dial(struct redis *r)
{
	const struct timeval wait = redis_wait(r);
	struct address_host host = r->address.hosts[0];
	int error = 0;

	if (r->service[0] != '\0')
		error = redis_find_master(r, &host);
	if (error != 0)
		return error;
	r->context = redisConnectWithTimeout(host.name, host.port != 0 ? host.port : PORT_DEFAULT,
					     wait);
	if (r->context == NULL)
		return store_say(-ENOMEM, r->why, "Out of memory.");
	if (r->context->err != 0 || redisSetTimeout(r->context, wait) != REDIS_OK) {
		error = store_say(-EIO, r->why, "Redis cannot be reached: %.128s",
				  r->context->errstr);
		redis_drop(r);
		return error;
	}
	error = log_in(r);
	if (error == 0)
		error = check_role(r);
	if (error != 0)
		redis_drop(r);
	return error;
}

int redis_connect(struct redis *r)
{
	int error;

	if (r->context != NULL)
		return 0;
	error = redis_dial(r);
	if (error == 0)
		error = set_up(r);
	if (error != 0)
		redis_drop(r);
	return error;
}
