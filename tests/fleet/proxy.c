/* SPDX-License-Identifier: BSD-2-Clause */
#include "proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../stress/check.h"
#include "server.h"

struct pair {
	struct proxy *proxy;
	int client, server;
	bool asked; /* the client has sent something since the last answer */
};

static int mode_of(const struct proxy *p)
{
	return atomic_load_explicit(&p->mode, memory_order_acquire);
}

static bool send_all(int fd, const char *bytes, ssize_t size)
{
	while (size > 0) {
		const ssize_t n = send(fd, bytes, (size_t)size, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes += n;
		size -= n;
	}
	return true;
}

/* False: the connection ends. */
static bool forward_answer(struct pair *p, const char *bytes, ssize_t size)
{
	static const char garbage[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"]}[:,\"";

	while (mode_of(p->proxy) == PROXY_HOLD)
		sleep_ms(5);
	p->asked = false;
	switch (mode_of(p->proxy)) {
	case PROXY_LOSE:
		return false;
	case PROXY_TRUNCATE:
		(void)send_all(p->client, bytes, size / 2);
		return false;
	case PROXY_GARBAGE:
		return send_all(p->client, garbage, sizeof(garbage) - 1);
	case PROXY_SWALLOW:
	case PROXY_DELAY:
		return true;
	default:
		return send_all(p->client, bytes, size);
	}
}

/* A request may come in several pieces. */
static bool forward_request(struct pair *p, const char *bytes, ssize_t size)
{
	while (mode_of(p->proxy) == PROXY_DELAY)
		sleep_ms(5);
	if (!p->asked)
		atomic_fetch_add_explicit(&p->proxy->requests, 1, memory_order_relaxed);
	p->asked = true;
	return send_all(p->server, bytes, size);
}

static void *carry(void *arg)
{
	struct pair *p = arg;
	char bytes[65536];
	bool on = true;

	while (on) {
		struct pollfd fds[] = {{.fd = p->client, .events = POLLIN},
				       {.fd = p->server, .events = POLLIN}};
		const int from = poll(fds, 2, -1) > 0 && fds[0].revents != 0 ? p->client
									     : p->server;
		const ssize_t n = recv(from, bytes, sizeof(bytes), 0);

		if (n <= 0)
			break;
		on = from == p->client ? forward_request(p, bytes, n) : forward_answer(p, bytes, n);
	}
	close(p->client);
	close(p->server);
	free(p);
	return NULL;
}

static void begin(struct proxy *proxy, int client)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atomic_load(&proxy->to))};
	struct pair *p = calloc(1, sizeof(*p));
	pthread_t thread;

	CHECK(p != NULL);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*p = (struct pair){.proxy = proxy,
			   .client = client,
			   .server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	if (connect(p->server, (struct sockaddr *)&at, sizeof(at)) != 0) {
		close(client);
		close(p->server);
		free(p);
		return;
	}
	CHECK(pthread_create(&thread, NULL, carry, p) == 0);
	pthread_detach(thread);
}

static void *serve(void *arg)
{
	struct proxy *p = arg;
	int client;

	while ((client = accept(p->fd, NULL, NULL)) >= 0)
		begin(p, client);
	return NULL;
}

void proxy_start(struct proxy *p, unsigned to)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);

	memset(p, 0, sizeof(*p));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	atomic_store(&p->to, to);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(p->fd >= 0 && bind(p->fd, (struct sockaddr *)&at, size) == 0);
	CHECK(listen(p->fd, 64) == 0 && getsockname(p->fd, (struct sockaddr *)&at, &size) == 0);
	p->port = ntohs(at.sin_port);
	CHECK(pthread_create(&p->thread, NULL, serve, p) == 0);
}

void proxy_end(struct proxy *p)
{
	shutdown(p->fd, SHUT_RDWR);
	pthread_join(p->thread, NULL);
	close(p->fd);
}
