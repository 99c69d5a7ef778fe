/* SPDX-License-Identifier: BSD-2-Clause */
#include "streams.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define GROUP "writers"

/* The timeout of Redis. */
static const struct timeval patience = {.tv_sec = 1};

int streams_open(struct streams *streams, const char *address, const char *consumer)
{
	*streams = (struct streams){.consumer = consumer};
	if (sscanf(address, "%63[^:]:%u", streams->host, &streams->port) == 2)
		return 0;
	fprintf(stderr, "%s: \"%s\" is not HOST:PORT\n", program_invocation_short_name, address);
	return -1;
}

void streams_close(struct streams *streams)
{
	if (streams->redis)
		redisFree(streams->redis);
	streams->redis = NULL;
}

/* NULL: the connection failed, and is closed. An error reply is printed and returned. */
static redisReply *next_reply(struct streams *streams)
{
	redisReply *reply = NULL;

	if (streams->redis && redisGetReply(streams->redis, (void **)&reply) == REDIS_OK)
		return reply;
	streams_close(streams);
	return NULL;
}

static redisReply *ask(struct streams *streams, const char *format, ...)
{
	va_list args;
	int error;

	va_start(args, format);
	error = redisvAppendCommand(streams->redis, format, args);
	va_end(args);
	if (error != REDIS_OK) {
		streams_close(streams);
		return NULL;
	}
	return next_reply(streams);
}

static int said_no(const redisReply *reply)
{
	fprintf(stderr, "%s: redis: %s\n", program_invocation_short_name, reply->str);
	return -1;
}

/* Free the reply. Returns whether it was not an error. */
static int settle(redisReply *reply)
{
	int error = -1;

	if (reply)
		error = reply->type == REDIS_REPLY_ERROR ? said_no(reply) : 0;
	freeReplyObject(reply);
	return error;
}

/* An error that the group exists already is ignored. */
static int make_group(struct streams *streams, const char *stream)
{
	redisReply *reply = ask(streams, "XGROUP CREATE %s " GROUP " 0 MKSTREAM", stream);

	if (reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "BUSYGROUP", 9) == 0) {
		freeReplyObject(reply);
		return 0;
	}
	return settle(reply);
}

static int connected(struct streams *streams)
{
	if (streams->redis)
		return 0;
	streams->redis = redisConnectWithTimeout(streams->host, (int)streams->port, patience);
	if (!streams->redis)
		return -1;
	if (streams->redis->err != 0) {
		streams_close(streams);
		return -1;
	}
	redisSetTimeout(streams->redis, patience);
	for (unsigned i = 0; i < RECORD_TYPES; i++)
		if (make_group(streams, record_types[i].stream) != 0) {
			streams_close(streams);
			return -1;
		}
	return 0;
}

int streams_add(struct streams *streams, const char *lines)
{
	struct record_line line;
	size_t asked = 0;
	int error = 0;

	if (connected(streams) != 0)
		return -1;
	while (record_next(&lines, &line) > 0) {
		redisAppendCommand(streams->redis, "XADD %s * record %b", line.type->stream,
				   line.text, line.length);
		asked++;
	}
	while (asked-- > 0)
		if (settle(next_reply(streams)) != 0)
			error = -1;
	return error;
}

/* [id, ["record", line]]; other entries are not records, and are left there. */
static void take_entry(const redisReply *reply, unsigned type, streams_take_fn *take, void *arg)
{
	struct entry entry = {.type = type};
	const redisReply *fields;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return;
	fields = reply->element[1];
	if (fields->type != REDIS_REPLY_ARRAY || fields->elements != 2 ||
	    fields->element[1]->len >= RECORD_MAX || reply->element[0]->len >= ENTRY_ID_MAX)
		return;
	memcpy(entry.id, reply->element[0]->str, reply->element[0]->len);
	memcpy(entry.line, fields->element[1]->str, fields->element[1]->len);
	take(arg, &entry);
}

static void take_entries(const redisReply *entries, unsigned type, streams_take_fn *take, void *arg)
{
	for (size_t i = 0; entries->type == REDIS_REPLY_ARRAY && i < entries->elements; i++)
		take_entry(entries->element[i], type, take, arg);
}

static int read_one(struct streams *streams, unsigned type, unsigned count, streams_take_fn *take,
		    void *arg)
{
	redisReply *reply = ask(streams, "XREADGROUP GROUP " GROUP " %s COUNT %u STREAMS %s >",
				streams->consumer, count, record_types[type].stream);

	/* [[stream, entries]], or nil. */
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
	    reply->element[0]->elements == 2)
		take_entries(reply->element[0]->element[1], type, take, arg);
	return settle(reply);
}

int streams_read(struct streams *streams, unsigned count, streams_take_fn *take, void *arg)
{
	for (unsigned i = 0; i < RECORD_TYPES; i++)
		if (connected(streams) != 0 || read_one(streams, i, count, take, arg) != 0)
			return -1;
	return 0;
}

static int claim_one(struct streams *streams, unsigned type, unsigned idle_ms, unsigned count,
		     streams_take_fn *take, void *arg)
{
	redisReply *reply = ask(streams, "XAUTOCLAIM %s " GROUP " %s %u 0-0 COUNT %u",
				record_types[type].stream, streams->consumer, idle_ms, count);

	/* [next start, entries, ids that no longer exist] */
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2)
		take_entries(reply->element[1], type, take, arg);
	return settle(reply);
}

int streams_claim(struct streams *streams, unsigned idle_ms, unsigned count, streams_take_fn *take,
		  void *arg)
{
	for (unsigned i = 0; i < RECORD_TYPES; i++)
		if (connected(streams) != 0 ||
		    claim_one(streams, i, idle_ms, count, take, arg) != 0)
			return -1;
	return 0;
}

/* The first words of a command, the ids of the entries, and the remaining words. */
static int append(struct streams *streams, const char *const *words, size_t before, size_t after,
		  const struct entry *const *entries, size_t count)
{
	const char **all = malloc((before + count + after) * sizeof(*all));
	int error;

	if (!all)
		return -1;
	for (size_t i = 0; i < before; i++)
		all[i] = words[i];
	for (size_t i = 0; i < count; i++)
		all[before + i] = entries[i]->id;
	for (size_t i = 0; i < after; i++)
		all[before + count + i] = words[before + i];
	error = redisAppendCommandArgv(streams->redis, (int)(before + count + after), all, NULL);
	free(all);
	return error == REDIS_OK ? 0 : -1;
}

int streams_keep(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count)
{
	/* The consumer claims its own entries, which resets their idle time. */
	const char *const words[] = {
		"XCLAIM", record_types[type].stream, GROUP, streams->consumer, "0", "JUSTID"};

	if (count == 0)
		return 0;
	if (connected(streams) != 0 || append(streams, words, 5, 1, entries, count) != 0)
		return -1;
	return settle(next_reply(streams));
}

/* In one transaction: an entry acknowledged and not deleted would stay in the stream forever. */
int streams_done(struct streams *streams, unsigned type, const struct entry *const *entries,
		 size_t count)
{
	const char *const ack[] = {"XACK", record_types[type].stream, GROUP};
	const char *const del[] = {"XDEL", record_types[type].stream};
	int error = 0;

	if (count == 0)
		return 0;
	if (connected(streams) != 0 || redisAppendCommand(streams->redis, "MULTI") != REDIS_OK ||
	    append(streams, ack, 3, 0, entries, count) != 0 ||
	    append(streams, del, 2, 0, entries, count) != 0 ||
	    redisAppendCommand(streams->redis, "EXEC") != REDIS_OK) {
		streams_close(streams);
		return -1;
	}
	for (unsigned i = 0; i < 4; i++)
		if (settle(next_reply(streams)) != 0)
			error = -1;
	return error;
}
