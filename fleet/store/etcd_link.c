/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to etcd by libcurl.
 *
 * A request that is not idempotent must not be sent twice. libcurl sends a request again if a
 * connection that had been used before turns out to be closed, unless it cannot rewind the data. So
 * the body of such a request comes from a read function that cannot rewind.
 */

#include "fleet/store/etcd_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#define PORT_DEFAULT 2379
#define ANSWER_MAX   ((size_t)256 << 20)
#define LANES        2 /* requests at the same time */

/* The codes of gRPC that are distinguished here. */
enum {
	CODE_INVALID = 3,
	CODE_NOT_FOUND = 5,
	CODE_DENIED = 7,
	CODE_EXHAUSTED = 8,
	CODE_UNAUTHENTICATED = 16,
};

/* The body of a request, and how much of it has been sent. */
struct sending {
	const char *text;
	size_t size, at;
};

/* One request at a time, and the buffer of its answer. */
struct lane {
	CURL *curl;
	char error[CURL_ERROR_SIZE];
	struct sending sending;
	CURLcode code; /* the result of the transfer */
	char *answer;
	size_t size, room;
};

struct etcd_link {
	struct address address;
	unsigned current; /* index of the host that answered last */
	CURLM *multi;
	struct lane lanes[LANES];
	struct curl_slist *headers;
	bool logged_in;
	bool listens; /* it has had a stream */
	bool streams; /* lane 0 has one now */
	bool ended;   /* that stream */
	size_t taken; /* bytes of it that were taken as answers */
	weir_dur timeout;
	char *why; /* the store's sentence, WHY_SIZE bytes */
};

/* One or two requests: path, body and answer (or NULL) of each. */
struct requests {
	const char *const *paths;
	char *const *texts;
	json_t **answers;
	unsigned count;
	bool idempotent;
};

static size_t receive(char *bytes, size_t one, size_t count, void *arg)
{
	struct lane *l = arg;
	const size_t more = one * count;

	if (more > ANSWER_MAX - l->size)
		return 0;
	if (l->size + more + 1 > l->room) {
		const size_t room = 2 * (l->size + more + 1);
		char *answer = realloc(l->answer, room);

		if (answer == NULL)
			return 0;
		l->answer = answer;
		l->room = room;
	}
	memcpy(l->answer + l->size, bytes, more);
	l->size += more;
	l->answer[l->size] = '\0';
	return more;
}

static size_t provide(char *to, size_t one, size_t count, void *arg)
{
	struct sending *s = arg;
	const size_t left = s->size - s->at, room = one * count;
	const size_t some = left < room ? left : room;

	memcpy(to, s->text + s->at, some);
	s->at += some;
	return some;
}

static bool set_headers(struct etcd_link *l, const char *token)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json"),
			  *more;
	char text[2048];

	/* Without this, libcurl waits for a 100-continue before it sends a large body. */
	more = headers != NULL ? curl_slist_append(headers, "Expect:") : NULL;
	/* Without a leader there are no changes, and etcd is to end the stream. */
	if (more != NULL && l->listens)
		more = curl_slist_append(more, "Grpc-Metadata-hasleader: true");
	if (more != NULL && token != NULL) {
		(void)snprintf(text, sizeof(text), "Authorization: %s", token);
		more = curl_slist_append(more, text);
	}
	if (more == NULL) {
		curl_slist_free_all(headers);
		return false;
	}
	curl_slist_free_all(l->headers);
	l->headers = more;
	for (unsigned i = 0; i < LANES; i++)
		curl_easy_setopt(l->lanes[i].curl, CURLOPT_HTTPHEADER, more);
	return true;
}

/* libcurl copies the text. False: out of memory. */
static bool set_text(CURL *curl, CURLoption option, const char *text)
{
	return curl_easy_setopt(curl, option, text) != CURLE_OUT_OF_MEMORY;
}

static bool set_tls(CURL *curl, const struct weir_store_config *config)
{
	return (config->tls_ca == NULL || set_text(curl, CURLOPT_CAINFO, config->tls_ca)) &&
	       (config->tls_cert == NULL || set_text(curl, CURLOPT_SSLCERT, config->tls_cert)) &&
	       (config->tls_key == NULL || set_text(curl, CURLOPT_SSLKEY, config->tls_key));
}

static bool set_options(struct lane *l, const struct store_setup *setup)
{
	CURL *curl = l->curl;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, l->error);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(setup->timeout / WEIR_MS));
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, l);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	return set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       set_text(curl, CURLOPT_PROXY, "") && set_tls(curl, setup->config);
}

/* False: out of memory. */
static bool make_lanes(struct etcd_link *l, const struct store_setup *setup)
{
	l->multi = curl_multi_init();
	for (unsigned i = 0; i < LANES; i++) {
		l->lanes[i].curl = curl_easy_init();
		if (l->lanes[i].curl == NULL || !set_options(&l->lanes[i], setup))
			return false;
	}
	return l->multi != NULL && set_headers(l, NULL);
}

int etcd_link_open(const struct store_setup *setup, char *why, struct etcd_link **link)
{
	struct etcd_link *l = calloc(1, sizeof(*l));

	/* Initializes once per process; calls are counted. */
	if (l == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		free(l);
		return store_say(-ENOMEM, why, "Out of memory.");
	}
	l->address = setup->address;
	l->timeout = setup->timeout;
	l->why = why;
	if (!make_lanes(l, setup)) {
		etcd_link_close(l);
		return store_say(-ENOMEM, why, "Out of memory.");
	}
	*link = l;
	return 0;
}

void etcd_link_close(struct etcd_link *l)
{
	if (l == NULL)
		return;
	for (unsigned i = 0; i < LANES; i++) {
		curl_easy_cleanup(l->lanes[i].curl);
		free(l->lanes[i].answer);
	}
	curl_multi_cleanup(l->multi);
	curl_slist_free_all(l->headers);
	explicit_bzero(l, sizeof(*l));
	free(l);
	curl_global_cleanup();
}

bool etcd_number(const json_t *object, const char *name, uint64_t *number)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);
	char *end;

	*number = 0;
	if (value == NULL)
		return json_is_object(object);
	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*number = (uint64_t)json_integer_value(value);
		return true;
	}
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

void etcd_link_save(const struct etcd_link *l, char sentence[WHY_SIZE])
{
	memcpy(sentence, l->why, WHY_SIZE);
}

void etcd_link_restore(struct etcd_link *l, const char sentence[WHY_SIZE])
{
	memcpy(l->why, sentence, WHY_SIZE);
}

int etcd_invalid_response(struct etcd_link *l)
{
	return store_say(-EIO, l->why, "etcd sent an invalid response.");
}

/* Map an error response to an errno. */
static int refused(struct etcd_link *l, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "error"));
	uint64_t code = 0;
	int r = -EIO;

	if (text == NULL || !etcd_number(answer, "code", &code))
		return etcd_invalid_response(l);
	if (code == CODE_NOT_FOUND)
		r = -ESTALE;
	else if (code == CODE_DENIED || code == CODE_UNAUTHENTICATED ||
		 strstr(text, "authentication") != NULL ||
		 strstr(text, "user name is empty") != NULL)
		r = -EACCES;
	else if (code == CODE_EXHAUSTED)
		r = -ENOSPC;
	else if (strstr(text, "too large") != NULL)
		r = -EMSGSIZE;
	else if (code == CODE_INVALID)
		r = -EINVAL;
	return store_say(r, l->why, "etcd reports an error: %.200s", text);
}

/* Whether the request failed before any of it was sent. */
static bool is_unsent(CURLcode code)
{
	return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
	       code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
}

static bool set_url(const struct etcd_link *l, CURL *curl, const char *path)
{
	const struct address_host *host = &l->address.hosts[l->current];
	const bool six = strchr(host->name, ':') != NULL;
	char url[512];

	(void)snprintf(url, sizeof(url), "%s://%s%s%s:%u%s",
		       strcmp(l->address.scheme, "etcds") == 0 ? "https" : "http", six ? "[" : "",
		       host->name, six ? "]" : "",
		       (unsigned)(host->port != 0 ? host->port : PORT_DEFAULT), path);
	return set_text(curl, CURLOPT_URL, url);
}

static void set_body(struct lane *l, const char *text, bool idempotent)
{
	l->sending = (struct sending){.text = text, .size = strlen(text)};
	curl_easy_setopt(l->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)l->sending.size);
	curl_easy_setopt(l->curl, CURLOPT_POSTFIELDS, idempotent ? text : NULL);
	curl_easy_setopt(l->curl, CURLOPT_READFUNCTION, provide);
	curl_easy_setopt(l->curl, CURLOPT_READDATA, &l->sending);
	l->size = 0;
	l->error[0] = '\0';
	l->code = CURLE_FAILED_INIT;
}

static void note_ends(struct etcd_link *l)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(l->multi, &left)) != NULL)
		for (unsigned i = 0; i < LANES; i++)
			if (message->msg == CURLMSG_DONE &&
			    message->easy_handle == l->lanes[i].curl)
				l->lanes[i].code = message->data.result;
}

/* Run all lanes at the same time, until each has ended. */
static void run(struct etcd_link *l, unsigned count)
{
	int running = 0;

	for (unsigned i = 0; i < count; i++)
		curl_multi_add_handle(l->multi, l->lanes[i].curl);
	while (curl_multi_perform(l->multi, &running) == CURLM_OK && running > 0)
		curl_multi_poll(l->multi, NULL, 0, 1000, NULL);
	note_ends(l);
	for (unsigned i = 0; i < count; i++)
		curl_multi_remove_handle(l->multi, l->lanes[i].curl);
}

static int take_answer(struct etcd_link *l, struct lane *lane, json_t **answer)
{
	long status = 0;
	int r;

	if (lane->code != CURLE_OK)
		return store_say(-EIO, l->why, "etcd does not answer: %.200s",
				 lane->error[0] != '\0' ? lane->error
							: curl_easy_strerror(lane->code));
	curl_easy_getinfo(lane->curl, CURLINFO_RESPONSE_CODE, &status);
	*answer = lane->size > 0 ? json_loadb(lane->answer, lane->size, 0, NULL) : NULL;
	if (*answer == NULL)
		return etcd_invalid_response(l);
	if (status == 200)
		return 0;
	r = refused(l, *answer);
	json_decref(*answer);
	*answer = NULL;
	return r;
}

static void free_answers(const struct requests *requests)
{
	for (unsigned i = 0; i < requests->count; i++) {
		json_decref(requests->answers[i]);
		requests->answers[i] = NULL;
	}
}

static int no_memory(struct etcd_link *l)
{
	return store_say(-ENOMEM, l->why, "Out of memory.");
}

/* Send to the current host. *sent: it may have received something. */
static int send_to_host(struct etcd_link *l, const struct requests *requests, bool *sent)
{
	int r = 0;

	*sent = false;
	for (unsigned i = 0; i < requests->count; i++) {
		/* Without memory, libcurl would use the URL of an earlier request. */
		if (!set_url(l, l->lanes[i].curl, requests->paths[i]))
			return no_memory(l);
		set_body(&l->lanes[i], requests->texts[i], requests->idempotent);
	}
	run(l, requests->count);
	for (unsigned i = 0; i < requests->count && r == 0; i++) {
		*sent |= !is_unsent(l->lanes[i].code);
		r = take_answer(l, &l->lanes[i], &requests->answers[i]);
	}
	if (r != 0)
		free_answers(requests);
	return r;
}

/* Try the hosts in turn, beginning with the one that answered last. */
static int send_to_hosts(struct etcd_link *l, const struct requests *requests)
{
	int r = -EIO;

	for (unsigned i = 0; i < l->address.count; i++) {
		bool sent;

		r = send_to_host(l, requests, &sent);
		if (r != -EIO)
			return r;
		l->current = (l->current + 1) % l->address.count;
		if (sent && !requests->idempotent)
			return r;
	}
	return r;
}

/*
 * json_dumps() of jansson 2.14
 * must not be used: it leaves out a name for which it has no memory, and a transaction without the
 * name of its comparisons would have none.
 */
char *etcd_print(json_t *request)
{
	const size_t size = request != NULL ? json_dumpb(request, NULL, 0, JSON_COMPACT) : 0;
	char *text = size > 0 ? malloc(size + 1) : NULL;
	const bool whole = text != NULL && json_dumpb(request, text, size, JSON_COMPACT) == size;

	json_decref(request);
	if (whole) {
		text[size] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

static int log_in(struct etcd_link *l)
{
	static const char *const path = "/v3/auth/authenticate";
	char password[PASSWORD_SIZE];
	json_t *request, *answer = NULL;
	const char *token;
	char *text;
	int r;

	if (l->logged_in || l->address.user[0] == '\0')
		return 0;
	if (!set_headers(l, NULL))
		return no_memory(l);
	r = address_password(&l->address, password, l->why);
	if (r != 0)
		return r;
	request = json_pack("{s:s, s:s}", "name", l->address.user, "password", password);
	explicit_bzero(password, sizeof(password));
	if (request == NULL)
		return store_say(-EINVAL, l->why, "The user or password is not valid text.");
	text = etcd_print(request);
	if (text == NULL)
		return no_memory(l);
	r = send_to_hosts(l, &(struct requests){&path, &text, &answer, 1, true});
	explicit_bzero(text, strlen(text));
	free(text);
	if (r != 0)
		return r == -EINVAL ? -EACCES : r;
	token = json_string_value(json_object_get(answer, "token"));
	if (token == NULL || strlen(token) > 1900)
		r = etcd_invalid_response(l);
	else if (!set_headers(l, token))
		r = no_memory(l);
	l->logged_in = r == 0;
	json_decref(answer);
	return r;
}

/* Tokens expire after some minutes. A request that is refused for that reason had no effect. */
static int ask(struct etcd_link *l, const struct requests *requests)
{
	const bool had = l->logged_in;
	int r = log_in(l);

	if (r == 0)
		r = send_to_hosts(l, requests);
	if (r != -EACCES || !had)
		return r;
	l->logged_in = false;
	r = log_in(l);
	return r == 0 ? send_to_hosts(l, requests) : r;
}

int etcd_ask(struct etcd_link *l, const char *path, json_t *request, bool idempotent,
	     json_t **answer)
{
	char *text = etcd_print(request);
	int r;

	*answer = NULL;
	r = text != NULL ? ask(l, &(struct requests){&path, &text, answer, 1, idempotent})
			 : no_memory(l);
	free(text);
	return r;
}

int etcd_ask_both(struct etcd_link *l, const char *const *paths, json_t *const *requests,
		  json_t **answers)
{
	char *texts[] = {etcd_print(requests[0]), etcd_print(requests[1])};
	int r;

	answers[0] = answers[1] = NULL;
	r = texts[0] != NULL && texts[1] != NULL
		    ? ask(l, &(struct requests){paths, texts, answers, 2, true})
		    : no_memory(l);
	free(texts[0]);
	free(texts[1]);
	return r;
}

static void set_stream_times(struct etcd_link *l, bool streams)
{
	CURL *curl = l->lanes[0].curl;
	const long ms = (long)(l->timeout / WEIR_MS);

	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, streams ? 0L : ms);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, ms);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 5L);
}

int etcd_stream_begin(struct etcd_link *l, const char *path, const char *text)
{
	struct lane *lane = &l->lanes[0];
	int r;

	l->listens = true;
	if (l->address.user[0] == '\0' && !set_headers(l, NULL))
		return no_memory(l);
	r = log_in(l);
	if (r != 0)
		return r;
	if (!set_url(l, lane->curl, path))
		return no_memory(l);
	set_body(lane, text, true);
	set_stream_times(l, true);
	curl_multi_add_handle(l->multi, lane->curl);
	l->streams = true;
	l->ended = false;
	l->taken = 0;
	return 0;
}

void etcd_stream_end(struct etcd_link *l)
{
	if (!l->streams)
		return;
	curl_multi_remove_handle(l->multi, l->lanes[0].curl);
	set_stream_times(l, false);
	/* The buffer may have become large. */
	free(l->lanes[0].answer);
	l->lanes[0].answer = NULL;
	l->lanes[0].size = l->lanes[0].room = 0;
	l->streams = false;
}

int etcd_stream_wait(struct etcd_link *l, weir_dur timeout)
{
	const size_t before = l->lanes[0].size;
	const int ms = timeout < 60 * WEIR_S ? (int)((timeout + WEIR_MS - 1) / WEIR_MS) : 60000;
	int running = 0, events = 0;

	if (curl_multi_perform(l->multi, &running) != CURLM_OK ||
	    (running > 0 && l->lanes[0].size == before &&
	     (curl_multi_poll(l->multi, NULL, 0, ms, &events) != CURLM_OK ||
	      curl_multi_perform(l->multi, &running) != CURLM_OK)))
		return store_say(-EIO, l->why, "etcd cannot be listened to.");
	l->ended = running == 0;
	return 0;
}

void etcd_stream_wake(struct etcd_link *l)
{
	(void)curl_multi_wakeup(l->multi);
}

/* The stream is over: why? */
static int end_of_stream(struct etcd_link *l)
{
	struct lane *lane = &l->lanes[0];
	json_t *answer = NULL;
	int r;

	note_ends(l);
	r = take_answer(l, lane, &answer);
	json_decref(answer);
	l->current = (l->current + 1) % l->address.count;
	if (r == -EACCES)
		l->logged_in = false;
	return r != 0 ? r : store_say(-EIO, l->why, "etcd has ended a stream.");
}

/* Answers are lines. */
int etcd_stream_next(struct etcd_link *l, json_t **answer)
{
	struct lane *lane = &l->lanes[0];
	const char *at = lane->answer + l->taken;
	const char *end = l->taken < lane->size ? memchr(at, '\n', lane->size - l->taken) : NULL;

	*answer = NULL;
	if (end == NULL && l->ended)
		return end_of_stream(l);
	if (end == NULL) {
		if (l->taken > 0)
			memmove(lane->answer, at, lane->size - l->taken);
		lane->size -= l->taken;
		l->taken = 0;
		return 0;
	}
	*answer = json_loadb(at, (size_t)(end - at), 0, NULL);
	l->taken = (size_t)(end + 1 - lane->answer);
	return *answer != NULL ? 0 : etcd_invalid_response(l);
}
