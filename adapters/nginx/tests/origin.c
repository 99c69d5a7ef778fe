/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An upstream for tests: an HTTP server with a fixed capacity, and misbehaviour chosen by the path.
 *
 *	origin [--capacity N] [--time MS]	print its port, and serve until it is killed
 *	origin --port				print a port that is free now, outside of the
 *						system's range for clients, and exit
 *
 * /anything[?ms=MS]	200, after that time in one of its N slots
 * /status/503		that status, at once
 * /hang		no answer
 * /close		no answer, and the connection is closed
 * /cut			a truncated answer
 * /big			an answer larger than the sockets' buffers, at once
 * /upgrade		101, then echoes its input
 * /busy		the number of slots in use now, and the maximum so far
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
	HEAD_MAX = 16384,
	STACK_SIZE = 128 * 1024,
	BACKLOG = 4096,
	BIG = 32 << 20,
};

static sem_t places;
static unsigned time_ms;
static atomic_uint now_busy, most_busy;

static int bind_port(unsigned port)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int error = bind(fd, (const struct sockaddr *)&at, sizeof(at));

	close(fd);
	return error;
}

/* Any other port could be taken by a client when nginx restarts. */
static unsigned free_port(void)
{
	unsigned port;

	do {
		if (getrandom(&port, sizeof(port), 0) != (ssize_t)sizeof(port))
			exit(1);
		port = 1024 + port % (32768 - 1024);
	} while (bind_port(port) != 0);
	return port;
}

static int listen_anywhere(unsigned *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
		perror("origin");
		exit(1);
	}
	*port = ntohs(at.sin_port);
	return fd;
}

static bool send_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		const ssize_t n = write(fd, text, size);

		if (n <= 0)
			return false;
		text += n;
		size -= (size_t)n;
	}
	return true;
}

static bool respond(int fd, unsigned status, const char *body)
{
	char text[512];
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %u Origin\r\nContent-Length: %zu\r\n\r\n%s", status,
			       strlen(body), body);

	return send_all(fd, text, (size_t)n);
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

static bool work(int fd, unsigned ms)
{
	unsigned now, most;

	while (sem_wait(&places) != 0)
		;
	now = atomic_fetch_add_explicit(&now_busy, 1, memory_order_relaxed) + 1;
	most = atomic_load_explicit(&most_busy, memory_order_relaxed);
	while (now > most &&
	       !atomic_compare_exchange_weak_explicit(&most_busy, &most, now, memory_order_relaxed,
						      memory_order_relaxed))
		;
	sleep_ms(ms);
	atomic_fetch_sub_explicit(&now_busy, 1, memory_order_relaxed);
	sem_post(&places);
	return respond(fd, 200, "ok\n");
}

static bool tell_busy(int fd)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u\n",
		 atomic_load_explicit(&now_busy, memory_order_relaxed),
		 atomic_load_explicit(&most_busy, memory_order_relaxed));
	return respond(fd, 200, text);
}

static bool upgrade(int fd)
{
	static const char head[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				   "Upgrade: websocket\r\n\r\n";
	char bytes[4096];
	ssize_t n;

	if (!send_all(fd, head, sizeof(head) - 1))
		return false;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		if (!send_all(fd, bytes, (size_t)n))
			break;
	return false;
}

static bool send_big(int fd)
{
	char head[128], *body = calloc(1, BIG);
	const int n = snprintf(head, sizeof(head),
			       "HTTP/1.1 200 Origin\r\nContent-Length: %d\r\n\r\n", BIG);
	bool sent = body != NULL && send_all(fd, head, (size_t)n) && send_all(fd, body, BIG);

	free(body);
	return sent;
}

/* Returns whether the connection continues. */
static bool serve(int fd, const char *head)
{
	static const char cut[] = "HTTP/1.1 200 Origin\r\nContent-Length: 1000\r\n\r\nnot all";
	const char *ms = strstr(head, "?ms=");
	char path[64], byte;

	if (sscanf(head, "%*s %63[^ ?]", path) != 1)
		return false;
	if (strncmp(path, "/status/", 8) == 0)
		return respond(fd, (unsigned)atoi(path + 8), "status\n");
	if (strcmp(path, "/busy") == 0)
		return tell_busy(fd);
	if (strcmp(path, "/upgrade") == 0)
		return upgrade(fd);
	if (strcmp(path, "/big") == 0)
		return send_big(fd);
	if (strcmp(path, "/hang") == 0)
		return read(fd, &byte, 1) > 0;
	if (strcmp(path, "/cut") == 0)
		(void)send_all(fd, cut, sizeof(cut) - 1);
	if (strcmp(path, "/cut") == 0 || strcmp(path, "/close") == 0)
		return false;
	return work(fd, ms != NULL ? (unsigned)atoi(ms + 4) : time_ms);
}

/* Cut the next request, without a body, off the buffer. False: there is none. */
static bool read_head(int fd, char *head, size_t *used)
{
	while (true) {
		ssize_t n;

		head[*used] = '\0';
		if (strstr(head, "\r\n\r\n") != NULL)
			return true;
		if (*used == HEAD_MAX)
			return false;
		n = read(fd, head + *used, HEAD_MAX - *used);
		if (n <= 0)
			return false;
		*used += (size_t)n;
	}
}

static void *talk(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	char head[HEAD_MAX + 1];
	size_t used = 0;

	while (read_head(fd, head, &used)) {
		char *end = strstr(head, "\r\n\r\n") + 4;

		if (!serve(fd, head))
			break;
		used -= (size_t)(end - head);
		memmove(head, end, used);
	}
	close(fd);
	return NULL;
}

static void accept_all(int listener)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	while (true) {
		const int fd = accept(listener, NULL, NULL);
		pthread_t thread;

		if (fd >= 0 && pthread_create(&thread, &attr, talk, (void *)(intptr_t)fd) != 0)
			close(fd);
	}
}

int main(int argc, char **argv)
{
	unsigned capacity = 1000, port;
	int listener;

	if (argc == 2 && strcmp(argv[1], "--port") == 0)
		return printf("%u\n", free_port()) > 0 ? 0 : 1;
	listener = listen_anywhere(&port);
	printf("%u\n", port);
	fflush(stdout);
	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && strcmp(argv[i], "--capacity") == 0)
			capacity = (unsigned)atoi(argv[++i]);
		else if (i + 1 < argc && strcmp(argv[i], "--time") == 0)
			time_ms = (unsigned)atoi(argv[++i]);
	}
	signal(SIGPIPE, SIG_IGN);
	sem_init(&places, 0, capacity);
	accept_all(listener);
	return 0;
}
