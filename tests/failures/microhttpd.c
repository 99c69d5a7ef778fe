/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function of the adapter for libmicrohttpd that allocates or starts a thread. */

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <microhttpd.h>

#include <weir/microhttpd.h>
#include <weir/weir.h>

#include "cases.h"

static struct weir_limiter *limiter;
static struct weir_microhttpd *guard;
static struct MHD_Daemon *server;
static unsigned handled;

/* Answers at once. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL,
									MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	(void)arg, (void)url, (void)method, (void)version, (void)body, (void)body_size, (void)state;
	CHECK(response != NULL);
	handled++;
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

static void begin(void)
{
	struct weir_config config;

	weir_config_init(&config);
	config.queue = 4;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
}

static int create(void)
{
	struct weir_microhttpd_config config;

	weir_microhttpd_config_init(&config);
	config.limiter = limiter;
	config.handler = handle;
	config.wait = WEIR_S;
	return weir_microhttpd_create(&config, &guard);
}

static void no_guard(void)
{
	CHECK(guard == NULL);
}

/* A daemon without threads, to which connections are given. */
static void begin_daemon(void)
{
	begin();
	CHECK(create() == 0);
	server = MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
				  NULL, weir_microhttpd_handle, guard, MHD_OPTION_NOTIFY_COMPLETED,
				  weir_microhttpd_completed, guard, MHD_OPTION_END);
	CHECK(server != NULL);
}

/* By readv() and writev(), which do not fail. */
static ssize_t receive(int fd)
{
	char answer[512];

	return readv(fd, &(struct iovec){answer, sizeof(answer)}, 1);
}

/* -ENOMEM: the request is not handled, or not answered, and its connection is closed. */
static int serve(void)
{
	static char request[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_in address = {.sin_family = AF_INET};
	const struct iovec bytes = {request, strlen(request)};
	int ends[2];

	handled = 0;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	CHECK(writev(ends[0], &bytes, 1) == (ssize_t)bytes.iov_len);
	CHECK(MHD_add_connection(server, ends[1], (struct sockaddr *)&address, sizeof(address)) ==
	      MHD_YES);
	/* Until the daemon has closed its end. */
	do {
		CHECK(MHD_run(server) == MHD_YES);
	} while (receive(ends[0]) != 0);
	close(ends[0]);
	return handled == 1 ? 0 : -ENOMEM;
}

static void holds_nothing(void)
{
	CHECK(weir_inflight(limiter) == 0);
}

static void use_guard(void)
{
	CHECK(weir_inflight(limiter) == 0 && weir_limit(limiter) > 0);
}

static void end(void)
{
	weir_microhttpd_destroy(guard);
	weir_limiter_destroy(limiter);
	guard = NULL;
}

static void end_daemon(void)
{
	weir_microhttpd_stop(guard);
	MHD_stop_daemon(server);
	end();
}

/* The daemon's own. */
#define DAEMON (FAULT_BIT(FAULT_SEND) | FAULT_BIT(FAULT_RECEIVE) | FAULT_BIT(FAULT_EVENT))

static const struct failure_case cases[] = {
	{"weir_microhttpd_create", NULL, begin, create, no_guard, use_guard, end},
	{"weir_microhttpd_handle",
	 NULL,
	 begin_daemon,
	 serve,
	 holds_nothing,
	 holds_nothing,
	 end_daemon,
	 {{DAEMON, -ENOMEM}, {DAEMON, 0}}},
};

int main(int argc, char **argv)
{
	int r = cases_run(cases, 1, argc, argv);

	/* What the daemon itself has no memory for is not tested here. */
	fault_only_in("libweir");
	return r + cases_run(cases + 1, 1, argc, argv);
}
