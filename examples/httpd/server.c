/*
 * The HTTP side: who is let in, and when a permit is given back.
 *
 * A thread a connection, as simple servers have it: as many requests run at once
 * as clients like, unless something says no. Here the limiter does, in admit().
 */
#include "server.h"

#include "stats.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	STACK_SIZE = 256 * 1024, /* of a connection's thread */
	/* Bursts wait in the kernel, connected, not in the clients' SYN timers. */
	BACKLOG = 4096,
	CONNECTIONS_MAX = 65536,
	IDLE_SECONDS = 30,
};

struct server {
	struct MHD_Daemon *daemon;
	struct MHD_Response *busy; /* made once: to refuse must be cheap */
	struct weir_limiter *limiter;
	struct store *store;
	weir_dur wait;
	atomic_uint next_shop;
};

/* Lives from the first byte of a request to the last of its response. */
struct request {
	struct weir_token token;
	enum weir_outcome outcome;
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

static bool admit(struct server *server, struct request *request)
{
	if (server->wait == 0)
		return weir_try_acquire(server->limiter, &request->token) == 0;
	return weir_acquire(server->limiter, weir_now() + server->wait, &request->token) == 0;
}

static enum MHD_Result serve_report(struct server *server, struct MHD_Connection *connection,
				    struct request *request)
{
	char text[1024];
	int length;

	if (!admit(server, request))
		return MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, server->busy);

	/* Until it is known better: a call that broke off says nothing about load. */
	request->outcome = WEIR_IGNORE;
	length = store_report(server->store, pick_shop(server, connection), text, sizeof(text));
	if (length < 0)
		return respond_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no report\n");
	request->outcome = WEIR_SUCCESS;
	return respond(connection, MHD_HTTP_OK, text, (size_t)length);
}

static enum MHD_Result serve_stats(struct server *server, struct MHD_Connection *connection)
{
	char text[512];

	stats_text(server->limiter, text, sizeof(text));
	return respond_text(connection, MHD_HTTP_OK, text);
}

/* A scraper that knows OpenMetrics says so. */
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
	struct server *server = arg;

	(void)version;
	(void)body;
	if (!*state) {
		*state = calloc(1, sizeof(struct request));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*body_size) {
		*body_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (strcmp(url, "/report") == 0)
		return serve_report(server, connection, *state);
	if (strcmp(url, "/stats") == 0)
		return serve_stats(server, connection);
	if (strcmp(url, "/metrics") == 0)
		return serve_metrics(server, connection);
	return respond_text(connection, MHD_HTTP_NOT_FOUND,
			    "there are /report, /stats and /metrics\n");
}

/*
 * However a request ended, libmicrohttpd comes here once: the one place for the
 * release. A zeroed token was refused, or never asked for.
 */
static void completed(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode end)
{
	struct server *server = arg;
	struct request *request = *state;

	(void)connection;
	if (!request)
		return;
	if (request->token.state != 0)
		weir_release(server->limiter, &request->token,
			     end == MHD_REQUEST_TERMINATED_COMPLETED_OK ? request->outcome
									: WEIR_IGNORE);
	free(request);
	*state = NULL;
}

static struct MHD_Response *make_busy(void)
{
	static const char text[] = "too busy: come back later\n";
	struct MHD_Response *busy = MHD_create_response_from_buffer(sizeof(text) - 1, (void *)text,
								    MHD_RESPMEM_PERSISTENT);

	if (busy)
		MHD_add_response_header(busy, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	return busy;
}

static struct MHD_Daemon *listen_on(uint16_t port, struct server *server)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
			       MHD_USE_POLL | MHD_USE_ERROR_LOG;

	return MHD_start_daemon(
		flags, port, NULL, NULL, handle, server, MHD_OPTION_SOCK_ADDR,
		(const struct sockaddr *)&address, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
		MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)BACKLOG, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE, MHD_OPTION_END);
}

struct server *server_start(uint16_t port, struct weir_limiter *limiter, weir_dur wait,
			    struct store *store)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->limiter = limiter;
	server->store = store;
	server->wait = wait;
	server->busy = make_busy();
	if (server->busy)
		server->daemon = listen_on(port, server);
	if (!server->daemon) {
		fprintf(stderr, "weir-httpd: cannot serve on 127.0.0.1:%u\n", port);
		server_stop(server);
		return NULL;
	}
	return server;
}

void server_stop(struct server *server)
{
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	if (server->busy)
		MHD_destroy_response(server->busy);
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
