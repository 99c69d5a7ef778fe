/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a client has closed its end of a connection.
 */
#ifndef ADAPTERS_GONE_H
#define ADAPTERS_GONE_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

static inline bool is_local(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/*
 * For requests that have waited: the server does not read from the connection meanwhile, so it does
 * not notice. Over TCP, a client that only shut down its sending side looks the same as one that
 * closed the connection, and counts as gone. Over a local socket, POLLHUP tells the two apart.
 */
static inline bool client_is_gone(int fd)
{
	struct pollfd hung_up = {.fd = fd};
	char byte;
	const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return errno == ECONNRESET || errno == EPIPE;
	return n == 0 && (!is_local(fd) || poll(&hung_up, 1, 0) != 0);
}

#endif
