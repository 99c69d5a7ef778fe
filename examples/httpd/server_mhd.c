/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP side on libmicrohttpd: the limited requests, and the daemon's modes. weir/microhttpd.h
 * does the rest.
 *
 * Either one thread per connection, as in simple servers: without a limit, as many requests run at
 * once as clients send. Or a pool of threads for all connections: then requests that wait for a
 * permit need no thread.
 */
#include "server.h"

#include "stats.h"

#include <errno.h>
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/microhttpd.h>

enum {
	STACK_SIZE = 256 * 1024, /* bytes; for the thread of a connection */
	/* Bursts wait in the kernel as connections, and not in the clients' SYN timers. */
	BACKLOG = 4096,
	CONNECTIONS_MAX = 65536,
	IDLE_SECONDS = 30,
};

struct server {
	struct MHD_Daemon *daemon;
	struct weir_microhttpd *guard;
	struct weir_limiter *limiter;
	struct store *store;
	atomic_uint next_shop;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *text,
			       size_t length)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(length, (void *)text,
									MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned status,
				    const char *text)
{
	return respond(connection, status, text, strlen(text));
}

static unsigned pick_shop(struct server *server, struct MHD_Connection *connection)
{
	const char *shop = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "shop");

	if (shop)
		return (unsigned)strtoul(shop, NULL, 10);
	return atomic_fetch_add_explicit(&server->next_shop, 1, memory_order_relaxed) % STORE_SHOPS;
}

static enum MHD_Result serve_report(struct server *server, struct MHD_Connection *connection)
{
	char text[1024];
	int length = store_report(server->store, pick_shop(server, connection), text, sizeof(text));

	if (length < 0)
		return respond_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no report\n");
	return respond(connection, MHD_HTTP_OK, text, (size_t)length);
}

static enum MHD_Result serve_stats(struct server *server, struct MHD_Connection *connection)
{
	char text[512];

	stats_text(server->limiter, text, sizeof(text));
	return respond_text(connection, MHD_HTTP_OK, text);
}

/* A scraper that accepts OpenMetrics sends this type. */
static enum weir_metrics_format pick_format(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);

	return accept && strstr(accept, "application/openmetrics-text") ? WEIR_OPENMETRICS
									: WEIR_PROMETHEUS;
}

static enum MHD_Result serve_metrics(struct server *server, struct MHD_Connection *connection)
{
	const enum weir_metrics_format format = pick_format(connection);
	char *text = stats_metrics(server->limiter, format);
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				weir_metrics_content_type(format));
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* libmicrohttpd calls this once with the headers, then for the body, then for the response. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	static char begun;
	struct server *server = arg;

	(void)version;
	(void)body;
	if (!*state) {
		*state = &begun;
		return MHD_YES;
	}
	if (*body_size) {
		*body_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (strcmp(url, "/report") == 0)
		return serve_report(server, connection);
	if (strcmp(url, "/stats") == 0)
		return serve_stats(server, connection);
	if (strcmp(url, "/metrics") == 0)
		return serve_metrics(server, connection);
	return respond_text(connection, MHD_HTTP_NOT_FOUND, "try /report, /stats or /metrics\n");
}

/* Other paths are cheap, and most useful when the server is busy, so they are not limited. */
static bool is_limited(void *arg, struct MHD_Connection *connection, const char *url,
		       const char *method, struct weir_call *call)
{
	(void)arg, (void)connection, (void)call;
	return strcmp(url, "/report") == 0 && strcmp(method, MHD_HTTP_METHOD_GET) == 0;
}

static bool make_guard(struct server *server, weir_dur wait)
{
	struct weir_microhttpd_config config;

	weir_microhttpd_config_init(&config);
	config.limiter = server->limiter;
	config.handler = handle;
	config.handler_arg = server;
	config.classify = is_limited;
	config.wait = wait;
	return weir_microhttpd_create(&config, &server->guard) == 0;
}

static struct MHD_Daemon *listen_on(const struct server_config *config, struct server *server)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(config->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const unsigned threads = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
	const unsigned pool = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem size[] = {
		{MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)config->pool, NULL},
		{MHD_OPTION_END, 0, NULL},
	};

	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG |
					(config->pool ? pool : threads),
				config->port, NULL, NULL, weir_microhttpd_handle, server->guard,
				MHD_OPTION_ARRAY, config->pool ? size : size + 1,
				MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address,
				MHD_OPTION_NOTIFY_COMPLETED, weir_microhttpd_completed,
				server->guard, MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)BACKLOG,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
				MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE, MHD_OPTION_END);
}

struct server *server_start(const struct server_config *config)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->limiter = config->limiter;
	server->store = config->store;
	if (make_guard(server, config->wait))
		server->daemon = listen_on(config, server);
	if (!server->daemon) {
		fprintf(stderr, "%s: cannot serve on 127.0.0.1:%u\n", program_invocation_short_name,
			config->port);
		server_stop(server);
		return NULL;
	}
	return server;
}

void server_stop(struct server *server)
{
	if (server->daemon) {
		weir_microhttpd_stop(server->guard);
		MHD_stop_daemon(server->daemon);
	}
	weir_microhttpd_destroy(server->guard);
	free(server);
}

uint16_t server_port(const struct server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

unsigned server_connections(const struct server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}
