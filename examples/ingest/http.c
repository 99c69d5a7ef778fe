/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size of a request: some thousands of records. */
#define BODY_MAX ((size_t)1 << 20)

struct server {
	http_serve_fn *serve;
	void *arg;
};

/* The part of a request received so far. */
struct incoming {
	char *body;
	size_t size;
	bool too_large, no_memory;
};

static void receive(struct incoming *in, const char *data, size_t size)
{
	char *more;

	in->too_large = in->too_large || in->size + size > BODY_MAX;
	if (in->too_large || in->no_memory)
		return;
	more = realloc(in->body, in->size + size + 1);
	if (!more) {
		in->no_memory = true;
		return;
	}
	memcpy(more + in->size, data, size);
	in->size += size;
	more[in->size] = '\0';
	in->body = more;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const struct http_answer *answer)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(answer->text), (void *)answer->text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;
	char seconds[16];

	if (!response)
		return MHD_NO;
	(void)snprintf(seconds, sizeof(seconds), "%u", answer->retry_after);
	if (answer->retry_after != 0)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static void serve(const struct server *server, struct MHD_Connection *connection, const char *url,
		  const char *method, const struct incoming *in, struct http_answer *answer)
{
	const char *from = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "from");
	const struct http_request request = {
		.method = method,
		.url = url,
		.from = from ? from : "",
		.body = in->body ? in->body : "",
	};

	/* A 0 byte inside would hide the text after it. */
	if (in->body && strlen(in->body) != in->size)
		*answer = (struct http_answer){MHD_HTTP_BAD_REQUEST, 0, "no text\n"};
	else if (in->too_large)
		*answer = (struct http_answer){MHD_HTTP_CONTENT_TOO_LARGE, 0,
					       "request too large\n"};
	else if (in->no_memory)
		*answer = (struct http_answer){MHD_HTTP_INTERNAL_SERVER_ERROR, 0, "no memory\n"};
	else
		server->serve(server->arg, &request, answer);
}

/* libmicrohttpd calls this with the headers, with each piece of the body, and at the end. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **state)
{
	struct http_answer answer = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR};

	(void)version;
	if (!*state) {
		*state = calloc(1, sizeof(struct incoming));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*size) {
		receive(*state, data, *size);
		*size = 0;
		return MHD_YES;
	}
	serve(arg, connection, url, method, *state, &answer);
	return respond(connection, &answer);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode end)
{
	struct incoming *in = *state;

	(void)arg;
	(void)connection;
	(void)end;
	if (in)
		free(in->body);
	free(in);
	*state = NULL;
}

int http_run(unsigned port, http_serve_fn *serve_one, void *arg)
{
	struct server server = {.serve = serve_one, .arg = arg};
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct MHD_Daemon *daemon;
	sigset_t ending;
	int number;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL,
				  handle, &server, MHD_OPTION_SOCK_ADDR, &address,
				  MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
	if (!daemon) {
		fprintf(stderr, "%s: port %u: %s\n", program_invocation_short_name, port,
			strerror(errno));
		return -1;
	}
	printf("listening on 127.0.0.1:%u\n",
	       MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	sigwait(&ending, &number);
	MHD_stop_daemon(daemon);
	return 0;
}
