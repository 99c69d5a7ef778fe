/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guard calls to another service with an adaptive concurrency limit.
 *
 *	example-outbound PORT [CALLS]
 *
 * calls the HTTP server on that port of this machine CALLS times (default 1), and prints the result
 * of each call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/weir.h>

/* One call: 0 after a response, else an errno. */
static int call(uint16_t port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	const struct timeval patience = {.tv_sec = 1};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[512];
	int error = 0;
	ssize_t got;

	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0) {
		error = errno;
	} else {
		got = recv(fd, answer, sizeof(answer), 0);
		error = got > 0 ? 0 : got == 0 ? ECONNRESET : errno;
	}
	close(fd);
	return error;
}

/* A backend that is too slow, or refuses a call, is overloaded. Other failures are not samples. */
static enum weir_outcome outcome_of(int error)
{
	switch (error) {
	case 0:
		return WEIR_SUCCESS;
	case EAGAIN: /* the socket's timeout */
	case EINPROGRESS:
	case ETIMEDOUT:
		return WEIR_TIMED_OUT;
	case ECONNREFUSED:
		return WEIR_DROPPED;
	default: /* such as ECONNRESET */
		return WEIR_FAILED;
	}
}

static int guarded_call(struct weir_limiter *limiter, uint16_t port)
{
	struct weir_token token;
	int error;

	if (weir_try_acquire(limiter, &token) != 0)
		return EBUSY; /* not sent */
	error = call(port);
	weir_release(limiter, &token, outcome_of(error));
	return error;
}

int main(int argc, char **argv)
{
	struct weir_limiter *limiter;
	struct weir_config config;
	int calls, error;

	if (argc < 2) {
		fprintf(stderr, "Usage: example-outbound PORT [CALLS]\n");
		return 2;
	}
	weir_config_init(&config);
	if (weir_limiter_create(&config, &limiter) != 0)
		return EXIT_FAILURE;
	calls = argc > 2 ? atoi(argv[2]) : 1;
	while (calls-- > 0) {
		error = guarded_call(limiter, (uint16_t)atoi(argv[1]));
		puts(error ? strerror(error) : "answered");
	}
	printf("in flight %u\n", weir_inflight(limiter));
	weir_limiter_destroy(limiter);
	return EXIT_SUCCESS;
}
