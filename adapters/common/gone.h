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
 * For requests that have waited: their servers do not read meanwhile, and so do not hear of it. One
 * who only says that it will send no more sends the same over TCP as one who left, and counts as
 * such. Over a local socket the kernel knows which of the two it is (POLLHUP).
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
