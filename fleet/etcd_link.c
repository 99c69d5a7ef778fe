/*
 * Requests to etcd by libcurl.
 *
 * A request that was not harmless must not be sent twice: libcurl does so by itself where a
 * connection that had been used before turns out to be closed, unless it cannot go back to the
 * beginning of what it sends. So such a request comes from a function that cannot.
 */

#include "etcd_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#define PORT_DEFAULT 2379
#define ANSWER_MAX   ((size_t)256 << 20)

/* gRPC's codes, as far as they say something. */
enum {
	CODE_INVALID = 3,
	CODE_NOT_FOUND = 5,
	CODE_DENIED = 7,
	CODE_EXHAUSTED = 8,
	CODE_UNAUTHENTICATED = 16,
};

struct etcd_link {
	struct address address;
	unsigned current; /* of the hosts: the one that answered last */
	CURL *curl;
	struct curl_slist *headers;
	bool logged_in;
	char *why; /* of the store, WHY_SIZE */
	char error[CURL_ERROR_SIZE];
	char *answer; /* as it comes in, and room for it */
	size_t size, room;
};

/* What is sent, from where on. */
struct sending {
	const char *text;
	size_t size, at;
};

static size_t receive(char *bytes, size_t one, size_t count, void *arg)
{
	struct etcd_link *l = arg;
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

	/* It would ask first whether to send what is larger. */
	more = headers != NULL ? curl_slist_append(headers, "Expect:") : NULL;
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
	curl_easy_setopt(l->curl, CURLOPT_HTTPHEADER, more);
	return true;
}

static void set_tls(CURL *curl, const struct weir_store_config *config)
{
	if (config->tls_ca != NULL)
		curl_easy_setopt(curl, CURLOPT_CAINFO, config->tls_ca);
	if (config->tls_cert != NULL)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, config->tls_cert);
	if (config->tls_key != NULL)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, config->tls_key);
}

static void set_options(struct etcd_link *l, const struct store_setup *setup)
{
	CURL *curl = l->curl;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, l->error);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(setup->timeout / WEIR_MS));
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, l);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	set_tls(curl, setup->config);
}

int etcd_link_open(const struct store_setup *setup, char *why, struct etcd_link **link)
{
	struct etcd_link *l = calloc(1, sizeof(*l));

	/* Once a process; it counts. */
	if (l != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		l->curl = curl_easy_init();
	if (l == NULL || l->curl == NULL || !set_headers(l, NULL)) {
		etcd_link_close(l);
		return store_say(-ENOMEM, why, "There is no memory.");
	}
	l->address = setup->address;
	l->why = why;
	set_options(l, setup);
	*link = l;
	return 0;
}

void etcd_link_close(struct etcd_link *l)
{
	if (l == NULL)
		return;
	if (l->curl != NULL) {
		curl_easy_cleanup(l->curl);
		curl_global_cleanup();
	}
	curl_slist_free_all(l->headers);
	free(l->answer);
	explicit_bzero(l, sizeof(*l));
	free(l);
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

int etcd_senseless(struct etcd_link *l)
{
	return store_say(-EIO, l->why, "etcd answers what makes no sense.");
}

/* What a refusal comes to. */
static int refused(struct etcd_link *l, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "error"));
	uint64_t code = 0;
	int r = -EIO;

	if (text == NULL || !etcd_number(answer, "code", &code))
		return etcd_senseless(l);
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
	return store_say(r, l->why, "etcd says: %.200s", text);
}

/* Whether it failed before anybody had heard a word of it. */
static bool is_unheard(CURLcode code)
{
	return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
	       code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
}

static void set_url(struct etcd_link *l, const char *path)
{
	const struct address_host *host = &l->address.hosts[l->current];
	const bool six = strchr(host->name, ':') != NULL;
	char url[512];

	(void)snprintf(url, sizeof(url), "%s://%s%s%s:%u%s",
		       strcmp(l->address.scheme, "etcds") == 0 ? "https" : "http", six ? "[" : "",
		       host->name, six ? "]" : "",
		       (unsigned)(host->port != 0 ? host->port : PORT_DEFAULT), path);
	curl_easy_setopt(l->curl, CURLOPT_URL, url);
}

static void set_body(struct etcd_link *l, struct sending *sending, bool harmless)
{
	curl_easy_setopt(l->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sending->size);
	curl_easy_setopt(l->curl, CURLOPT_POSTFIELDS, harmless ? sending->text : NULL);
	curl_easy_setopt(l->curl, CURLOPT_READFUNCTION, provide);
	curl_easy_setopt(l->curl, CURLOPT_READDATA, sending);
}

/* One host. *heard: it may have got it. */
static int ask_host(struct etcd_link *l, const char *path, const char *text, bool harmless,
		    bool *heard, json_t **answer)
{
	struct sending sending = {.text = text, .size = strlen(text)};
	CURLcode code;
	long status = 0;
	int r;

	set_url(l, path);
	set_body(l, &sending, harmless);
	l->size = 0;
	l->error[0] = '\0';
	code = curl_easy_perform(l->curl);
	*heard = !is_unheard(code);
	if (code != CURLE_OK)
		return store_say(-EIO, l->why, "etcd does not answer: %.200s",
				 l->error[0] != '\0' ? l->error : curl_easy_strerror(code));
	curl_easy_getinfo(l->curl, CURLINFO_RESPONSE_CODE, &status);
	*answer = l->size > 0 ? json_loadb(l->answer, l->size, 0, NULL) : NULL;
	if (*answer == NULL)
		return etcd_senseless(l);
	if (status == 200)
		return 0;
	r = refused(l, *answer);
	json_decref(*answer);
	*answer = NULL;
	return r;
}

/* The hosts in turn, from the one that answered last. */
static int ask_hosts(struct etcd_link *l, const char *path, const char *text, bool harmless,
		     json_t **answer)
{
	int r = -EIO;

	for (unsigned i = 0; i < l->address.count; i++) {
		bool heard;

		r = ask_host(l, path, text, harmless, &heard, answer);
		if (r != -EIO)
			return r;
		l->current = (l->current + 1) % l->address.count;
		if (heard && !harmless)
			return r;
	}
	return r;
}

static int log_in(struct etcd_link *l)
{
	json_t *request, *answer;
	const char *token;
	char *text;
	int r;

	if (l->logged_in || l->address.user[0] == '\0')
		return 0;
	if (!set_headers(l, NULL))
		return store_say(-ENOMEM, l->why, "There is no memory.");
	request = json_pack("{s:s, s:s}", "name", l->address.user, "password", l->address.password);
	text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	json_decref(request);
	if (text == NULL)
		return store_say(-EINVAL, l->why, "User or password is no good text.");
	r = ask_hosts(l, "/v3/auth/authenticate", text, true, &answer);
	explicit_bzero(text, strlen(text));
	free(text);
	if (r != 0)
		return r == -EINVAL ? -EACCES : r;
	token = json_string_value(json_object_get(answer, "token"));
	if (token == NULL || strlen(token) > 1900)
		r = etcd_senseless(l);
	else if (!set_headers(l, token))
		r = store_say(-ENOMEM, l->why, "There is no memory.");
	l->logged_in = r == 0;
	json_decref(answer);
	return r;
}

int etcd_ask(struct etcd_link *l, const char *path, json_t *request, bool harmless, json_t **answer)
{
	char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
	const bool had = l->logged_in;
	int r;

	*answer = NULL;
	json_decref(request);
	if (text == NULL)
		return store_say(-ENOMEM, l->why, "There is no memory.");
	r = log_in(l);
	if (r == 0)
		r = ask_hosts(l, path, text, harmless, answer);
	/* Tokens end after some minutes. Who is refused for that has done nothing yet. */
	if (r == -EACCES && had) {
		l->logged_in = false;
		r = log_in(l);
		if (r == 0)
			r = ask_hosts(l, path, text, harmless, answer);
	}
	free(text);
	return r;
}
