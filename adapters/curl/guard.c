/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard: finds the limiter of a URL, and the outcome of a result.
 */

#include "guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"

#define QUEUE_DEFAULT       256
#define RETRY_AFTER_DEFAULT (60 * WEIR_S)

enum {
	STATUS_TOO_MANY_REQUESTS = 429,
	STATUS_UNAVAILABLE = 503,
};

void weir_curl_config_init_sized(struct weir_curl_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

/* Fields that are unknown to a program built with an older header are zero. */
static int read_config(const struct weir_curl_config *config, struct weir_curl_config *full)
{
	*full = (struct weir_curl_config){.size = sizeof(*full)};
	if (config == NULL)
		return 0;
	if (config->size < sizeof(config->size) || config->size > sizeof(*full))
		return -EINVAL;
	memcpy(full, config, config->size);
	return full->registry != NULL && full->limiter != NULL ? -EINVAL : 0;
}

static int make_registry(const struct weir_config *limiter, struct weir_registry **registry)
{
	struct weir_registry_config config;
	struct weir_config usual;

	weir_config_init(&usual);
	usual.queue = QUEUE_DEFAULT;
	weir_registry_config_init(&config);
	config.limiter = limiter != NULL ? limiter : &usual;
	return weir_registry_create(&config, registry);
}

/* The condition uses the monotonic clock, like deadlines. */
static int init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	int error = pthread_condattr_init(&attributes);

	if (error != 0)
		return -error;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	error = pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
	return -error;
}

static enum weir_outcome usual_outcome(void *arg, CURL *easy, CURLcode result)
{
	(void)arg;
	return weir_curl_outcome(easy, result);
}

int weir_curl_create(const struct weir_curl_config *config, struct weir_curl **guard)
{
	struct weir_curl_config full;
	struct weir_curl *g;
	int error = read_config(config, &full);

	*guard = NULL;
	if (error != 0)
		return error;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->registry = full.registry;
	g->outcome = full.outcome != NULL ? full.outcome : usual_outcome;
	g->arg = full.arg;
	g->retry_after_max = full.retry_after_max != 0 ? full.retry_after_max : RETRY_AFTER_DEFAULT;
	error = init_condition(&g->opened);
	if (error == 0 && g->registry == NULL) {
		error = make_registry(full.limiter, &g->own);
		g->registry = g->own;
	}
	if (error != 0) {
		free(g);
		return error;
	}
	pthread_mutex_init(&g->mutex, NULL);
	*guard = g;
	return 0;
}

int weir_curl_destroy(struct weir_curl *guard)
{
	if (guard == NULL)
		return 0;
	if (atomic_load_explicit(&guard->users, memory_order_acquire) != 0)
		return -EBUSY;
	closed_clear(guard);
	if (guard->own != NULL && weir_registry_destroy(guard->own) != 0)
		return -EBUSY;
	pthread_cond_destroy(&guard->opened);
	pthread_mutex_destroy(&guard->mutex);
	free(guard);
	return 0;
}

struct weir_registry *weir_curl_registry(const struct weir_curl *guard)
{
	return guard->registry;
}

static bool in_lower_case(char *text)
{
	for (; *text != '\0'; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text - 'A' + 'a');
	return true;
}

static CURLUcode take_part(CURLU *parts, CURLUPart part, char **text, unsigned flags,
			   CURLUcode before)
{
	return before == CURLUE_OK ? curl_url_get(parts, part, text, flags) : before;
}

/* Write scheme://host:port. libcurl's parser is used, so the key names the host that is called. */
static int write_origin(const char *url, char key[WEIR_KEY_MAX + 1])
{
	CURLU *parts = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	int error = -EINVAL, length;
	CURLUcode code;

	if (parts == NULL)
		return -ENOMEM;
	code = curl_url_set(parts, CURLUPART_URL, url, CURLU_GUESS_SCHEME);
	code = take_part(parts, CURLUPART_SCHEME, &scheme, 0, code);
	code = take_part(parts, CURLUPART_HOST, &host, 0, code);
	code = take_part(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT, code);
	if (code == CURLUE_OUT_OF_MEMORY)
		error = -ENOMEM;
	if (code == CURLUE_OK && in_lower_case(host)) {
		length = snprintf(key, WEIR_KEY_MAX + 1, "%s://%s:%s", scheme, host, port);
		error = length <= WEIR_KEY_MAX ? 0 : -ENAMETOOLONG;
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parts);
	return error;
}

static int write_key(CURL *easy, const char *wanted, struct hold *hold)
{
	const char *url = NULL;
	size_t length;

	hold->by_origin = wanted == NULL;
	if (wanted != NULL) {
		length = strnlen(wanted, WEIR_KEY_MAX + 1);
		if (length > WEIR_KEY_MAX)
			return -ENAMETOOLONG;
		memcpy(hold->key, wanted, length + 1);
		return 0;
	}
	if (curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || url == NULL ||
	    *url == '\0')
		return -EINVAL;
	return write_origin(url, hold->key);
}

static void unpin(struct weir_curl *guard, struct hold *hold, bool kept)
{
	if (!kept)
		weir_registry_put(guard->registry, hold->limiter);
	hold->limiter = NULL;
	atomic_fetch_sub_explicit(&guard->users, 1, memory_order_release);
}

int hold_find(struct weir_curl *guard, CURL *easy, const struct weir_curl_call *call,
	      struct hold *hold)
{
	int error;

	hold->limiter = NULL;
	hold->token = (struct weir_token){.state = 0};
	error = write_key(easy, call->key, hold);
	if (error == 0)
		error = weir_registry_get(guard->registry, hold->key, strlen(hold->key),
					  &hold->limiter);
	if (error != 0)
		return error;
	atomic_fetch_add_explicit(&guard->users, 1, memory_order_relaxed);
	if (call->deadline != 0 && weir_queue_size(hold->limiter) == 0) {
		unpin(guard, hold, false);
		return -EINVAL;
	}
	return 0;
}

void hold_drop(struct weir_curl *guard, struct hold *hold, enum weir_outcome outcome)
{
	if (hold->limiter == NULL)
		return;
	if (hold->token.state != 0)
		weir_release(hold->limiter, &hold->token, outcome);
	unpin(guard, hold, false);
}

static bool is_http(CURL *easy)
{
	const char *scheme = NULL;

	return curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme) == CURLE_OK && scheme != NULL &&
	       strncasecmp(scheme, "http", 4) == 0;
}

/* The HTTP status; 0: none. */
static long status_of(CURL *easy)
{
	long status = 0;

	if (!is_http(easy) || curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK)
		return 0;
	return status;
}

static enum weir_outcome outcome_of_connect(CURL *easy)
{
	long error = 0;

	curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
	if (error == ETIMEDOUT)
		return WEIR_TIMED_OUT;
	return error == ECONNREFUSED ? WEIR_DROPPED : WEIR_FAILED;
}

enum weir_outcome weir_curl_outcome(CURL *easy, CURLcode result)
{
	switch (result) {
	case CURLE_OK:
	case CURLE_HTTP_RETURNED_ERROR: /* CURLOPT_FAILONERROR */
		return outcome_of_status((unsigned)status_of(easy));
	case CURLE_OPERATION_TIMEDOUT:
		return WEIR_TIMED_OUT;
	case CURLE_COULDNT_CONNECT:
		return outcome_of_connect(easy);
	case CURLE_ABORTED_BY_CALLBACK:
	case CURLE_READ_ERROR:
	case CURLE_WRITE_ERROR:
		return WEIR_CANCELLED;
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_BAD_FUNCTION_ARGUMENT:
	case CURLE_FAILED_INIT:
	case CURLE_FILESIZE_EXCEEDED:
	case CURLE_NOT_BUILT_IN:
	case CURLE_OUT_OF_MEMORY:
	case CURLE_TOO_MANY_REDIRECTS:
	case CURLE_UNKNOWN_OPTION:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_URL_MALFORMAT:
		return WEIR_IGNORE;
	default:
		return WEIR_FAILED;
	}
}

static bool ended_elsewhere(CURL *easy, const struct hold *hold)
{
	char key[WEIR_KEY_MAX + 1];
	const char *url = NULL;
	long redirects = 0;

	curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &redirects);
	if (redirects == 0 || !hold->by_origin)
		return false;
	curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
	return url == NULL || write_origin(url, key) != 0 || strcmp(key, hold->key) != 0;
}

/* From the time when the request could be sent to the end of the response. 0: unknown. */
static weir_dur latency_of(CURL *easy)
{
	curl_off_t total = 0, before = 0;

	curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total);
	curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &before);
	return total > before ? (weir_dur)(total - before) * WEIR_US : 0;
}

/* The time for which Retry-After closes the origin; 0: none. */
static weir_dur retry_after(const struct weir_curl *guard, CURL *easy)
{
	const long status = status_of(easy);
	curl_off_t seconds = 0;

	if (status != STATUS_TOO_MANY_REQUESTS && status != STATUS_UNAVAILABLE)
		return 0;
	curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds <= 0)
		return 0;
	if ((weir_dur)seconds >= guard->retry_after_max / WEIR_S)
		return guard->retry_after_max;
	return (weir_dur)seconds * WEIR_S;
}

/* Close or open the origin before the release of the permit, which may start a transfer. */
void hold_finish(struct weir_curl *guard, struct hold *hold, CURL *easy, CURLcode result)
{
	const weir_time now = weir_now();
	const weir_dur latency = latency_of(easy);
	enum weir_outcome outcome = WEIR_IGNORE;
	weir_dur pause = 0;
	bool kept = false;

	if (!ended_elsewhere(easy, hold)) {
		outcome = guard->outcome(guard->arg, easy, result);
		pause = retry_after(guard, easy);
	}
	if (pause > 0)
		kept = closed_begin(guard, hold->limiter, now + pause);
	else if (outcome == WEIR_SUCCESS)
		closed_end(guard, hold->limiter);
	if (latency > 0)
		hold->token.start = now - latency;
	weir_release_at(hold->limiter, now, &hold->token, outcome);
	unpin(guard, hold, kept);
}
