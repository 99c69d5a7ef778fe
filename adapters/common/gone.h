/*
 * Whether a client has closed its end of a connection.
 */
#ifndef ADAPTERS_GONE_H
#define ADAPTERS_GONE_H

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

/*
 * For requests that have waited: their servers do not read meanwhile, and so do not hear of it. One
 * who only says that it will send no more cannot be told from one who left, and counts as such.
 */
static inline bool client_is_gone(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE));
}

#endif
