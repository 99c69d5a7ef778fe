/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the store in a Redis server: its script publishes the keys of each commit, and a watch
 * subscribes to the channels of what it watches (redis.lua), over a connection of its own.
 *
 * What is published while there is no connection is lost, so a new connection begins with "any row".
 * A connection on which nothing has come for a while is tried out with a PING. A message may come
 * from any client that may publish: at worst it reports a row that has not changed.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fleet/store/notices.h"
#include "fleet/store/redis_link.h"

#define PING_AFTER (5 * WEIR_S) /* without any message */
#define CHANNEL    (WEIR_STORE_KEY_MAX + 16 + WEIR_STORE_KEY_MAX + 1)

struct redis_watch {
	struct redis link;
	int bell; /* an eventfd that wakes the thread that waits */
	struct watched watched;
	char (*channels)[CHANNEL];
	size_t channel_count;
	bool pattern;      /* the last of them is one */
	size_t subscribed; /* answers to the subscriptions so far */
	weir_time heard;   /* when something came last; CLOCK_MONOTONIC */
	weir_time asked;   /* when a PING was sent after that; 0: none was */
	struct notices notices;
	struct notice shown;
};

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static void add_channel(struct redis_watch *w, const char *format, const char *prefix, int length)
{
	char *channel = w->channels[w->channel_count];
	const int base = (int)strlen(w->link.base) - (int)strlen("store");

	(void)snprintf(channel, CHANNEL, format, base, w->link.base, length, prefix);
	for (size_t i = 0; i < w->channel_count; i++)
		if (strcmp(w->channels[i], channel) == 0)
			return;
	w->channel_count++;
}

/* One for the first part of each prefix, and one for what concerns all rows. */
static bool set_channels(struct redis_watch *w)
{
	w->channels = calloc(w->watched.count + 1, sizeof(*w->channels));
	if (w->channels == NULL)
		return false;
	for (size_t i = 0; i < w->watched.count; i++)
		w->pattern |= w->watched.prefixes[i][0] == '\0';
	if (w->pattern) {
		add_channel(w, "%.*sw:*%.*s", "", 0);
		return true;
	}
	add_channel(w, "%.*sw:%.*s", "", 0);
	for (size_t i = 0; i < w->watched.count; i++)
		add_channel(w, "%.*sw:%.*s", w->watched.prefixes[i],
			    (int)strcspn(w->watched.prefixes[i], "/"));
	return true;
}

static int lose(struct redis_watch *w, int error)
{
	redis_drop(&w->link);
	return error;
}

static int lose_silent(struct redis_watch *w)
{
	(void)store_say(-EIO, w->link.why, "Redis does not answer: %.128s",
			w->link.context->err != 0 ? w->link.context->errstr : "no PONG");
	return lose(w, -EIO);
}

/* Send what is to be sent, all of it. */
static int send_all(struct redis_watch *w)
{
	int done = 0;

	while (done == 0)
		if (redisBufferWrite(w->link.context, &done) != REDIS_OK)
			return lose_silent(w);
	return 0;
}

/* "VERSION KEY KEY...", or anything else, which means any row. */
static void take_message(struct redis_watch *w, char *text)
{
	char *at, *key;
	uint64_t version;

	errno = 0;
	version = strtoull(text, &at, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || *at != ' ') {
		notices_any(&w->notices);
		return;
	}
	while ((key = strtok_r(at, " ", &at)) != NULL)
		if (watched_has(&w->watched, key))
			notices_add(&w->notices, key, version);
}

static bool is_kind(const redisReply *reply, const char *kind, size_t elements)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == elements &&
	       redis_is_text(reply->element[0]) && strcmp(reply->element[0]->str, kind) == 0;
}

static int take_reply(struct redis_watch *w, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return redis_error_of(&w->link, reply);
	if (is_kind(reply, "message", 3) && redis_is_text(reply->element[2]))
		take_message(w, reply->element[2]->str);
	else if (is_kind(reply, "pmessage", 4) && redis_is_text(reply->element[3]))
		take_message(w, reply->element[3]->str);
	else if (is_kind(reply, "subscribe", 3) || is_kind(reply, "psubscribe", 3))
		w->subscribed++;
	else if (!is_kind(reply, "pong", 2))
		return store_say(-EIO, w->link.why, "Redis sent an invalid response.");
	return 0;
}

/* Read what has come, once. */
static int take_replies(struct redis_watch *w)
{
	void *reply = NULL;
	int error = 0;

	if (redisBufferRead(w->link.context) != REDIS_OK)
		return lose_silent(w);
	w->heard = now();
	w->asked = 0;
	while (error == 0) {
		if (redisGetReplyFromReader(w->link.context, &reply) != REDIS_OK)
			return lose_silent(w);
		if (reply == NULL)
			return 0;
		error = take_reply(w, reply);
		freeReplyObject(reply);
	}
	return lose(w, error == -EACCES ? error : -EIO);
}

/*
 * Wait until the server sends something, or the bell rings, and take it. Returns 0, -ECANCELED,
 * -ETIMEDOUT, or an error.
 */
static int listen_until(struct redis_watch *w, weir_time end)
{
	struct pollfd fds[] = {{.fd = w->link.context->fd, .events = POLLIN},
			       {.fd = w->bell, .events = POLLIN}};
	const weir_time at = now();
	const weir_dur left = end > at ? end - at : 0;
	const weir_dur ms = (left + WEIR_MS - 1) / WEIR_MS;
	eventfd_t rings;

	if (poll(fds, 2, ms < 60000 ? (int)ms : 60000) < 0 && errno != EINTR)
		return lose(w, store_say(-EIO, w->link.why, "poll() failed."));
	if (fds[1].revents != 0 && eventfd_read(w->bell, &rings) == 0)
		return -ECANCELED;
	if (fds[0].revents != 0)
		return take_replies(w);
	return now() >= end ? -ETIMEDOUT : 0;
}

static int send_command(struct redis_watch *w, int words, const char **word)
{
	if (redisAppendCommandArgv(w->link.context, words, word, NULL) != REDIS_OK)
		return lose_silent(w);
	return send_all(w);
}

static int send_subscriptions(struct redis_watch *w)
{
	const char **word = calloc(w->channel_count + 1, sizeof(*word));
	int error;

	if (word == NULL)
		return lose(w, store_say(-ENOMEM, w->link.why, "Out of memory."));
	word[0] = w->pattern ? "PSUBSCRIBE" : "SUBSCRIBE";
	for (size_t i = 0; i < w->channel_count; i++)
		word[i + 1] = w->channels[i];
	error = send_command(w, (int)w->channel_count + 1, word);
	free(word);
	return error;
}

static int subscribe(struct redis_watch *w)
{
	int error = redis_dial(&w->link);
	weir_time end;

	if (error != 0)
		return lose(w, error);
	w->subscribed = 0;
	w->asked = 0;
	notices_any(&w->notices);
	error = send_subscriptions(w);
	end = now() + w->link.timeout;
	while (error == 0 && w->subscribed < w->channel_count)
		error = listen_until(w, end);
	if (error == -ETIMEDOUT)
		error = lose_silent(w);
	else if (error == -ECANCELED)
		(void)lose(w, error);
	return error;
}

/* Until when nothing has to be done; tries the connection out if that is due. */
static int keep_alive(struct redis_watch *w, weir_time *until)
{
	const weir_time at = now();
	const char *word[] = {"PING"};

	*until = w->asked != 0 ? w->asked + w->link.timeout : w->heard + PING_AFTER;
	if (at < *until)
		return 0;
	if (w->asked != 0)
		return lose_silent(w);
	w->asked = at;
	*until = at + w->link.timeout;
	return send_command(w, 1, word);
}

static int listen_on(struct redis_watch *w, weir_time end)
{
	weir_time until;
	int error = keep_alive(w, &until);

	if (error == 0)
		error = listen_until(w, until < end ? until : end);
	return error == -ETIMEDOUT && now() < end ? 0 : error;
}

/* Without a connection nothing is known, not even what was reported before. */
static int wait_until(struct redis_watch *w, weir_time end)
{
	int error = w->link.context == NULL ? subscribe(w) : 0;

	while (error == 0 && !notices_take(&w->notices, &w->shown))
		error = listen_on(w, end);
	return error;
}

int redis_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		     struct weir_store_change *change)
{
	struct redis_watch *w = watch;
	const weir_time began = now();
	const int error = wait_until(w, timeout < WEIR_FOREVER - began ? began + timeout
								       : WEIR_FOREVER);

	(void)self;
	if (error == 0) {
		change->key = w->shown.key;
		change->version = w->shown.version;
	} else if (error != -ETIMEDOUT && error != -ECANCELED) {
		change->why = w->link.why;
	}
	return error;
}

void redis_watch_wake(struct weir_store *self, void *watch)
{
	(void)self;
	(void)eventfd_write(((struct redis_watch *)watch)->bell, 1);
}

void redis_watch_close(struct weir_store *self, void *watch)
{
	struct redis_watch *w = watch;

	(void)self;
	redis_drop(&w->link);
	if (w->bell >= 0)
		close(w->bell);
	watched_free(&w->watched);
	free(w->channels);
	free(w);
}

static int set_up(struct redis_watch *w, const char *const *prefixes, size_t count)
{
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->bell < 0)
		return store_say(-errno, w->link.why, "eventfd() failed.");
	if (!watched_set(&w->watched, prefixes, count) || !set_channels(w))
		return store_say(-ENOMEM, w->link.why, "Out of memory.");
	return subscribe(w);
}

int redis_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		     void **watch, char *why)
{
	const struct redis *r = (struct redis *)self;
	struct redis_watch *w = calloc(1, sizeof(*w));
	int error;

	if (w == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	/* Another thread may use the store's link: these never change. */
	w->bell = -1;
	w->link.address = r->address;
	w->link.timeout = r->timeout;
	memcpy(w->link.service, r->service, sizeof(r->service));
	memcpy(w->link.base, r->base, sizeof(r->base));
	error = set_up(w, prefixes, count);
	if (error != 0) {
		(void)store_say(error, why, "%s", w->link.why);
		redis_watch_close(self, w);
		return error;
	}
	w->notices = (struct notices){.count = 0};
	*watch = w;
	return 0;
}
