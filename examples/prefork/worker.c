/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	STACK_SIZE = 256 * 1024, /* bytes; for the thread of a connection */
	IDLE_SECONDS = 30,
};

struct server {
	const struct worker *worker;
	struct weir_limiter *limiter;
	struct MHD_Response *busy; /* created once, so that a refusal is cheap */
};

/* Lives from the first byte of a request to the last byte of its response. */
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

static bool admit(const struct server *server, struct MHD_Connection *connection,
		  struct request *request)
{
	const weir_dur wait = server->worker->wait;
	const char *class = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "class");
	const struct weir_call call = {.partition = weir_partition_find(server->limiter, class)};

	if (wait == 0)
		return weir_try_acquire_for(server->limiter, &call, &request->token) == 0;
	return weir_acquire_for(server->limiter, &call, weir_now() + wait, &request->token) == 0;
}

static enum MHD_Result serve(const struct server *server, struct MHD_Connection *connection,
			     struct request *request)
{
	const struct worker *worker = server->worker;
	char text[1024];
	int length;

	if (!admit(server, connection, request))
		return MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, server->busy);
	board_begin(worker->board, worker->slot);
	request->outcome = WEIR_IGNORE;
	length = store_report(worker->store, (unsigned)(weir_now() / WEIR_US) % STORE_SHOPS, text,
			      sizeof(text));
	if (length < 0)
		return respond(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "", 0);
	request->outcome = WEIR_SUCCESS;
	return respond(connection, MHD_HTTP_OK, text, (size_t)length);
}

/* libmicrohttpd calls this once with the headers, and once more. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
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
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 || strcmp(url, "/report") != 0)
		return respond(connection, MHD_HTTP_NOT_FOUND, "", 0);
	return serve(arg, connection, *state);
}

/* libmicrohttpd calls this once, however a request ended: the one slot for the release. */
static void completed(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode end)
{
	const struct server *server = arg;
	struct request *request = *state;

	(void)connection;
	if (!request)
		return;
	if (request->token.state != 0) {
		board_end(server->worker->board, server->worker->slot);
		weir_release(server->limiter, &request->token,
			     end == MHD_REQUEST_TERMINATED_COMPLETED_OK ? request->outcome
									: WEIR_IGNORE);
	}
	free(request);
	*state = NULL;
}

static void connected(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_ConnectionNotificationCode what)
{
	const struct server *server = arg;
	struct slot *slot = &server->worker->board->slots[server->worker->slot];

	(void)connection;
	(void)state;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		atomic_fetch_add(&slot->connections, 1);
	else
		atomic_fetch_sub(&slot->connections, 1);
}

static struct MHD_Daemon *start(struct server *server)
{
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
			       MHD_USE_POLL | MHD_USE_ITC;

	return MHD_start_daemon(flags, 0, NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET,
				server->worker->listener, MHD_OPTION_NOTIFY_COMPLETED, completed,
				server, MHD_OPTION_NOTIFY_CONNECTION, connected, server,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
				MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE, MHD_OPTION_END);
}

/* Requests in progress are answered; new connections go to other workers. */
static void finish(struct server *server, struct MHD_Daemon *daemon)
{
	const struct slot *slot = &server->worker->board->slots[server->worker->slot];

	MHD_quiesce_daemon(daemon);
	while (atomic_load(&slot->at_work) > 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	MHD_stop_daemon(daemon);
}

/* The limiter is this process's own handle of the shared one, opened after the fork. */
static bool open_limiter(struct server *server)
{
	const struct worker *worker = server->worker;
	char why[256];

	if (weir_shm_open(worker->name, 0600, worker->config, WORKERS_MAX, &server->limiter, why,
			  sizeof(why)) == 0)
		return true;
	fprintf(stderr, "weir-prefork: %s\n", why);
	return false;
}

static struct MHD_Response *make_busy(void)
{
	static const char text[] = "too busy: retry later\n";
	struct MHD_Response *busy = MHD_create_response_from_buffer(sizeof(text) - 1, (void *)text,
								    MHD_RESPMEM_PERSISTENT);

	if (busy)
		MHD_add_response_header(busy, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	return busy;
}

int worker_run(struct worker *worker)
{
	struct server server = {.worker = worker};
	struct MHD_Daemon *daemon;
	sigset_t ending;
	int number;

	if (!open_limiter(&server))
		return EXIT_FAILURE;
	server.busy = make_busy();
	daemon = server.busy ? start(&server) : NULL;
	if (!daemon) {
		fputs("weir-prefork: a worker cannot serve\n", stderr);
		return EXIT_FAILURE;
	}
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigwait(&ending, &number);
	finish(&server, daemon);
	MHD_destroy_response(server.busy);
	weir_shm_detach(server.limiter);
	return EXIT_SUCCESS;
}
