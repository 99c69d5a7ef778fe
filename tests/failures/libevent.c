/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function of the adapter for libevent that allocates or opens. */

#include <event2/event.h>
#include <event2/http.h>

#include <weir/libevent.h>
#include <weir/weir.h>

#include "cases.h"

static struct event_base *base;
static struct weir_limiter *limiter;
static struct weir_evhttp *guard;
static unsigned called;

static void serve(struct evhttp_request *request, void *arg)
{
	(void)request, (void)arg;
	called++;
}

static void begin(void)
{
	struct weir_config config;

	weir_config_init(&config);
	config.queue = 4;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	base = event_base_new();
	CHECK(base != NULL);
}

static int create(void)
{
	struct weir_evhttp_config config;

	weir_evhttp_config_init(&config);
	config.limiter = limiter;
	config.base = base;
	config.callback = serve;
	config.wait = WEIR_S;
	return weir_evhttp_create(&config, &guard);
}

static void no_guard(void)
{
	CHECK(guard == NULL);
	/* No event of it is left in the loop. */
	CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
}

static void use_guard(void)
{
	struct evhttp_request *request = evhttp_request_new(NULL, NULL);

	CHECK(request != NULL);
	called = 0;
	weir_evhttp_handle(request, guard);
	CHECK(called == 1 && weir_inflight(limiter) == 0);
	evhttp_request_free(request);
	CHECK(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

static void end(void)
{
	weir_evhttp_destroy(guard);
	event_base_free(base);
	weir_limiter_destroy(limiter);
	guard = NULL;
}

static const struct failure_case cases[] = {
	{"weir_evhttp_create", NULL, begin, create, no_guard, use_guard, end},
};

int main(int argc, char **argv)
{
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
