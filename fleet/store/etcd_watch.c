/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the store in an etcd cluster: a stream of answers to one request, which has one or two
 * watches of ranges of keys, and one of the identity of the store.
 *
 * etcd's gateway may lose watches of a request that it has not read at once when it begins to answer,
 * and it reads BODY_MAX bytes at once. So there are no more: prefixes are put together into two
 * ranges, and what else is in these is left out here.
 *
 * The watches begin with the revision after one that was read before. After an error, the stream
 * begins anew, at a revision that is read then, and any row may have changed. One that was silent for
 * long begins anew where it was: its server may have been stopped, and another one may know more.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/store/base64.h"
#include "fleet/store/etcd_rows.h"
#include "fleet/store/notices.h"

#define WATCH       "/v3/watch"
#define SILENCE_MAX (30 * WEIR_S)
#define ATTEMPTS    4
#define RANGES_MAX  2
#define BODY_MAX    512

struct etcd_watch {
	struct etcd e; /* the name, the link and the sentence; no other field is used */
	struct watched watched;
	bool connected;
	uint64_t base, next; /* the first revision that was not reported */
	/* From the first key with one prefix to the last key with another one. */
	struct range {
		const char *first, *last;
	} ranges[RANGES_MAX];
	size_t range_count;
	size_t requested; /* watches */
	size_t created;   /* those that etcd has confirmed */
	weir_time heard;  /* when something came last; CLOCK_MONOTONIC */
	_Atomic bool woken;
	struct notices notices;
	struct notice shown;
};

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Sort prefixes, and leave out those that another one includes. Returns how many are left. */
static size_t sort_prefixes(char **prefixes, size_t count)
{
	size_t kept = 0;

	qsort(prefixes, count, sizeof(*prefixes), by_text);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 ||
		    strncmp(prefixes[i], prefixes[kept - 1], strlen(prefixes[kept - 1])) != 0)
			prefixes[kept++] = prefixes[i];
	return kept;
}

static size_t alike(const char *a, const char *b)
{
	size_t i = 0;

	while (a[i] != '\0' && a[i] == b[i])
		i++;
	return i;
}

/* Two ranges, divided where neighbours have least in common. Returns false without memory. */
static bool set_ranges(struct etcd_watch *w)
{
	char **prefixes = calloc(w->watched.count, sizeof(*prefixes));
	size_t count, second = 0;

	if (prefixes == NULL)
		return false;
	memcpy(prefixes, w->watched.prefixes, w->watched.count * sizeof(*prefixes));
	count = sort_prefixes(prefixes, w->watched.count);
	for (size_t i = 1; i < count; i++)
		if (second == 0 || alike(prefixes[i - 1], prefixes[i]) <=
					   alike(prefixes[second - 1], prefixes[second]))
			second = i;
	w->range_count = second > 0 ? 2 : 1;
	w->ranges[0] = (struct range){prefixes[0], prefixes[second > 0 ? second - 1 : 0]};
	w->ranges[1] = (struct range){prefixes[second], prefixes[count - 1]};
	free(prefixes);
	return true;
}

/* The text of a request for a watch of a range, or of the store's row. */
static char *create(const struct etcd_watch *w, const struct range *range)
{
	json_t *key = etcd_key(&w->e, range != NULL ? range->first : STORE_KEY);

	if (range == NULL)
		return etcd_print(json_pack("{s:{s:o, s:o}}", "create_request", "key", key,
					    "start_revision", etcd_text_of(w->next)));
	return etcd_print(json_pack("{s:{s:o, s:o, s:o}}", "create_request", "key", key,
				    "range_end", etcd_end_of(&w->e, range->last), "start_revision",
				    etcd_text_of(w->next)));
}

/* One request after the other, as far as there is room for them. To be freed. */
static char *join(struct etcd_watch *w, char *const *texts, size_t count)
{
	size_t size = 0, used = 0;
	char *text;

	for (size_t i = 0; i < count; i++)
		size += strlen(texts[i]);
	text = malloc(size + 1);
	if (text == NULL)
		return NULL;
	w->requested = 0;
	for (size_t i = 0; i < count; i++) {
		const size_t length = strlen(texts[i]);

		if (i > 0 && used + length > BODY_MAX)
			continue;
		memcpy(text + used, texts[i], length);
		used += length;
		w->requested++;
	}
	text[used] = '\0';
	return text;
}

static char *requests_as_they_are(struct etcd_watch *w)
{
	const struct range all = {w->ranges[0].first, w->ranges[w->range_count - 1].last};
	const bool apart = w->range_count > 1;
	char *texts[] = {
		create(w, apart ? &w->ranges[0] : &all),
		create(w, apart ? &w->ranges[1] : NULL),
		create(w, NULL),
	};
	const size_t count = apart ? 3 : 2;
	char *text = NULL;

	if (texts[0] != NULL && texts[1] != NULL && texts[2] != NULL)
		text = join(w, texts, count);
	for (size_t i = 0; i < 3; i++)
		free(texts[i]);
	return text;
}

/*
 * Without room for two ranges there is one. Without room for the store's row it is not watched:
 * polling finds another store.
 */
static char *requests(struct etcd_watch *w)
{
	char *text = requests_as_they_are(w);

	if (text == NULL || w->range_count == 1 || w->requested == 3)
		return text;
	free(text);
	w->ranges[0] = (struct range){w->ranges[0].first, w->ranges[w->range_count - 1].last};
	w->range_count = 1;
	return requests_as_they_are(w);
}

static void disconnect(struct etcd_watch *w)
{
	etcd_stream_end(w->e.link);
	w->connected = false;
}

static int lose(struct etcd_watch *w, int r)
{
	disconnect(w);
	w->next = 0;
	return r;
}

static void take_event(struct etcd_watch *w, const json_t *event)
{
	const json_t *kv = json_object_get(event, "kv"), *key = json_object_get(kv, "key");
	const size_t prefix = strlen(w->e.name) + 1;
	char text[2 * WEIR_STORE_KEY_MAX + 8];
	uint64_t revision;
	size_t size;

	if (!json_is_string(key) || json_string_length(key) / 4 * 3 >= sizeof(text) ||
	    !base64_decode(json_string_value(key), json_string_length(key), text, &size) ||
	    !etcd_number(kv, "mod_revision", &revision) || size <= prefix) {
		notices_any(&w->notices);
		return;
	}
	text[size] = '\0';
	if (strcmp(text + prefix, STORE_KEY) == 0) {
		/* It is another store, with another base. */
		notices_any(&w->notices);
		(void)lose(w, 0);
	} else if (watched_has(&w->watched, text + prefix)) {
		notices_add(&w->notices, text + prefix, w->base + revision);
	}
}

/* One watch of several has ended: all begin anew. */
static int take_cancel(struct etcd_watch *w, const json_t *result)
{
	const char *reason = json_string_value(json_object_get(result, "cancel_reason"));
	uint64_t compacted;

	if (etcd_number(result, "compact_revision", &compacted) && compacted != 0) {
		notices_any(&w->notices);
		return lose(w, 0);
	}
	(void)store_say(-EIO, w->e.why, "etcd has ended a watch: %.200s",
			reason != NULL ? reason : "no reason is given.");
	return reason != NULL && strstr(reason, "permission") != NULL ? -EACCES : -EIO;
}

static int take_result(struct etcd_watch *w, const json_t *result)
{
	const json_t *event;
	uint64_t revision;
	size_t i;

	if (json_is_true(json_object_get(result, "canceled")))
		return take_cancel(w, result);
	w->created += json_is_true(json_object_get(result, "created"));
	json_array_foreach(json_object_get(result, "events"), i, event) take_event(w, event);
	if (w->connected && json_object_get(result, "events") != NULL &&
	    etcd_number(json_object_get(result, "header"), "revision", &revision) &&
	    revision >= w->next && revision < UINT64_MAX)
		w->next = revision + 1;
	return 0;
}

static int take_answer(struct etcd_watch *w, const json_t *answer)
{
	const json_t *result = json_object_get(answer, "result");
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(
		json_is_object(error) ? json_object_get(error, "message") : error);

	if (json_is_object(result))
		return take_result(w, result);
	return store_say(text != NULL && strstr(text, "permission") != NULL ? -EACCES : -EIO,
			 w->e.why, "etcd reports an error: %.200s",
			 text != NULL ? text : "no message.");
}

/* Take all answers that have come. */
static int take_answers(struct etcd_watch *w)
{
	json_t *answer = NULL;
	int r;

	do {
		r = etcd_stream_next(w->e.link, &answer);
		if (answer == NULL)
			break;
		w->heard = now();
		r = take_answer(w, answer);
		json_decref(answer);
	} while (r == 0 && w->connected);
	return r;
}

/* Returns 0, -ECANCELED, -ETIMEDOUT or an error. */
static int listen_until(struct etcd_watch *w, weir_time end)
{
	const weir_time at = now();
	int r;

	if (atomic_exchange_explicit(&w->woken, false, memory_order_acq_rel))
		return -ECANCELED;
	if (at >= end)
		return -ETIMEDOUT;
	r = etcd_stream_wait(w->e.link, end - at);
	if (r == 0)
		r = take_answers(w);
	return r < 0 ? lose(w, r) : r;
}

/* Begin where it was, if it still is the same store, or with the present revision. */
static int find_place(struct etcd_watch *w)
{
	uint64_t base, revision;
	int r = etcd_find_base(&w->e, &base, &revision);

	if (r != 0)
		return r;
	if (w->next != 0 && base == w->base && revision + 1 >= w->next)
		return 0;
	notices_any(&w->notices);
	w->base = base;
	w->next = revision + 1;
	return 0;
}

/* Wait until etcd has confirmed all watches. */
static int confirm(struct etcd_watch *w)
{
	const weir_time end = now() + w->e.timeout;
	int r = 0;

	while (r == 0 && w->connected && w->created < w->requested)
		r = listen_until(w, end);
	if (r == -ETIMEDOUT)
		r = lose(w, store_say(-EIO, w->e.why, "etcd does not answer."));
	else if (r == -ECANCELED)
		(void)lose(w, r);
	return r;
}

static int connect_anew(struct etcd_watch *w)
{
	char *text;
	int r = find_place(w);

	if (r != 0)
		return lose(w, r);
	text = requests(w);
	if (text == NULL)
		return lose(w, store_say(-ENOMEM, w->e.why, "Out of memory."));
	w->created = 0;
	w->heard = now();
	r = etcd_stream_begin(w->e.link, WATCH, text);
	w->connected = r == 0;
	if (r == 0)
		r = confirm(w);
	else
		(void)lose(w, r);
	if (!w->connected)
		etcd_stream_end(w->e.link);
	free(text);
	return r;
}

static int listen_on(struct etcd_watch *w, weir_time end)
{
	const weir_time silent = w->heard + SILENCE_MAX;
	int r = listen_until(w, silent < end ? silent : end);

	if (r != -ETIMEDOUT || now() < silent)
		return r;
	disconnect(w);
	return now() < end ? 0 : r;
}

static int wait_until(struct etcd_watch *w, weir_time end)
{
	int r = 0;

	for (;;) {
		if (!w->connected)
			r = connect_anew(w);
		if (r != 0 || notices_take(&w->notices, &w->shown))
			return r;
		if (w->connected)
			r = listen_on(w, end);
		if (r != 0)
			return r;
	}
}

int etcd_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		    struct weir_store_change *change)
{
	struct etcd_watch *w = watch;
	const weir_time began = now();
	const int r = wait_until(w,
				 timeout < WEIR_FOREVER - began ? began + timeout : WEIR_FOREVER);

	(void)self;
	if (r == 0) {
		change->key = w->shown.key;
		change->version = w->shown.version;
	} else if (r != -ETIMEDOUT && r != -ECANCELED) {
		change->why = w->e.why;
	}
	return r == -EAGAIN || r == -EPROTO || r == -EINVAL ? -EIO : r;
}

void etcd_watch_wake(struct weir_store *self, void *watch)
{
	struct etcd_watch *w = watch;

	(void)self;
	(void)atomic_exchange_explicit(&w->woken, true, memory_order_acq_rel);
	etcd_stream_wake(w->e.link);
}

void etcd_watch_close(struct weir_store *self, void *watch)
{
	struct etcd_watch *w = watch;

	(void)self;
	if (w->e.link != NULL) {
		etcd_stream_end(w->e.link);
		etcd_link_close(w->e.link);
	}
	watched_free(&w->watched);
	free(w);
}

static int set_up(struct etcd_watch *w, const struct etcd *e, const char *const *prefixes,
		  size_t count)
{
	const struct store_setup setup = {
		.address = e->address,
		.timeout = e->timeout,
		.config = &e->config,
	};
	int r = etcd_link_open(&setup, w->e.why, &w->e.link);

	if (r == 0 && (!watched_set(&w->watched, prefixes, count) || !set_ranges(w)))
		r = store_say(-ENOMEM, w->e.why, "Out of memory.");
	for (unsigned i = 0; i < ATTEMPTS && r == 0 && !w->connected; i++)
		r = connect_anew(w);
	if (r == 0 && !w->connected)
		r = store_say(-EIO, w->e.why, "etcd does not begin a watch.");
	return r;
}

int etcd_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		    void **watch, char *why)
{
	const struct etcd *e = (struct etcd *)self;
	struct etcd_watch *w = calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	/* Another thread may use the store's link: these never change. */
	w->e.timeout = e->timeout;
	memcpy(w->e.name, e->name, sizeof(e->name));
	r = set_up(w, e, prefixes, count);
	if (r != 0) {
		(void)store_say(r, why, "%s", w->e.why);
		etcd_watch_close(self, w);
		return r == -EAGAIN || r == -EPROTO || r == -EINVAL ? -EIO : r;
	}
	w->notices = (struct notices){.count = 0};
	*watch = w;
	return 0;
}
