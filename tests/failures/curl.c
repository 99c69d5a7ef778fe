/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function of the adapter for libcurl that allocates or opens. No server is called. */

#include <string.h>

#include <weir/curl.h>
#include <weir/weir.h>

#include "cases.h"

/* Nothing listens on the port, so a transfer ends at once. */
#define URL    "http://127.0.0.1:1/"
#define ORIGIN "http://127.0.0.1:1"

static struct weir_curl *guard;
static struct weir_curl_multi *multi;
static CURL *easy, *first;

static int create(void)
{
	return weir_curl_create(NULL, &guard);
}

static void no_guard(void)
{
	CHECK(guard == NULL);
}

static unsigned inflight(void)
{
	struct weir_limiter *limiter;
	unsigned count;

	if (weir_registry_find(weir_curl_registry(guard), ORIGIN, strlen(ORIGIN), &limiter) != 0)
		return 0;
	count = weir_inflight(limiter);
	weir_registry_put(weir_curl_registry(guard), limiter);
	return count;
}

/* Whatever libcurl has no memory for is the transfer's result, not the guard's. */
static int perform(void)
{
	CURLcode result;

	return weir_curl_perform(guard, easy, NULL, &result);
}

static void holds_nothing(void)
{
	CHECK(inflight() == 0);
}

static CURL *new_easy(void)
{
	CURL *handle = curl_easy_init();

	CHECK(handle != NULL && curl_easy_setopt(handle, CURLOPT_URL, URL) == CURLE_OK);
	CHECK(curl_easy_setopt(handle, CURLOPT_PROXY, "") == CURLE_OK);
	return handle;
}

static void begin_easy(void)
{
	CHECK(create() == 0);
	easy = new_easy();
}

static void use_guard(void)
{
	CURL *handle = new_easy();
	CURLcode result;

	CHECK(weir_curl_perform(guard, handle, NULL, &result) == 0);
	CHECK(result == CURLE_COULDNT_CONNECT);
	holds_nothing();
	curl_easy_cleanup(handle);
}

static void end_guard(void)
{
	curl_easy_cleanup(easy);
	easy = NULL;
	/* It is not busy: nothing of a failed attempt still counts as a transfer or a pin. */
	CHECK(weir_curl_destroy(guard) == 0);
	guard = NULL;
}

static void use_easy(void)
{
	holds_nothing();
	use_guard();
}

static int create_multi(void)
{
	return weir_curl_multi_create(guard, &multi);
}

static void no_multi(void)
{
	CHECK(multi == NULL);
}

static int add(void)
{
	return weir_curl_multi_add(multi, easy, NULL);
}

static void begin_multi(void)
{
	begin_easy();
	CHECK(create_multi() == 0);
}

static void not_added(void)
{
	CHECK(weir_curl_multi_remove(multi, easy) == -ENOENT);
	holds_nothing();
}

static void was_added(void)
{
	CHECK(inflight() == 1);
	CHECK(weir_curl_multi_remove(multi, easy) == 0);
	holds_nothing();
}

static void use_multi(void)
{
	CHECK(add() == 0);
	was_added();
}

static void end_multi(void)
{
	weir_curl_multi_destroy(multi);
	curl_easy_cleanup(first);
	multi = NULL;
	first = NULL;
	end_guard();
}

/* A transfer that was queued, and has a permit now: it is started when libcurl runs. */

static void begin_queued(void)
{
	const struct weir_curl_call waits = {.deadline = weir_now() + 3600 * WEIR_S};
	const struct weir_fixed_config one = {.limit = 1};
	struct weir_curl_config c;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &one;
	limiter.limit_config_size = sizeof(one);
	limiter.queue = 4;
	weir_curl_config_init(&c);
	c.limiter = &limiter;
	CHECK(weir_curl_create(&c, &guard) == 0);
	CHECK(create_multi() == 0);
	first = new_easy();
	easy = new_easy();
	CHECK(weir_curl_multi_add(multi, first, NULL) == 0);
	CHECK(weir_curl_multi_add(multi, easy, &waits) == 0);
	CHECK(inflight() == 1);
	CHECK(weir_curl_multi_remove(multi, first) == 0);
}

static int run(void)
{
	int running;

	return weir_curl_multi_perform(multi, &running) == CURLM_OK ? 0 : -ENOMEM;
}

/* It ends once, whether it could be started or not. */
static void ends_once(void)
{
	struct weir_curl_done done;
	int running = 1;

	while (running > 0)
		CHECK(weir_curl_multi_perform(multi, &running) == CURLM_OK);
	CHECK(weir_curl_multi_done(multi, &done) && done.easy == easy);
	CHECK(done.error == -ENOMEM || (done.error == 0 && done.result != CURLE_OK));
	CHECK(!weir_curl_multi_done(multi, &done));
	holds_nothing();
}

static int see_socket(CURL *handle, curl_socket_t fd, int what, void *arg, void *data)
{
	(void)handle, (void)fd, (void)what, (void)arg, (void)data;
	return 0;
}

static int see_timer(CURLM *handle, long timeout, void *arg)
{
	(void)handle, (void)timeout, (void)arg;
	return 0;
}

static int set_sockets(void)
{
	return weir_curl_multi_sockets(multi, see_socket, NULL, see_timer, NULL);
}

#define IN_TRANSFER                                                                                \
	(FAULT_BIT(FAULT_MEMORY) | FAULT_BIT(FAULT_OPEN) | FAULT_BIT(FAULT_READ) |                 \
	 FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_STAT) | FAULT_BIT(FAULT_EVENT) |                 \
	 FAULT_BIT(FAULT_RANDOM) | FAULT_BIT(FAULT_SOCKET) | FAULT_BIT(FAULT_CONNECT))

static const struct failure_case cases[] = {
	{"weir_curl_create", NULL, NULL, create, no_guard, use_guard, end_guard},
	{"weir_curl_perform",
	 NULL,
	 begin_easy,
	 perform,
	 holds_nothing,
	 use_easy,
	 end_guard,
	 {{IN_TRANSFER, 0}}},
	{"weir_curl_multi_create", NULL, begin_easy, create_multi, no_multi, use_multi, end_multi},
	{"weir_curl_multi_add", NULL, begin_multi, add, not_added, was_added, end_multi},
	{"weir_curl_multi_perform weir_curl_multi_done",
	 NULL,
	 begin_queued,
	 run,
	 NULL,
	 ends_once,
	 end_multi,
	 {{IN_TRANSFER, 0}}},
	{"weir_curl_multi_sockets", NULL, begin_multi, set_sockets, NULL, use_multi, end_multi},
};

int main(int argc, char **argv)
{
	int r;

	CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
	r = cases_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
	curl_global_cleanup();
	return r;
}
