/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding the master of a Redis service. Sentinels know which server it is, and elect another one
 * when it is gone. They are asked for each new connection, the one that answered last first. What
 * they say may be out of date: the server is asked too (redis_link.c).
 */

#include "fleet/store/redis_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_DEFAULT 26379

/* Parse the answer: the host and the port of the master. Returns 0, or -EIO and a sentence. */
static int read_master(struct redis *r, const redisReply *reply, struct address_host *master)
{
	uint64_t port = 0;

	if (reply->type == REDIS_REPLY_ERROR)
		return store_say(-EIO, r->why, "Sentinel reports an error: %.200s", reply->str);
	if (reply->type == REDIS_REPLY_NIL)
		return store_say(-EIO, r->why, "Sentinel knows no service of that name.");
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !redis_is_text(reply->element[0]) || !redis_number(reply->element[1], &port) ||
	    port == 0 || port > UINT16_MAX ||
	    strlen(reply->element[0]->str) >= sizeof(master->name))
		return store_say(-EIO, r->why, "Sentinel sent an invalid response.");
	(void)snprintf(master->name, sizeof(master->name), "%s", reply->element[0]->str);
	master->port = (uint16_t)port;
	return 0;
}

static int ask(struct redis *r, redisContext *sentinel, struct address_host *master)
{
	redisReply *reply;
	int error;

	if (sentinel->err != 0)
		return store_say(-EIO, r->why, "Sentinel cannot be reached: %.128s",
				 sentinel->errstr);
	if (redisSetTimeout(sentinel, redis_wait(r)) != REDIS_OK)
		return store_say(-EIO, r->why, "Sentinel cannot be asked.");
	reply = redisCommand(sentinel, "SENTINEL get-master-addr-by-name %s", r->service);
	if (reply == NULL)
		return store_say(-EIO, r->why, "Sentinel does not answer: %.128s",
				 sentinel->errstr);
	error = read_master(r, reply, master);
	freeReplyObject(reply);
	return error;
}

static int ask_at(struct redis *r, const struct address_host *host, struct address_host *master)
{
	redisContext *sentinel = redisConnectWithTimeout(
		host->name, host->port != 0 ? host->port : PORT_DEFAULT, redis_wait(r));
	int error;

	if (sentinel == NULL)
		return store_say(-ENOMEM, r->why, "Out of memory.");
	error = ask(r, sentinel, master);
	redisFree(sentinel);
	return error;
}

int redis_find_master(struct redis *r, struct address_host *master)
{
	const unsigned count = r->address.count;
	int error = -EIO;

	for (unsigned i = 0; i < count && error == -EIO; i++) {
		error = ask_at(r, &r->address.hosts[r->sentinel], master);
		if (error != 0)
			r->sentinel = (r->sentinel + 1) % count;
	}
	return error;
}
