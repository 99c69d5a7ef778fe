/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP side on libevent: one loop that reads and writes, and threads that work. The work is
 * limited: a request with a permit is passed to the threads, which release the permit as soon as
 * the report is made, and the loop answers. weir/libevent.h lets requests wait, or refuses them.
 */
#include "server.h"

#include "stats.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/thread.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/libevent.h>

enum { POOL_DEFAULT = 64, POOL_MAX = 1000, PATIENCE_SECONDS = 30 };

struct job {
	struct job *next;
	struct evhttp_request *request;
	struct weir_token token;
	unsigned shop;
	int length;
	char text[1024];
};

struct jobs {
	struct job *first, **end;
};

struct server {
	struct weir_limiter *limiter;
	struct store *store;
	struct event_base *base;
	struct evhttp *http;
	struct evhttp_bound_socket *bound;
	struct weir_evhttp *guard;
	struct event *some_done, *stop;
	pthread_t loop;
	bool looping;
	unsigned next_shop;
	atomic_uint working; /* jobs that are not answered */
	bool stopping;       /* used by the loop only */

	pthread_mutex_t lock;
	pthread_cond_t some_to_do;
	struct jobs to_do, done; /* protected by the lock, like ending */
	bool ending;
	pthread_t pool[POOL_MAX];
	unsigned pool_size;
};

static void jobs_append(struct jobs *jobs, struct job *job)
{
	job->next = NULL;
	*jobs->end = job;
	jobs->end = &job->next;
}

static struct job *jobs_take(struct jobs *jobs)
{
	struct job *job = jobs->first;

	if (!job)
		return NULL;
	jobs->first = job->next;
	if (!jobs->first)
		jobs->end = &jobs->first;
	return job;
}

/* A thread of the pool. */

static struct job *next_job(struct server *server)
{
	struct job *job;

	pthread_mutex_lock(&server->lock);
	while (!(job = jobs_take(&server->to_do)) && !server->ending)
		pthread_cond_wait(&server->some_to_do, &server->lock);
	pthread_mutex_unlock(&server->lock);
	return job;
}

static void *work(void *arg)
{
	struct server *server = arg;
	struct job *job;

	while ((job = next_job(server))) {
		job->length = store_report(server->store, job->shop, job->text, sizeof(job->text));
		weir_release(server->limiter, &job->token,
			     job->length >= 0 ? WEIR_SUCCESS : WEIR_IGNORE);
		pthread_mutex_lock(&server->lock);
		jobs_append(&server->done, job);
		pthread_mutex_unlock(&server->lock);
		event_active(server->some_done, 0, 0);
	}
	return NULL;
}

/* The loop. */

static void respond(struct evhttp_request *request, int status, const char *text, size_t length)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add(body, text, length);
	evhttp_send_reply(request, status, NULL, body);
	if (body)
		evbuffer_free(body);
}

static void respond_text(struct evhttp_request *request, int status, const char *text)
{
	respond(request, status, text, strlen(text));
}

static void answer(struct server *server, struct job *job)
{
	if (job->length < 0)
		respond_text(job->request, HTTP_INTERNAL, "no report\n");
	else
		respond(job->request, HTTP_OK, job->text, (size_t)job->length);
	free(job);
	if (atomic_fetch_sub_explicit(&server->working, 1, memory_order_relaxed) == 1 &&
	    server->stopping)
		event_base_loopbreak(server->base);
}

static void answer_done(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	struct job *job, *next;

	(void)fd, (void)what;
	pthread_mutex_lock(&server->lock);
	job = server->done.first;
	server->done = (struct jobs){.end = &server->done.first};
	pthread_mutex_unlock(&server->lock);
	for (; job; job = next) {
		next = job->next;
		answer(server, job);
	}
}

static unsigned pick_shop(struct server *server, struct evhttp_request *request)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));

	if (query && strncmp(query, "shop=", 5) == 0)
		return (unsigned)strtoul(query + 5, NULL, 10);
	return server->next_shop++ % STORE_SHOPS;
}

/* Called with a permit, which is passed on with the job. */
static void serve_report(struct evhttp_request *request, void *arg)
{
	struct server *server = arg;
	struct job *job;

	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		respond_text(request, HTTP_BADMETHOD, "only GET\n");
		return;
	}
	job = malloc(sizeof(*job));
	if (!job) {
		respond_text(request, HTTP_INTERNAL, "no memory\n");
		return;
	}
	job->request = request;
	job->token = weir_evhttp_take(server->guard);
	job->shop = pick_shop(server, request);
	atomic_fetch_add_explicit(&server->working, 1, memory_order_relaxed);
	pthread_mutex_lock(&server->lock);
	jobs_append(&server->to_do, job);
	pthread_cond_signal(&server->some_to_do);
	pthread_mutex_unlock(&server->lock);
}

static void serve_stats(struct evhttp_request *request, void *arg)
{
	const struct server *server = arg;
	char text[512];

	stats_text(server->limiter, text, sizeof(text));
	respond_text(request, HTTP_OK, text);
}

/* A scraper that accepts OpenMetrics sends this type. */
static void serve_metrics(struct evhttp_request *request, void *arg)
{
	const struct server *server = arg;
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request),
						"Accept");
	const enum weir_metrics_format format = accept && strstr(accept,
								 "application/openmetrics-text")
							? WEIR_OPENMETRICS
							: WEIR_PROMETHEUS;
	char *text = stats_metrics(server->limiter, format);

	if (!text) {
		respond_text(request, HTTP_INTERNAL, "no memory\n");
		return;
	}
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  weir_metrics_content_type(format));
	respond_text(request, HTTP_OK, text);
	free(text);
}

static void serve_nothing(struct evhttp_request *request, void *arg)
{
	(void)arg;
	respond_text(request, HTTP_NOTFOUND, "try /report, /stats or /metrics\n");
}

/* Accept no more connections, refuse waiting requests, and answer those that have begun. */
static void stop(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	(void)fd, (void)what;
	evhttp_del_accept_socket(server->http, server->bound);
	evhttp_del_cb(server->http, "/report");
	weir_evhttp_destroy(server->guard);
	server->guard = NULL;
	server->stopping = true;
	if (atomic_load_explicit(&server->working, memory_order_relaxed) == 0)
		event_base_loopbreak(server->base);
}

/* Wait also for threads whose client has disconnected. */
static void *run_loop(void *arg)
{
	const struct server *server = arg;

	event_base_loop(server->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

/* Start and end of the server. */

static bool make_guard(struct server *server, weir_dur wait)
{
	struct weir_evhttp_config config;

	weir_evhttp_config_init(&config);
	config.limiter = server->limiter;
	config.base = server->base;
	config.callback = serve_report;
	config.callback_arg = server;
	config.wait = wait;
	return weir_evhttp_create(&config, &server->guard) == 0;
}

static bool listen_on(struct server *server, uint16_t port)
{
	evhttp_set_timeout(server->http, PATIENCE_SECONDS);
	evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
	evhttp_set_cb(server->http, "/report", weir_evhttp_handle, server->guard);
	evhttp_set_cb(server->http, "/stats", serve_stats, server);
	evhttp_set_cb(server->http, "/metrics", serve_metrics, server);
	evhttp_set_gencb(server->http, serve_nothing, NULL);
	server->bound = evhttp_bind_socket_with_handle(server->http, "127.0.0.1", port);
	return server->bound;
}

static bool start_threads(struct server *server, unsigned pool)
{
	pool = pool ? pool : POOL_DEFAULT;
	for (; server->pool_size < pool; server->pool_size++)
		if (pthread_create(&server->pool[server->pool_size], NULL, work, server) != 0)
			return false;
	server->looping = pthread_create(&server->loop, NULL, run_loop, server) == 0;
	return server->looping;
}

static bool make_events(struct server *server)
{
	if (evthread_use_pthreads() != 0)
		return false;
	server->base = event_base_new();
	if (!server->base)
		return false;
	server->http = evhttp_new(server->base);
	server->some_done = event_new(server->base, -1, 0, answer_done, server);
	server->stop = event_new(server->base, -1, 0, stop, server);
	return server->http && server->some_done && server->stop;
}

struct server *server_start(const struct server_config *config)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->limiter = config->limiter;
	server->store = config->store;
	server->to_do.end = &server->to_do.first;
	server->done.end = &server->done.first;
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->some_to_do, NULL);
	if (!make_events(server) || !make_guard(server, config->wait) ||
	    !listen_on(server, config->port) || !start_threads(server, config->pool)) {
		fprintf(stderr, "%s: cannot serve on 127.0.0.1:%u\n", program_invocation_short_name,
			config->port);
		server_stop(server);
		return NULL;
	}
	return server;
}

static void end_pool(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->ending = true;
	pthread_cond_broadcast(&server->some_to_do);
	pthread_mutex_unlock(&server->lock);
	while (server->pool_size > 0)
		pthread_join(server->pool[--server->pool_size], NULL);
}

void server_stop(struct server *server)
{
	if (server->looping) {
		event_active(server->stop, 0, 0);
		pthread_join(server->loop, NULL);
	}
	end_pool(server);
	weir_evhttp_destroy(server->guard);
	if (server->http)
		evhttp_free(server->http);
	if (server->some_done)
		event_free(server->some_done);
	if (server->stop)
		event_free(server->stop);
	if (server->base)
		event_base_free(server->base);
	pthread_cond_destroy(&server->some_to_do);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

uint16_t server_port(const struct server *server)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	getsockname(evhttp_bound_socket_get_fd(server->bound), (struct sockaddr *)&address, &size);
	return ntohs(address.sin_port);
}

unsigned server_connections(const struct server *server)
{
	return atomic_load_explicit(&server->working, memory_order_relaxed);
}
