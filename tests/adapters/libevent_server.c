/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server for the tests of the adapter for libevent.
 *
 *	libevent-server QUEUE WAIT_MS LIMIT
 *
 * / is answered 5 ms later, and its permit released by another thread. /status?code=N answers with
 * that status at once, /early releases as a timeout, /forgets answers later and keeps no token;
 * /health and /stats are not limited; /nonsense is of a partition that does not exist. It
 * serves until it gets a signal.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/thread.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/libevent.h>
#include <weir/weir.h>

struct server {
	struct weir_limiter *limiter;
	struct event_base *base;
	struct weir_evhttp *guard;
	unsigned jobs;
	bool stopping;
};

struct job {
	struct server *server;
	struct evhttp_request *request;
	struct weir_token token;
	struct event *done;
};

static void respond(struct evhttp_request *request, int code, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	evbuffer_add(body, text, strlen(text));
	evhttp_send_reply(request, code, NULL, body);
	evbuffer_free(body);
}

static void print_stats(const struct server *server, char *text, size_t size)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(server->limiter, &s);
	snprintf(text, size,
		 "admitted %" PRIu64 "\nrejected %" PRIu64 "\nabandoned %" PRIu64
		 "\nsucceeded %" PRIu64 "\nignored %" PRIu64 "\ndropped %" PRIu64
		 "\ntimed_out %" PRIu64 "\ncancelled %" PRIu64 "\nfailed %" PRIu64
		 "\ndouble_released %" PRIu64 "\nwaiting %" PRIu32 "\njobs %u\nin flight %" PRIu32
		 "\n",
		 s.admitted, s.rejected, s.abandoned, s.succeeded, s.ignored, s.dropped,
		 s.timed_out, s.cancelled, s.failed, s.double_released, s.waiting, server->jobs,
		 s.inflight);
}

static void finish(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;
	struct server *server = job->server;

	(void)fd, (void)what;
	respond(job->request, HTTP_OK, "done\n");
	event_free(job->done);
	free(job);
	if (--server->jobs == 0 && server->stopping)
		event_base_loopbreak(server->base);
}

static void *work(void *arg)
{
	struct job *job = arg;

	nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
	if (job->token.state != 0)
		weir_release(job->server->limiter, &job->token, WEIR_SUCCESS);
	event_active(job->done, 0, 0);
	return NULL;
}

static void work_later(struct server *server, struct evhttp_request *request,
		       struct weir_token token)
{
	struct job *job = malloc(sizeof(*job));
	pthread_t thread;

	*job = (struct job){.server = server, .request = request, .token = token};
	job->done = event_new(server->base, -1, 0, finish, job);
	server->jobs++;
	if (pthread_create(&thread, NULL, work, job) == 0)
		pthread_detach(thread);
	else
		work(job);
}

static int wanted_code(struct evhttp_request *request)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));

	return query && strncmp(query, "code=", 5) == 0 ? atoi(query + 5) : HTTP_OK;
}

static void handle(struct evhttp_request *request, void *arg)
{
	struct server *server = arg;
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	struct weir_token token;
	char text[1024];

	if (strcmp(path, "/") == 0) {
		work_later(server, request, weir_evhttp_take(server->guard));
	} else if (strcmp(path, "/forgets") == 0) {
		work_later(server, request, (struct weir_token){.state = 0});
	} else if (strcmp(path, "/status") == 0) {
		respond(request, wanted_code(request), "as you like\n");
	} else if (strcmp(path, "/early") == 0) {
		token = weir_evhttp_take(server->guard);
		weir_release(server->limiter, &token, WEIR_TIMED_OUT);
		token = weir_evhttp_take(server->guard);
		respond(request, token.state == 0 ? HTTP_OK : HTTP_INTERNAL, "early\n");
	} else {
		print_stats(server, text, sizeof(text));
		respond(request, HTTP_OK, text);
	}
}

static bool classify(struct evhttp_request *request, void *arg, struct weir_call *call)
{
	const char *uri = evhttp_request_get_uri(request);

	(void)arg;
	if (strcmp(uri, "/nonsense") == 0)
		call->partition = 77;
	return strcmp(uri, "/health") != 0 && strcmp(uri, "/stats") != 0;
}

static struct weir_limiter *make_limiter(const char *text, unsigned queue)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX] = {0};
	struct weir_limiter *limiter = NULL;
	struct weir_config config;
	char why[200];

	weir_config_init(&config);
	if (weir_limit_from_text(text, &config.limit, limit_config, why, sizeof(why)) != 0)
		return NULL;
	config.limit_config = limit_config;
	config.limit_config_size = config.limit->config_size;
	config.queue = queue;
	/* The oldest waiter polls now and then, so it must not be the one that is granted. */
	config.order = WEIR_LIFO;
	return weir_limiter_create(&config, &limiter) == 0 ? limiter : NULL;
}

static void end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	event_base_loopbreak(arg);
}

static unsigned port_of(struct evhttp_bound_socket *bound)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size);
	return ntohs(address.sin_port);
}

static void serve(struct server *server, struct evhttp *http)
{
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	struct event *term = evsignal_new(server->base, SIGTERM, end, server->base);

	if (!bound)
		return;
	event_add(term, NULL);
	evhttp_set_timeout(http, 20);
	evhttp_set_gencb(http, weir_evhttp_handle, server->guard);
	printf("listening on 127.0.0.1:%u\n", port_of(bound));
	fflush(stdout);
	event_base_dispatch(server->base);

	/* Finish requests in progress, and refuse those that wait. */
	evhttp_del_accept_socket(http, bound);
	evhttp_set_gencb(http, NULL, NULL);
	weir_evhttp_destroy(server->guard);
	server->stopping = true;
	if (server->jobs > 0)
		event_base_dispatch(server->base);
	evhttp_free(http);
	event_free(term);
}

int main(int argc, char **argv)
{
	struct server server = {0};
	struct weir_evhttp_config config;
	char text[1024];

	if (argc != 4 || evthread_use_pthreads() != 0)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	server.limiter = make_limiter(argv[3], (unsigned)atoi(argv[1]));
	server.base = event_base_new();
	if (!server.limiter || !server.base)
		return 2;
	weir_evhttp_config_init(&config);
	config.limiter = server.limiter;
	config.base = server.base;
	config.callback = handle;
	config.callback_arg = &server;
	config.classify = classify;
	config.wait = (weir_dur)atoi(argv[2]) * WEIR_MS;
	if (weir_evhttp_config_check(&config, text, sizeof(text)) != 0)
		fprintf(stderr, "%s\n", text);
	if (weir_evhttp_create(&config, &server.guard) != 0)
		return 1;
	serve(&server, evhttp_new(server.base));
	event_base_free(server.base);
	print_stats(&server, text, sizeof(text));
	fputs(text, stdout);
	weir_limiter_destroy(server.limiter);
	libevent_global_shutdown();
	return 0;
}
