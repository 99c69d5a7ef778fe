/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that shut down one direction of a connection while they wait, or close it: which of them
 * are served.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/microhttpd.h>
#include <weir/weir.h>

#include "check.h"
#include "gone.h"

static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/* A listening socket: a local one with an unused name, or TCP on any port. */
static int listen_on(int domain)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const sa_family_t local = AF_UNIX;
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (domain == AF_UNIX)
		CHECK(bind(fd, (const struct sockaddr *)&local, sizeof(local)) == 0);
	else
		CHECK(bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0);
	CHECK(listen(fd, 10) == 0);
	return fd;
}

static int connect_to(int listener)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int fd;

	CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(connect(fd, (struct sockaddr *)&address, size) == 0);
	return fd;
}

/* Wait until the end of the other side's data has arrived. */
static void await_end(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};

	CHECK(poll(&end, 1, -1) == 1);
}

static void detects_gone_clients(int domain)
{
	const int listener = listen_on(domain);
	char byte;
	int here, there;

	there = connect_to(listener);
	here = accept(listener, NULL, NULL);
	CHECK(!client_is_gone(here));
	CHECK(write(there, "x", 1) == 1);
	CHECK(!client_is_gone(here));
	shutdown(there, SHUT_WR);
	await_end(here);
	CHECK(!client_is_gone(here)); /* there is something to read */
	CHECK(read(here, &byte, 1) == 1);
	CHECK(client_is_gone(here) == (domain != AF_UNIX));
	close(there);
	await_end(here);
	CHECK(client_is_gone(here));
	close(here);

	there = connect_to(listener);
	here = accept(listener, NULL, NULL);
	CHECK(write(here, "x", 1) == 1);
	close(there); /* without having read: a reset */
	await_end(here);
	CHECK(client_is_gone(here));
	close(here);
	close(listener);
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	static char text[] = "served\n";
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text,
									MHD_RESPMEM_PERSISTENT);
	const enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);

	(void)url, (void)method, (void)version, (void)body, (void)body_size, (void)state;
	atomic_fetch_add((atomic_uint *)arg, 1);
	MHD_destroy_response(response);
	return result;
}

static struct weir_limiter *make_limiter(void)
{
	const struct weir_fixed_config fixed = {.limit = 1};
	struct weir_config config;
	struct weir_limiter *limiter;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.queue = 10;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	return limiter;
}

static uint64_t cancelled(const struct weir_limiter *limiter)
{
	struct weir_snapshot now;

	weir_snapshot_init(&now);
	weir_snapshot_take(limiter, &now);
	return now.cancelled;
}

/* A permit is released before the end of its call is counted. */
static bool is_settled(const struct weir_limiter *limiter)
{
	struct weir_snapshot now;

	weir_snapshot_init(&now);
	weir_snapshot_take(limiter, &now);
	return now.inflight == 0 && now.admitted == now.succeeded + now.ignored + now.dropped +
							    now.timed_out + now.cancelled +
							    now.failed;
}

static void wait_idle(const struct weir_limiter *limiter)
{
	while (!is_settled(limiter))
		usleep(1000);
}

/* Shut down a direction, and wait until the other side has noticed. */
static void close_end(int fd, int how)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	shutdown(fd, how);
	while (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_FIN_WAIT1))
		usleep(1000);
}

/* A client with its sending side shut down waits for a permit. Returns whether it is answered. */
static bool is_served(struct weir_limiter *limiter, int listener)
{
	const int client = connect_to(listener);
	struct weir_token token;
	char answer[1000] = "";
	ssize_t n;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	CHECK(write(client, request, strlen(request)) == (ssize_t)strlen(request));
	while (weir_waiting(limiter) == 0)
		usleep(1000);
	close_end(client, SHUT_WR);
	weir_release(limiter, &token, WEIR_IGNORE);
	n = recv(client, answer, sizeof(answer) - 1, MSG_WAITALL);
	close(client);
	wait_idle(limiter);
	return n > 0 && strstr(answer, " 200 ") != NULL;
}

/* The same, but the client closes the connection. */
static void comes_and_goes(struct weir_limiter *limiter, int listener)
{
	const int client = connect_to(listener);
	struct weir_token token;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	CHECK(write(client, request, strlen(request)) == (ssize_t)strlen(request));
	while (weir_waiting(limiter) == 0)
		usleep(1000);
	close_end(client, SHUT_RDWR);
	close(client);
	weir_release(limiter, &token, WEIR_IGNORE);
	wait_idle(limiter);
}

static void serves_who_still_reads(int domain)
{
	const int listener = listen_on(domain);
	struct weir_limiter *limiter = make_limiter();
	struct weir_microhttpd_config config;
	struct weir_microhttpd *guard;
	struct MHD_Daemon *daemon;
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL |
			       MHD_ALLOW_SUSPEND_RESUME;
	atomic_uint served = 0;

	weir_microhttpd_config_init(&config);
	config.limiter = limiter;
	config.handler = handle;
	config.handler_arg = &served;
	config.wait = WEIR_FOREVER;
	CHECK(weir_microhttpd_create(&config, &guard) == 0);
	daemon = MHD_start_daemon(flags, 0, NULL, NULL, weir_microhttpd_handle, guard,
				  MHD_OPTION_NOTIFY_COMPLETED, weir_microhttpd_completed, guard,
				  MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_END);
	CHECK(daemon != NULL);
	CHECK(is_served(limiter, listener) == (domain == AF_UNIX));
	CHECK(cancelled(limiter) == (domain != AF_UNIX));
	comes_and_goes(limiter, listener);
	CHECK(cancelled(limiter) == (domain != AF_UNIX) + 1);
	CHECK(served == (domain == AF_UNIX));
	weir_microhttpd_stop(guard);
	MHD_stop_daemon(daemon);
	weir_microhttpd_destroy(guard);
	weir_limiter_destroy(limiter);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	detects_gone_clients(AF_UNIX);
	detects_gone_clients(AF_INET);
	serves_who_still_reads(AF_UNIX);
	serves_who_still_reads(AF_INET);
	return 0;
}
